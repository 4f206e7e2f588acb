import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { PodDisruptionBudget } from '../../src/kube/policy-v1.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import { type Fields, isReady, newNamespace, podsOf, read } from '../fixtures/live-pods.ts';
import { ownTaints } from '../fixtures/own-taints.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { deployment, policy, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { measured, seconds } from '../faults/lab.ts';

/**
 * A member with 2,000 pods is lost: its line is cut, while no other member has room, and then one has. It answers again in the middle of
 * it. Host and members have controllers and schedulers of their own; what is counted is what the host's API server was asked.
 */
const NAMESPACE = 'large';
/** Of the configuration, as it is shipped, out of one member. */
const MOVES_PER_SECOND = 2;
/** How long pods are moved before the member answers again, in ms. */
const MOVING_MS = 120_000;
/** How long it is looked on while nothing fits, in ms: the first look of the mover, and some more. */
const NOTHING_FITS_MS = 30_000;
const STOP_MS = 5_000;
/** What is in east, and what its budget says of pods that are not Ready, as those of a lost member are. */
const IN_EAST = { free: 1_300, let: 300, kept: 200, met: 200 };
/**
 * In west from the beginning, under one budget with `met`. Those of the lost member count as not healthy from the cut on, so whatever goes there
 * takes nothing from that budget: it would if one in west went, or one that came there.
 */
const IN_WEST = 100;
const TOTAL = Object.values(IN_EAST).reduce((sum, one) => sum + one, 0);
const PATIENT = { timeoutMs: 900_000, intervalMs: 1_000 };

let topology: Topology;
let host: Cluster;
let east: FaultProxy;
/** Wall clock in ms. */
const at = { cut: 0, room: 0, healed: 0 };
/** UIDs of pods in east, by name, before it was lost. */
let before: ReadonlyMap<string, string>;
/** Of budget met, as a watch tells it: the fewest, and the last. */
let [fewestHealthy, lastHealthy] = [Infinity, NaN];
/** What ended the watch before it was to end. */
let deaf: unknown;
const stop = new AbortController();
let watching: Promise<void> | undefined;

beforeAll(async () => {
  // West has room for its own pods, and not for one of the others.
  const full = { nodes: 1, cpu: `${String(IN_WEST * 10 + 5)}m`, pods: '250', prefix: 'full' };
  topology = await startTopology({
    extender: true,
    spillway: { logLevel: 'info' },
    members: [
      { name: 'east', kwok: { nodes: 8, pods: '300', prefix: 'east' }, unregistered: true },
      { name: 'west', kwok: full },
    ],
  });
  ({ host } = topology);
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 1 };
  east = await addProxiedMember(host, topology.member('east').cluster, { spec: { probe } });
  await waitForNode(host, 'east');
  await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
  await newNamespace(host, NAMESPACE);
  await host.apply([
    goesTo('east', 'west'),
    policy(NAMESPACE, 'met-west', { clusterAffinity: { clusterNames: ['west'] } }, 'met-west'),
    budget('let', { minAvailable: IN_EAST.let, unhealthyPodEvictionPolicy: 'AlwaysAllow' }),
    budget('kept', { minAvailable: 1 }),
    budget('met', { minAvailable: IN_WEST }),
    workload('met-west', IN_WEST, 'met'),
  ]);
  // From now on west is full.
  await allReady({ west: IN_WEST });
  await host.apply(Object.entries(IN_EAST).map(([name, replicas]) => workload(name, replicas)));
  const pods = await allReady({ east: TOTAL, west: IN_WEST });
  before = new Map(pods.filter(({ spec }) => spec.nodeName === 'east').map((one) => [one.metadata.name, uidOf(one)]));
  console.info(`${String(TOTAL)} pods are Ready in east, ${String(IN_WEST)} in west`);
}, 1_200_000);
afterAll(async () => {
  stop.abort();
  await watching;
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await east?.close();
  await topology?.close();
  expect(errors).toEqual([]);
});

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? '';

/** The first, then the second; pods of a lost member are replaced as soon as may be. */
function goesTo(first: string, second: string): Fields {
  const clusterAffinity = { clusterNames: [first], overflowAffinities: [{ clusterNames: [second] }] };
  const { spec, ...rest } = policy(NAMESPACE, 'all', { clusterAffinity });
  const selectors = Object.keys(IN_EAST).map((name) => ({ apiVersion: 'apps/v1', kind: 'Deployment', name }));
  return {
    ...rest,
    spec: { ...(spec as Fields), resourceSelectors: selectors, failover: { onMemberLost: { after: '15s' } } },
  };
}

function workload(name: string, replicas: number, tier = name): Fields {
  const made = deployment(NAMESPACE, name, replicas, '10m');
  const { template, ...spec } = made['spec'] as { template: { metadata: { labels: Fields } } & Fields } & Fields;
  const labels = { ...template.metadata.labels, tier };
  return { ...made, spec: { ...spec, template: { ...template, metadata: { labels } } } };
}

function budget(tier: string, spec: Fields): Fields {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: tier, namespace: NAMESPACE },
    spec: { selector: { matchLabels: { tier } }, ...spec },
  };
}

async function allReady(wanted: Record<string, number>): Promise<Pod[]> {
  const total = Object.values(wanted).reduce((sum, one) => sum + one, 0);
  return await until(
    `all are Ready: ${JSON.stringify(wanted)}`,
    async () => {
      const pods = await podsOf(host, NAMESPACE);
      const counts = whereAre(pods);
      const ready = pods.filter(isReady).length;
      const isSo = Object.entries(wanted).every(([place, count]) => counts[place] === count);
      if (isSo && ready === total && pods.length === total) return pods;
      throw new Error(`they are ${JSON.stringify(counts)}, ${String(ready)} Ready of ${String(pods.length)}`);
    },
    PATIENT,
  );
}

async function healthyOf(tier: string): Promise<number> {
  const path = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets/${tier}`;
  return (await read<PodDisruptionBudget>(host, path))?.status?.currentHealthy ?? NaN;
}

async function reachable(): Promise<string | undefined> {
  const member = await read<MemberCluster>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
  return member?.status?.conditions?.find(({ type }) => type === 'Reachable')?.status;
}

/** What the host's API server was asked to evict or to delete, oldest first. */
const asked = (verb: 'create' | 'delete', subresource?: string): AuditEvent[] =>
  host
    .auditEvents()
    .filter(({ objectRef, verb: one }) => one === verb && objectRef?.resource === 'pods')
    .filter(({ objectRef }) => objectRef?.namespace === NAMESPACE && objectRef.subresource === subresource);
const evictions = (): AuditEvent[] => asked('create', 'eviction');
const timeOf = ({ requestReceivedTimestamp }: AuditEvent): number => Date.parse(requestReceivedTimestamp);
const isDone = ({ responseStatus }: AuditEvent): boolean => (responseStatus?.code ?? 0) < 300;
const tierOf = ({ objectRef }: AuditEvent): string => (objectRef?.name ?? '').split('-')[0] ?? '';

describe(`a member with ${String(TOTAL)} pods is lost`, () => {
  test('while nothing fits elsewhere none is evicted', async () => {
    const budgets = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`;
    watching = host.api
      .follow(budgets, stop.signal, ({ object }) => {
        const { metadata, status } = object as unknown as PodDisruptionBudget;
        if (metadata.name !== 'met') return;
        lastHealthy = status?.currentHealthy ?? Infinity;
        fewestHealthy = Math.min(fewestHealthy, lastHealthy);
      })
      .catch((error: unknown) => {
        deaf = error;
      });
    at.cut = Date.now();
    east.inject({ kind: 'reset', when: 'before' });
    east.resetConnections();
    await until('it is known to be lost', async () => (await reachable()) === 'False', PATIENT);
    await until('its pods count as lost', async () => (await healthyOf('kept')) === 0, PATIENT);
    console.info(`lost, and all ${String(TOTAL)} pods not Ready after ${seconds(Date.now() - at.cut)}`);
    await sleep(NOTHING_FITS_MS);
    expect(evictions()).toEqual([]);
    const held = await until('one says why it stays', async () => {
      const path = `/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=reason%3DPodOfLostMemberHeld`;
      const { items } = (await host.api.call('GET', path)) as { items: { message: string }[] };
      return items.find(({ message }) => message.includes('no other cluster'))?.message;
    });
    expect(held).toMatch(/no other cluster takes it now \(.*member west: /);
    console.info(`nothing fits: 0 evictions within ${seconds(Date.now() - at.cut)} of the cut`);
  });

  test('as soon as there is room they follow the set rate within a tenth', async (context) => {
    await topology.member('west').kwok?.addNodes({ nodes: 8, pods: '300', prefix: 'room' });
    at.room = Date.now();
    const first = timeOf(await until('the first is evicted', () => evictions().find(isDone), PATIENT));
    await sleep(Math.max(0, first + MOVING_MS - Date.now()));
    const times = evictions()
      .map(timeOf)
      .filter((time) => time < first + MOVING_MS);
    const done = evictions().filter((one) => isDone(one) && timeOf(one) < first + MOVING_MS).length;
    const rate = (times.length - 1) / ((Math.max(...times) - first) / 1_000);
    const most = Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + 10_000).length));
    const figures =
      `first eviction ${seconds(first - at.room)} after there was room; ${String(times.length)} asked for in ${seconds(MOVING_MS)} ` +
      `(${String(done)} done), ${rate.toFixed(3)} a second of ${String(MOVES_PER_SECOND)}, at most ${String(most)} in 10 s`;
    console.info(figures);
    measured(context, ['F25'], `${String(TOTAL)} pods: ${figures}`);
    expect(rate).toBeGreaterThan(MOVES_PER_SECOND * 0.9);
    expect(rate).toBeLessThan(MOVES_PER_SECOND * 1.1);
    expect(done / (MOVING_MS / 1_000)).toBeGreaterThan(MOVES_PER_SECOND * 0.9);
    expect(most).toBeLessThanOrEqual(10 * MOVES_PER_SECOND * 1.1);
  });

  test('they stop within 5 s of its recovery', async (context) => {
    at.healed = Date.now();
    east.clear();
    const sinceHealed = async (what: string, isSo: () => Promise<boolean>): Promise<number> => {
      await until(what, isSo, { ...PATIENT, intervalMs: 100 });
      return Date.now() - at.healed;
    };
    const [knownMs, openMs] = await Promise.all([
      sinceHealed('it is known to answer', async () => (await reachable()) === 'True'),
      sinceHealed('our taints are gone', async () => (await ownTaints(host, 'east')).length === 0),
    ]);
    await sleep(30_000);
    const last = Math.max(...evictions().map(timeOf));
    const figures = `the line is whole: known to answer after ${seconds(knownMs)}, our taints gone after ${seconds(openMs)}, last eviction after ${seconds(last - at.healed)}`;
    console.info(figures);
    measured(context, ['F69'], figures);
    expect(last - at.healed).toBeLessThanOrEqual(STOP_MS);
    expect(openMs).toBeLessThanOrEqual(STOP_MS);
  });

  test('each pod that was evicted has one in its place, the others are what they were, and all are Ready', async () => {
    const moved = new Set(
      evictions()
        .filter(isDone)
        .map(({ objectRef }) => objectRef?.name),
    );
    const pods = await allReady({ east: TOTAL - moved.size, west: IN_WEST + moved.size });
    const now = new Map(pods.map((one) => [one.metadata.name, uidOf(one)]));
    const lost = [...before].filter(([name, uid]) => !moved.has(name) && now.get(name) !== uid);
    expect(lost).toEqual([]);
    await until(
      'east has no more copies than that',
      async () => (await podsOf(topology.member('east').cluster, NAMESPACE)).length === TOTAL - moved.size,
      PATIENT,
    );
    console.info(`${String(moved.size)} pods were moved, ${String(TOTAL - moved.size)} stayed as they were`);
  });

  test('and no disruption budget is violated', async () => {
    const healthy = await healthyOf('met');
    await until('the watch has told the last of it, too', () => lastHealthy === healthy, { timeoutMs: 30_000 });
    expect([deaf, stop.signal.aborted]).toEqual([undefined, false]);
    const all = evictions();
    const done = all.filter(isDone);
    const byTier = (events: readonly AuditEvent[]): Record<string, number> =>
      Object.fromEntries(
        Object.keys(IN_EAST).map((tier) => [tier, events.filter((one) => tierOf(one) === tier).length]),
      );
    const refused = all.filter((one) => !isDone(one));
    const budgets = refused.filter(({ responseStatus }) => responseStatus?.code === 429);
    const evicted = new Set(done.map(({ objectRef }) => objectRef?.name));
    // Only virtual nodes delete, what was evicted and has ended: nobody goes round a budget.
    const round = asked('delete').filter(
      ({ objectRef, user }) => !evicted.has(objectRef?.name) || !user.username.startsWith('system:node:'),
    );
    console.info(
      `evicted: ${JSON.stringify(byTier(done))}; refused by budgets: ${JSON.stringify(byTier(budgets))}; deleted by others: ` +
        `${String(round.length)}; fewest healthy of the ${String(IN_WEST)} that budget met asks for: ${String(fewestHealthy)}`,
    );
    expect(round).toEqual([]);
    // Nobody that is well: neither one that was in west, nor one that came in the place of another.
    expect([...evicted].filter((name) => !before.has(name ?? ''))).toEqual([]);
    expect(byTier(done)['kept']).toBe(0);
    expect(byTier(budgets)['kept']).toBeGreaterThan(0);
    for (const tier of ['free', 'let', 'met']) expect(byTier(done)[tier]).toBeGreaterThan(0);
    // Nor did any of them cease to be Ready meanwhile.
    expect(fewestHealthy).toBeGreaterThanOrEqual(IN_WEST);
  });
});
