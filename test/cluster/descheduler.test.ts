import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { freePort } from '../../hack/addresses.ts';
import { startKwok } from '../../hack/kwok.ts';
import { manifest } from '../../hack/manifest.ts';
import {
  MEMBER_ACCOUNT,
  type Spillway,
  startSpillway,
  SYSTEM_NAMESPACE,
  waitForNode,
  waitReady,
} from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { MOVES_STOPPED_ANNOTATION, RELEASED_ANNOTATION } from '../../src/api/marks.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { PlacementPolicy } from '../../src/api/placement-policy.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { gang, withClaim } from '../fixtures/bound-workloads.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import {
  eventsOf,
  type Fields,
  isReady,
  kubectl,
  newNamespace,
  pod,
  podsOf,
  read,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { jobsThatRun } from '../fixtures/jobs-stage.ts';
import { diskClass, type Provisioner, startProvisioner } from '../fixtures/provisioner.ts';
import { addProxiedMember, newProxiedToken } from '../fixtures/proxied-member.ts';
import {
  burstSpec,
  deployment,
  LOCAL_PREFIX,
  placementOf,
  policy,
  policyInUse,
  scale,
  schedulingMessage,
  settled,
  whereAre,
} from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Two members behind lines that can be cut; kube-scheduler asks Spillway where pods may run, and Spillway moves them. */
let topology: Topology;
let host: Cluster;
const proxies = new Map<string, FaultProxy>();
let disks: Provisioner | undefined;
/** The one node of the host. */
const LOCAL_NODE = `${LOCAL_PREFIX}-0`;
/** Of the configuration, per member. */
const MOVES_PER_SECOND = 2;
const NAMES = ['east', 'west'];
/** What Spillway is told in its configuration: else each pod is written to once more, ten seconds after it is bound, and an eviction of that moment is tried again. */
const CONFIGURATION = { outages: { toleration: 'Keep' } };
/** How long Jobs take, in ms: those in east are still at work when their pods are moved. */
const JOBS_TAKE: Readonly<Record<string, number>> = { east: 3_600_000, west: 500 };
/** A member is looked at for 15 s before its pods are moved, by whatever was said of it before. */
const PATIENT = { timeoutMs: 60_000 };

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    host: { controllerManagerFlags: { 'node-monitor-period': '1s' } },
    spillway: { configuration: CONFIGURATION },
    members: NAMES.map((name) => ({
      name,
      kwok: { nodes: 2, cpu: '8', stages: [jobsThatRun({ durationMilliseconds: JOBS_TAKE[name] })] },
      unregistered: true,
    })),
  });
  ({ host } = topology);
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 1 };
  for (const name of NAMES) {
    proxies.set(name, await addProxiedMember(host, topology.member(name).cluster, { spec: { probe } }));
  }
  await startKwok(host, { nodes: 1, cpu: '1', prefix: LOCAL_PREFIX });
  await Promise.all(NAMES.map((name) => waitForNode(host, name)));
  for (const name of ['descheduler', 'gangs']) await host.apply(manifest(`scheduler/${name}.yaml`));
  const east = topology.member('east').cluster;
  disks = startProvisioner(east);
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  await east.apply([diskClass('disk', { metadata: { name: 'disk', annotations: isDefault } })]);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await disks?.close();
  for (const proxy of proxies.values()) await proxy.close();
  await topology?.close();
  expect(errors).toEqual([]);
});

let namespace = '';
let count = 0;
beforeEach(async () => {
  namespace = await newNamespace(host, `moves-${(count += 1)}`);
});
afterEach(async () => {
  for (const name of NAMES) {
    heal(name);
    await edit(name, {
      clusterTaints: null,
      labels: null,
      taints: null,
      unschedulable: null,
      probe: { nodesReady: null },
    });
    await until(`${name} is ready`, async () => (await reachableOf(name)) === 'True');
  }
  await kubectl(host, ['delete', 'namespace', namespace, '--wait=false']);
  await until('no pods are left', async () => {
    const left = await Promise.all(
      [host, ...NAMES.map((name) => topology.member(name).cluster)].map(async (one) => await podsOf(one, namespace)),
    );
    return left.flat().length === 0;
  });
});

function cut(name: string): void {
  const proxy = proxies.get(name);
  proxy?.inject({ kind: 'reset', when: 'before' });
  proxy?.resetConnections();
}

function heal(name: string): void {
  proxies.get(name)?.clear();
}

async function edit(name: string, spec: Fields): Promise<void> {
  await host.api.call('PATCH', `/apis/spillway.dev/v1alpha1/memberclusters/${name}`, { spec });
}

async function reachableOf(name: string): Promise<string | undefined> {
  const member = await read<MemberCluster>(host, `/apis/spillway.dev/v1alpha1/memberclusters/${name}`);
  return member?.status?.conditions?.find(({ type }) => type === 'Reachable')?.status;
}

/** East first, then west; pods of a lost member are replaced after so long. */
function eastThenWest(after: string, more: Fields = {}, name = 'all'): Fields {
  const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
  const { spec, ...rest } = policy(namespace, name, placement);
  const kinds = ['Deployment', 'StatefulSet'].map((kind) => ({ apiVersion: 'apps/v1', kind }));
  const selectors = [...kinds, { apiVersion: 'batch/v1', kind: 'Job' }, { apiVersion: 'v1', kind: 'Pod' }];
  const failover = { onMemberLost: { after } };
  return { ...rest, spec: { ...(spec as Fields), resourceSelectors: selectors, failover, ...more } };
}

/** Policies first: pods that come before schedulers know theirs are placed without it, and moved later. */
async function applyInUse(objects: readonly Fields[]): Promise<void> {
  const policies = objects.filter(({ kind }) => kind === 'PlacementPolicy');
  await host.apply(policies);
  for (const { metadata } of policies) await policyInUse(host, namespace, (metadata as { name: string }).name);
  await host.apply(objects.filter((one) => !policies.includes(one)));
}

const DIVIDED = { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted' };

function byWeight(east: number, west: number): Fields {
  const staticWeightList = Object.entries({ east, west }).map(([name, weight]) => ({
    targetCluster: { clusterNames: [name] },
    weight,
  }));
  return { replicaScheduling: { ...DIVIDED, weightPreference: { staticWeightList } } };
}

function evictions(): AuditEvent[] {
  return host
    .auditEvents()
    .filter(({ objectRef, verb }) => verb === 'create' && objectRef?.subresource === 'eviction')
    .filter(({ objectRef }) => objectRef?.namespace === namespace);
}

/** Those that were carried out. A pod that changed just then is looked at again (409); one that its budget keeps, too (429). */
const carriedOut = (): AuditEvent[] => evictions().filter(({ responseStatus }) => (responseStatus?.code ?? 0) < 300);

/** Of them those of pods of that app. */
const movesOf = (app: string): AuditEvent[] =>
  carriedOut().filter(({ objectRef }) => objectRef?.name?.startsWith(`${app}-`));

const goingFrom = (pods: readonly Pod[], node: string): Pod[] =>
  pods.filter(({ metadata, spec }) => metadata.deletionTimestamp !== undefined && spec.nodeName === node);

async function told(name: string, reason: string): Promise<string> {
  return await until(
    `${name} is told ${reason}`,
    async () => {
      const events = await eventsOf(host, namespace, name);
      return events.find((event) => event.reason === reason)?.message;
    },
    PATIENT,
  );
}

/** What the record of the Deployment tells of its moves is that, by strategy. */
async function toldOfMoves(name: string, counts: Record<string, number>): Promise<void> {
  await until(`moves of ${name} are written down: ${JSON.stringify(counts)}`, async () => {
    const { moves = [] } = (await placementOf(host, namespace, name))?.status ?? {};
    const found: Record<string, number> = {};
    for (const { strategy, count } of moves) found[strategy] = (found[strategy] ?? 0) + count;
    if (!isDeepStrictEqual(found, counts)) throw new Error(`it tells of ${JSON.stringify(moves)}`);
    return true;
  });
}

/** What is told on a pod of that app, whose words are so. */
async function toldOfOne(app: string, reason: string, words: RegExp): Promise<string> {
  return await until(
    `a pod of ${app} is told ${reason}: ${String(words)}`,
    async () => {
      const pods = await podsOf(host, namespace, `app=${app}`);
      const events = await Promise.all(pods.map(({ metadata }) => eventsOf(host, namespace, metadata.name)));
      const messages = events.flat().flatMap((one) => (one.reason === reason ? one.message : []));
      const found = messages.find((message) => words.test(message));
      if (found === undefined) throw new Error(`it is told ${JSON.stringify(messages)}`);
      return found;
    },
    PATIENT,
  );
}

/** Of which pods something is told on their workload. */
async function toldOnWorkload(kind: string, name: string, reason: string): Promise<Set<string>> {
  const events = (await eventsOf(host, namespace, name, kind)).filter((event) => event.reason === reason);
  return new Set(events.map(({ message }) => /^pod (\S+): /.exec(message)?.[1] ?? message));
}

function stateful(): Fields {
  const { kind: _, spec, ...rest } = deployment(namespace, 'db', 1, '100m');
  return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: 'db' } };
}

const CONTAINER = { name: 'main', image: 'registry.example/app:v1', resources: { requests: { cpu: '100m' } } };

function alone(): Fields {
  return { ...pod('alone', namespace, burstSpec('100m', { nodeName: 'east' })) };
}

/** A Job that must not fail once, and does not count pods that are evicted. */
function strictJob(): Fields {
  const onPodConditions = [{ type: 'DisruptionTarget', status: 'True' }];
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work', namespace },
    spec: {
      backoffLimit: 0,
      podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions }] },
      template: { metadata: { labels: { app: 'work' } }, spec: burstSpec('100m', { restartPolicy: 'Never' }) },
    },
  };
}

/** {@link strictJob} has done its work there, and no pod of it counts as failed. */
async function jobIsDoneIn(where: string): Promise<void> {
  const path = `/apis/batch/v1/namespaces/${namespace}/jobs/work`;
  const job = await until('the Job is complete', async () => {
    const found = await read<{ status?: { succeeded?: number; failed?: number } }>(host, path);
    return found?.status?.succeeded === 1 ? found.status : undefined;
  });
  expect(job.failed ?? 0).toBe(0);
  const done = (await podsOf(host, namespace, 'app=work')).find(({ status }) => status?.phase === 'Succeeded');
  expect(done?.spec.nodeName).toBe(where);
}

describe('a member that does not answer', () => {
  test('pods of a Deployment are replaced elsewhere at the set pace, those that must not run twice are held; healed, one copy is left of each, and what is divided goes back to its shares', async () => {
    await applyInUse([
      eastThenWest('3s'),
      eastThenWest(
        '3s',
        {
          resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'waits' }],
          failover: { onMemberLost: { after: '3s', action: 'Hold' } },
        },
        'hold',
      ),
      eastThenWest(
        '3s',
        {
          resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'shares' }],
          placement: byWeight(1, 1),
          failover: { onMemberLost: { after: '3s' }, divisionDrift: { after: '5s' } },
        },
        'shares',
      ),
      deployment(namespace, 'shares', 4, '100m'),
      deployment(namespace, 'web', 6, '100m'),
      stateful(),
      alone(),
      gang(namespace),
      ...withClaim(namespace),
      deployment(namespace, 'waits', 1, '100m'),
    ]);
    const before = await settled(host, namespace, 'web', { east: 6 });
    await settled(host, namespace, 'shares', { east: 2, west: 2 });
    const [db] = await settled(host, namespace, 'db', { east: 1 });
    const { metadata: single } = await untilRunning(host, namespace, 'alone');
    const held = { ring: 2, keeper: 1, waits: 1 };
    for (const [app, size] of Object.entries(held)) await settled(host, namespace, app, { east: size });
    cut('east');
    await until(
      'six others run in west',
      async () => {
        const pods = await podsOf(host, namespace, 'app=web');
        return whereAre(pods)['west'] === 6 && goingFrom(pods, 'east').length === 6 ? true : undefined;
      },
      PATIENT,
    );
    const times = movesOf('web').map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
    expect(times).toHaveLength(6);
    const seconds = (Math.max(...times) - Math.min(...times)) / 1_000;
    expect(seconds).toBeGreaterThanOrEqual((5 / MOVES_PER_SECOND) * 0.9);
    expect(await told(before[0]?.metadata.name ?? '', 'PodOfLostMemberReplaced')).toMatch(
      /^member east has not answered since .*; it was evicted, so that ReplicaSet web-\S+ makes another one, which goes elsewhere\. It ends in east as soon as that answers again$/,
    );
    await until('each move is told on the Deployment, too', async () => {
      const names = new Set(before.map(({ metadata }) => metadata.name));
      return isDeepStrictEqual(await toldOnWorkload('Deployment', 'web', 'PodOfLostMemberReplaced'), names);
    });
    expect(await told('db-0', 'PodOfLostMemberHeld')).toMatch(
      /^member east does not answer; the pod stays what it is, and may run there: a StatefulSet makes no other pod of that name before this one is known to have ended$/,
    );
    expect(await told('alone', 'PodOfLostMemberHeld')).toMatch(/it has no controller that would make another one$/);
    await toldOfOne('ring', 'PodOfLostMemberHeld', /: the pods of a gang have one place together$/);
    await toldOfOne('keeper', 'PodOfLostMemberHeld', /: it uses claims, and its data are there$/);
    await toldOfOne('waits', 'PodOfLostMemberHeld', /: its policy says Hold$/);
    const node = await read<Node>(host, '/api/v1/nodes/east');
    expect(node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True');
    await until('all four of those that are divided are in west', async () => {
      return whereAre(await podsOf(host, namespace, 'app=shares'))['west'] === 4;
    });
    heal('east');
    await settled(host, namespace, 'web', { west: 6 });
    expect((await settled(host, namespace, 'db', { east: 1 }))[0]?.metadata.uid).toBe(db?.metadata.uid);
    expect((await untilRunning(host, namespace, 'alone')).metadata.uid).toBe(single.uid);
    for (const [app, size] of Object.entries(held)) await settled(host, namespace, app, { east: size });
    await settled(host, namespace, 'shares', { east: 2, west: 2 }, 90_000);
    await until('nothing else is left in east', async () => {
      const copies = await podsOf(topology.member('east').cluster, namespace);
      return copies.length === 8;
    });
    expect(movesOf('web')).toHaveLength(6);
    // Two when it was lost, and as many when it was back.
    expect(movesOf('shares')).toHaveLength(4);
    await toldOfMoves('shares', { MemberLost: 2, DivisionDrift: 2 });
  });

  test('that answers again in the middle keeps the pods that are left', async () => {
    // More than are moved until a busy machine sees that it answers.
    await applyInUse([eastThenWest('3s'), deployment(namespace, 'web', 24, '100m')]);
    await settled(host, namespace, 'web', { east: 24 });
    cut('east');
    await until('two are on their way', () => evictions().length >= 2, PATIENT);
    heal('east');
    await until('it answers', async () => (await reachableOf('east')) === 'True');
    const moved = evictions().length;
    expect(moved).toBeLessThan(24);
    const arrived = whereAre(await podsOf(host, namespace, 'app=web'))['west'] ?? 0;
    // Some may have been sent before the mover knew; a successor that had no place by then may go to either.
    await until('all run, and of those that went at most one each in west', async () => {
      const found = await podsOf(host, namespace, 'app=web');
      const { east = 0, west = 0 } = whereAre(found);
      const done = carriedOut().length;
      const isSo = east + west === 24 && west >= arrived && west <= done && found.every(isReady);
      if (isSo) return true;
      throw new Error(`${String(done)} went, and they are in ${JSON.stringify(whereAre(found))}`);
    });
    expect(evictions().length).toBeLessThanOrEqual(moved + MOVES_PER_SECOND);
  });

  test('keeps pods whose disruption budget counts them as lost, until it lets such pods go', async () => {
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace },
      spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
    };
    await applyInUse([eastThenWest('1s'), deployment(namespace, 'web', 3, '100m'), budget]);
    const pods = await settled(host, namespace, 'web', { east: 3 });
    cut('east');
    await until('the budget counts them as lost', async () => {
      const found = await read<{ status?: { currentHealthy?: number } }>(
        host,
        `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/web`,
      );
      return found?.status?.currentHealthy === 0;
    });
    // One of them is asked for all.
    const names = pods.map(({ metadata }) => metadata.name);
    expect(await Promise.any(names.map(async (name) => await told(name, 'PodOfLostMemberHeld')))).toMatch(
      /its disruption budget allows no eviction now \(the pod is not Ready, .* unhealthyPodEvictionPolicy: AlwaysAllow such pods may go\)$/,
    );
    await until('it is asked again', () => evictions().length > 1);
    expect(evictions().map(({ responseStatus }) => responseStatus?.code)).toEqual(evictions().map(() => 429));
    const allow = '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}';
    await kubectl(host, ['patch', 'pdb', 'web', '-n', namespace, '--type=merge', '-p', allow]);
    await until(
      'they are replaced in west',
      async () => whereAre(await podsOf(host, namespace, 'app=web'))['west'] === 3,
      PATIENT,
    );
  });

  test('is left by one of two replicas; the other goes on when that one is killed', async () => {
    const { spillway } = topology;
    const second = await startSpillway(host, { name: 'second', logLevel: 'debug', extenderPort: await freePort() });
    try {
      await applyInUse([eastThenWest('1s'), deployment(namespace, 'web', 12, '100m')]);
      await settled(host, namespace, 'web', { east: 12 });
      const holder = await holderOf('spillway-descheduler');
      cut('east');
      await until('some are on their way', () => evictions().length >= 3, PATIENT);
      await spillway.process.stop('SIGKILL');
      expect(await movesBy(second)).toBe(0);
      const before = evictions().length;
      await until('the other one goes on', () => evictions().length > before, PATIENT);
      expect(await holderOf('spillway-descheduler')).not.toBe(holder);
      await until(
        'none is left',
        async () => whereAre(await podsOf(host, namespace, 'app=web'))['east'] === undefined,
        PATIENT,
      );
      const done = carriedOut();
      expect(new Set(done.map(({ objectRef }) => objectRef?.name)).size).toBe(12);
      expect(done).toHaveLength(12);
    } finally {
      if (!spillway.process.running) spillway.process.restart();
      await waitReady(spillway);
      await second.process.stop();
    }
  }, 240_000);

  async function holderOf(lease: string): Promise<string | undefined> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM_NAMESPACE}/leases/${lease}`;
    return (await read<{ spec?: { holderIdentity?: string } }>(host, path))?.spec?.holderIdentity;
  }

  /** What a replica has moved since it started, by its metric. */
  async function movesBy({ url }: Spillway): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text();
    const found = text.matchAll(/^spillway_descheduler_moves_total\{.*outcome="moved".*\} (\d+)$/gm);
    return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  test('takes its virtual node along where that is asked for: Kubernetes deletes the pods that it has, all at once', async () => {
    const toleration = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 };
    const tolerations = [
      { key: 'spillway.dev/virtual-node', operator: 'Exists' },
      ...['unreachable', 'not-ready'].map((key) => ({ key: `node.kubernetes.io/${key}`, ...toleration })),
    ];
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace },
      spec: { minAvailable: 3, selector: { matchLabels: { app: 'web' } } },
    };
    await edit('east', { probe: { nodesReady: 'WhileReachable' } });
    await applyInUse([eastThenWest('1h'), deployment(namespace, 'web', 3, '100m', {}, { tolerations }), budget]);
    const before = await settled(host, namespace, 'web', { east: 3 });
    cut('east');
    const gone = await until('all are deleted, and three others run in west', async () => {
      const pods = await podsOf(host, namespace, 'app=web');
      const going = goingFrom(pods, 'east');
      return whereAre(pods)['west'] === 3 && going.length === 3 ? going : undefined;
    });
    const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name).toSorted();
    expect(names(gone)).toEqual(names(before));
    const whys = gone.map(({ status }) => status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason);
    expect(whys).toEqual(gone.map(() => 'DeletionByTaintManager'));
    const times = gone.map(({ metadata }) => Date.parse(metadata.deletionTimestamp ?? ''));
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(1_000);
    expect(evictions()).toEqual([]);
    expect(await nodeOf('east')).toEqual({
      ready: ['Unknown', 'MemberUnreachable'],
      taints: [
        'node.kubernetes.io/unreachable:NoExecute',
        'node.kubernetes.io/unreachable:NoSchedule',
        'spillway.dev/member-unreachable:NoSchedule',
        'spillway.dev/virtual-node:NoSchedule',
      ],
    });
    // They may run on in east: nobody there could be told.
    expect(names(await podsOf(topology.member('east').cluster, namespace))).toEqual(names(before));
    heal('east');
    await settled(host, namespace, 'web', { west: 3 });
    await until('the node is as before', async () => {
      return isDeepStrictEqual(await nodeOf('east'), {
        ready: ['True', 'KubeletReady'],
        taints: ['spillway.dev/virtual-node:NoSchedule'],
      });
    });
    await until('nothing is left in east', async () => {
      return (await podsOf(topology.member('east').cluster, namespace)).length === 0;
    });
  });

  /** What Kubernetes goes by. */
  async function nodeOf(name: string): Promise<{ ready: (string | undefined)[]; taints: string[] }> {
    const node = await read<Node>(host, `/api/v1/nodes/${name}`);
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
    const taints = (node?.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).toSorted();
    return { ready: [ready?.status, ready?.reason], taints };
  }

  test('that answers with errors keeps its pods; one that refuses our credentials is lost, and no more are replaced as there is room for', async () => {
    const filler = pod('filler', namespace, burstSpec('5', { nodeName: 'west' }));
    await applyInUse([eastThenWest('1s'), deployment(namespace, 'web', 2, '5'), filler]);
    const pods = await settled(host, namespace, 'web', { east: 2 });
    await untilRunning(host, namespace, 'filler');
    await noMorePods(3);
    const taintsOf = async (): Promise<string[]> => (await nodeOf('east')).taints;
    const virtual = 'spillway.dev/virtual-node:NoSchedule';
    const east = topology.member('east').cluster;
    try {
      proxies.get('east')?.inject({ kind: 'status', code: 503 });
      proxies.get('east')?.resetConnections();
      await kubectl(east, ['delete', 'serviceaccount', MEMBER_ACCOUNT.name, '-n', MEMBER_ACCOUNT.namespace]);
      await until('its node is not ready', async () =>
        isDeepStrictEqual(await taintsOf(), ['spillway.dev/member-not-ready:NoSchedule', virtual]),
      );
      // For ten seconds an API server takes a token that it has seen for granted.
      const busy = Date.now();
      await until('it is so for a while', () => Date.now() - busy > 10_000);
      expect(await taintsOf()).toContain('spillway.dev/member-not-ready:NoSchedule');
      const refused = Date.now();
      heal('east');
      await until('nobody there knows our token', async () =>
        isDeepStrictEqual(await taintsOf(), ['spillway.dev/member-unreachable:NoSchedule', virtual]),
      );
      // Node and MemberCluster are written apart.
      await until('it is said why', async () => (await reasonOf('east')) === 'Unauthorized');
      const isIn = async (name: string, size: number): Promise<boolean> =>
        (whereAre(await podsOf(host, namespace, 'app=web'))[name] ?? 0) === size;
      await toldOfOne('web', 'PodOfLostMemberHeld', /: the room elsewhere is for pods that come before it$/);
      const [first, ...more] = carriedOut();
      expect(more).toEqual([]);
      // A lost member is looked at for 15 s, and that it was busy does not count.
      expect(Date.parse(first?.requestReceivedTimestamp ?? '') - refused).toBeGreaterThanOrEqual(15_000);
      await kubectl(host, ['delete', 'resourcequota', 'no-more', '-n', namespace]);
      await until('one is replaced', async () => await isIn('west', 1), PATIENT);
      await toldOfOne('web', 'PodOfLostMemberHeld', /: no other cluster takes it now \(.*member west: /);
      expect(await isIn('east', 1)).toBe(true);
      expect(carriedOut()).toHaveLength(1);
      await kubectl(host, ['delete', 'pod', 'filler', '-n', namespace, '--wait=false']);
      await until('so is the other one, once there is room', async () => await isIn('west', 2), PATIENT);
      expect(new Set(carriedOut().map(({ objectRef }) => objectRef?.name))).toEqual(
        new Set(pods.map(({ metadata }) => metadata.name)),
      );
    } finally {
      await east.apply(manifest('member/read.yaml'));
      await newProxiedToken(host, east, proxies.get('east')?.url ?? '');
    }
  }, 180_000);

  /** No pod comes in place of one that was evicted just now. */
  async function noMorePods(pods: number): Promise<void> {
    const metadata = { name: 'no-more', namespace };
    await host.apply([{ apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: { pods: String(pods) } } }]);
    await until('they are counted', async () => {
      const path = `/api/v1/namespaces/${namespace}/resourcequotas/no-more`;
      const found = await read<{ status?: { used?: { pods?: string } } }>(host, path);
      return found?.status?.used?.pods === String(pods);
    });
  }

  async function reasonOf(name: string): Promise<string | undefined> {
    const member = await read<MemberCluster>(host, `/apis/spillway.dev/v1alpha1/memberclusters/${name}`);
    return member?.status?.conditions?.find(({ type }) => type === 'Reachable')?.reason;
  }

  test('like all others is taken for a fault on this side: nothing is moved, and it says how to go on', async () => {
    await applyInUse([eastThenWest('1s'), deployment(namespace, 'web', 2, '100m')]);
    await settled(host, namespace, 'web', { east: 2 });
    await burstLocal();
    for (const name of NAMES) cut(name);
    const message = await until('it is told', async () => {
      const { items } = (await host.api.call('GET', '/api/v1/namespaces/default/events')) as {
        items: { reason: string; message: string; involvedObject: { name: string } }[];
      };
      return items.find(({ reason, involvedObject }) => reason === 'MovesPaused' && involvedObject.name === 'east')
        ?.message;
    });
    expect(message).toMatch(
      /^no member answers: the fault may be on this side, so nothing is moved for it; to move them all the same, give east a taint of effect NoExecute \(spec\.clusterTaints\)$/,
    );
    // Each is looked at for 15 s before anything is moved for it, and the policy says 1 s.
    const lost = Date.now();
    await until('both are lost for longer than is waited for', () => Date.now() - lost > 20_000);
    expect(evictions()).toEqual([]);
    await edit('east', { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] });
    await until('by the word of the administrator they are replaced at home', async () => {
      return whereAre(await podsOf(host, namespace, 'app=web'))['local'] === 2;
    });
  });

  /** The same pods may come home, too. */
  async function burstLocal(): Promise<void> {
    const clusterAffinity = {
      clusterNames: ['east'],
      overflowAffinities: [{ clusterNames: ['west'] }, { clusterNames: ['local'] }],
    };
    await host.apply([eastThenWest('1s', { placement: { clusterAffinity } })]);
  }
});

test('pods go home, to their shares of today, and where their policy wants them now, if it says so: one by one', async () => {
  const ruled = (name: string, placement: Fields, failover: Fields): Fields => {
    const { spec, ...rest } = policy(namespace, name, placement, name);
    return { ...rest, spec: { ...(spec as Fields), failover } };
  };
  const only = (name: string): Fields => ({ clusterAffinity: { clusterNames: [name] } });
  const home = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
  const bySize = {
    replicaScheduling: {
      ...DIVIDED,
      weightPreference: {
        staticWeightList: [
          { targetCluster: { labelSelector: { matchLabels: { size: 'large' } } }, weight: 3 },
          { targetCluster: { labelSelector: { matchLabels: { size: 'small' } } }, weight: 1 },
        ],
      },
    },
  };
  const sizes = async (east: string, west: string): Promise<void> => {
    await edit('east', { labels: { size: east } });
    await edit('west', { labels: { size: west } });
  };
  const after = { after: '5s' };
  await sizes('large', 'small');
  await edit('east', { unschedulable: true });
  await applyInUse([
    ruled('home', home, { repatriate: after }),
    ruled('lazy', home, {}),
    deployment(namespace, 'home', 2, '100m'),
    deployment(namespace, 'lazy', 1, '100m'),
  ]);
  await settled(host, namespace, 'home', { west: 2 });
  await settled(host, namespace, 'lazy', { west: 1 });
  await edit('east', { unschedulable: null });
  await applyInUse([
    ruled('eager', only('east'), { activation: 'Eager' }),
    ruled('edited', only('east'), {}),
    ruled('shares', byWeight(1, 1), { divisionDrift: after }),
    deployment(namespace, 'eager', 2, '100m'),
    deployment(namespace, 'edited', 1, '100m'),
    ruled('sizes', bySize, { divisionDrift: after }),
    deployment(namespace, 'shares', 4, '100m'),
    deployment(namespace, 'sizes', 4, '100m'),
  ]);
  await settled(host, namespace, 'eager', { east: 2 });
  await settled(host, namespace, 'edited', { east: 1 });
  await settled(host, namespace, 'shares', { east: 2, west: 2 });
  await settled(host, namespace, 'sizes', { east: 3, west: 1 });
  await sizes('small', 'large');
  await host.apply([
    ruled('eager', only('west'), { activation: 'Eager' }),
    ruled('edited', only('west'), {}),
    ruled('shares', byWeight(3, 1), { divisionDrift: after }),
  ]);
  await settled(host, namespace, 'home', { east: 2 });
  await settled(host, namespace, 'eager', { west: 2 });
  await settled(host, namespace, 'shares', { east: 3, west: 1 });
  await settled(host, namespace, 'sizes', { east: 1, west: 3 });
  // Nothing is said of them: neither room at home nor an edit moves them.
  expect(whereAre(await podsOf(host, namespace, 'app=lazy'))).toEqual({ west: 1 });
  expect(whereAre(await podsOf(host, namespace, 'app=edited'))).toEqual({ east: 1 });
  for (const name of ['lazy', 'edited']) expect(movesOf(name)).toEqual([]);
  for (const [name, strategy, count] of [
    ['home', 'Repatriate', 2],
    ['eager', 'PolicyChanged', 2],
    ['shares', 'DivisionDrift', 1],
    ['sizes', 'DivisionDrift', 2],
  ] as const) {
    await toldOfMoves(name, { [strategy]: count });
    expect(movesOf(name)).toHaveLength(count);
  }
});

test('a virtual node that is to be emptied is, by one command, and takes pods again by another', async () => {
  const onto = { key: 'spillway.dev/virtual-node', operator: 'Exists' };
  const drain = { key: 'spillway.dev/drain', operator: 'Exists' };
  const tolerating = {
    stays: drain,
    'stays-exact': { ...drain, effect: 'NoSchedule' },
    'stays-blanket': { operator: 'Exists', effect: 'NoSchedule' },
  };
  await applyInUse([eastThenWest('5m'), deployment(namespace, 'web', 3, '100m'), alone(), strictJob()]);
  await settled(host, namespace, 'web', { east: 3 });
  await settled(host, namespace, 'work', { east: 1 });
  await host.apply(
    Object.entries(tolerating).map(([name, one]) =>
      deployment(namespace, name, 1, '50m', {}, { tolerations: [onto, one] }),
    ),
  );
  for (const name of Object.keys(tolerating)) await settled(host, namespace, name, { east: 1 });
  await untilRunning(host, namespace, 'alone');
  await kubectl(host, ['taint', 'node', 'east', 'spillway.dev/drain:NoSchedule']);
  try {
    const pods = await settled(host, namespace, 'web', { west: 3 });
    for (const name of Object.keys(tolerating))
      expect(whereAre(await podsOf(host, namespace, `app=${name}`))).toEqual({ east: 1 });
    expect(await told('alone', 'DrainedPodHeld')).toMatch(/it has no controller that would make another one$/);
    await jobIsDoneIn('west');
    expect(carriedOut()).toHaveLength(4);
    // Each of them is told on the workload's own record.
    const moves = await until('it is written down', async () => {
      const found = (await placementOf(host, namespace, 'web'))?.status?.moves;
      return found?.[0]?.count === 3 ? found : undefined;
    });
    expect(moves).toMatchObject([{ strategy: 'Drain', from: 'east', count: 3 }]);
    expect(pods).toHaveLength(3);
  } finally {
    await host.kubectl(['taint', 'node', 'east', 'spillway.dev/drain-']);
  }
  await kubectl(host, ['scale', 'deployment', 'web', '-n', namespace, '--replicas=4']);
  await settled(host, namespace, 'web', { east: 1, west: 3 });
});

test('no move begins while people have stopped them all, whoever moves pods by then; they go on by one command', async () => {
  const { process } = topology.spillway;
  const lease = ['lease', 'spillway-descheduler', '-n', SYSTEM_NAMESPACE];
  const toldOfLease = async (): Promise<string[]> =>
    (await eventsOf(host, SYSTEM_NAMESPACE, 'spillway-descheduler', 'Lease')).map(({ reason }) => reason);
  await applyInUse([eastThenWest('5m'), deployment(namespace, 'web', 2, '100m')]);
  await settled(host, namespace, 'web', { east: 2 });
  await kubectl(host, ['annotate', ...lease, `${MOVES_STOPPED_ANNOTATION}=INC-7`]);
  try {
    const annotated = Date.now();
    await until('it is told on the Lease', async () => (await toldOfLease()).includes('MovesStopped'));
    // Renewed every 5 s, and Events take a moment.
    expect(Date.now() - annotated).toBeLessThan(10_000);
    await kubectl(host, ['taint', 'node', 'east', 'spillway.dev/drain:NoSchedule']);
    const stopped = /all moves are stopped \(annotation \S+ of Lease spillway-descheduler: INC-7\)$/;
    await toldOfOne('web', 'DrainedPodHeld', stopped);
    await process.stop();
    process.restart();
    await waitReady(topology.spillway);
    const metric = /^spillway_descheduler_stopped 1$/m;
    await until('the next process moves pods, and knows of it', async () =>
      metric.test(await (await fetch(`${topology.spillway.url}/metrics`)).text()),
    );
    const since = Date.now();
    await until('nothing happens for a while', () => Date.now() - since > 7_000);
    expect(evictions()).toEqual([]);
    const pods = await podsOf(host, namespace, 'app=web');
    expect(pods.flatMap(({ metadata }) => metadata.annotations?.[RELEASED_ANNOTATION] ?? [])).toEqual([]);
    await kubectl(host, ['annotate', ...lease, `${MOVES_STOPPED_ANNOTATION}-`]);
    await settled(host, namespace, 'web', { west: 2 });
    expect(carriedOut()).toHaveLength(2);
    await until('that is told, too', async () => (await toldOfLease()).includes('MovesResumed'));
  } finally {
    await host.kubectl(['annotate', ...lease, `${MOVES_STOPPED_ANNOTATION}-`]);
    await host.kubectl(['taint', 'node', 'east', 'spillway.dev/drain-']);
  }
});

describe('a taint of effect NoExecute', () => {
  test('on the virtual nodes: pods that do not tolerate it are moved in turn, others stay, and Kubernetes evicts none', async () => {
    const drained = { key: 'drained', effect: 'NoExecute' };
    const tolerations = [
      { key: 'spillway.dev/virtual-node', operator: 'Exists' },
      { ...drained, operator: 'Exists' },
    ];
    const forAWhile = tolerations.map((one) => ('effect' in one ? { ...one, tolerationSeconds: 8 } : one));
    await applyInUse([
      eastThenWest('5m'),
      deployment(namespace, 'web', 4, '100m'),
      deployment(namespace, 'stays', 1, '100m', {}, { tolerations }),
      // One that is evicted at once, no other one being Ready first.
      deployment(namespace, 'lingers', 1, '100m', { strategy: { type: 'Recreate' } }, { tolerations: forAWhile }),
      strictJob(),
      stateful(),
    ]);
    await settled(host, namespace, 'web', { east: 4 });
    await settled(host, namespace, 'stays', { east: 1 });
    await settled(host, namespace, 'db', { east: 1 });
    await settled(host, namespace, 'lingers', { east: 1 });
    await settled(host, namespace, 'work', { east: 1 });
    // That would have all pods deleted at once.
    const byHand = await host.kubectl(['taint', 'node', 'east', 'drained:NoExecute']);
    expect(byHand.stderr).toContain('put the taint into spec.taints of MemberCluster east, or kubectl');
    const tainted = Date.now();
    await edit('east', { taints: [drained] });
    await settled(host, namespace, 'web', { west: 4 });
    await settled(host, namespace, 'db', { west: 1 });
    expect(whereAre(await podsOf(host, namespace, 'app=stays'))).toEqual({ east: 1 });
    await jobIsDoneIn('west');
    await until('its move is told on the Job, too', async () => {
      const names = [...(await toldOnWorkload('Job', 'work', 'TaintedPodMoved'))];
      return names.length === 1 && names[0]?.startsWith('work-');
    });
    await settled(host, namespace, 'lingers', { west: 1 });
    expect(carriedOut()).toHaveLength(7);
    const late = carriedOut().filter(({ objectRef }) => objectRef?.name?.startsWith('lingers-'));
    const waited = late.map((one) => Date.parse(one.requestReceivedTimestamp) - tainted);
    expect(waited).toHaveLength(1);
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(8_000);
    const deletes = host
      .auditEvents()
      .filter(({ verb, objectRef }) => verb === 'delete' && objectRef?.namespace === namespace)
      .filter(({ objectRef }) => objectRef?.resource === 'pods');
    // The virtual node ends what was evicted; the taint manager of Kubernetes has no part in it.
    expect(new Set(deletes.map(({ user }) => user?.username))).toEqual(new Set(['system:node:east']));
    const node = await read<Node>(host, '/api/v1/nodes/east');
    expect(node?.spec?.taints).toContainEqual({ key: 'drained', effect: 'NoSchedule' });
  });

  test('on the cluster: a policy tolerates it for a time, and disruption budgets hold', async () => {
    const lent = { key: 'lent-back', effect: 'NoExecute' };
    const clusterAffinity = { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] };
    const clusterTolerations = [{ ...lent, operator: 'Exists', tolerationSeconds: 8 }];
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace },
      spec: { minAvailable: 3, selector: { matchLabels: { app: 'web' } } },
    };
    await applyInUse([
      eastThenWest('5m', {
        placement: { clusterAffinity, clusterTolerations },
        failover: { cluster: { purgeMode: 'Directly' } },
      }),
      deployment(namespace, 'web', 3, '100m'),
      budget,
    ]);
    const [first] = await settled(host, namespace, 'web', { east: 3 });
    const began = Date.now();
    await edit('east', { clusterTaints: [lent] });
    expect(await told(first?.metadata.name ?? '', 'TaintedPodHeld')).toMatch(
      /^member east has taints that it does not tolerate \(lent-back:NoExecute\), and it stays there for now: it tolerates lent-back:NoExecute for so long$/,
    );
    await until('its budget is in the way', () =>
      evictions().some(({ responseStatus }) => responseStatus?.code === 429),
    );
    expect(Date.now() - began).toBeGreaterThanOrEqual(8_000);
    expect(whereAre(await podsOf(host, namespace, 'app=web'))).toEqual({ east: 3 });
    await kubectl(host, ['patch', 'pdb', 'web', '-n', namespace, '--type=merge', '-p', '{"spec":{"minAvailable":2}}']);
    await settled(host, namespace, 'web', { west: 3 });
    // Who tolerates it for ever is placed there by kube-scheduler meanwhile; that a pod tolerates it does not count.
    const inEast = { clusterAffinity: { clusterNames: ['east'] } };
    const forEver = [{ ...lent, operator: 'Exists' }];
    const tolerations = [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }, ...forEver];
    await applyInUse([
      policy(namespace, 'lender', { ...inEast, clusterTolerations: forEver }, 'lender'),
      policy(namespace, 'other', inEast, 'other'),
      deployment(namespace, 'lender', 2, '100m'),
      deployment(namespace, 'other', 1, '100m', {}, { tolerations }),
    ]);
    await settled(host, namespace, 'lender', { east: 2 });
    expect(await schedulingMessage(host, namespace, 'other')).toContain('lent-back:NoExecute');
  });

  test('by a policy, as a condition of the member says: pods are moved while it holds, and the taint goes', async () => {
    const conditionIs = async (status: 'True' | 'False'): Promise<void> => {
      const condition = { type: 'example.com/Degraded', status, reason: 'Test', message: '' };
      await until('the condition is written', async () => {
        const member = await read<MemberCluster>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
        const others = (member?.status?.conditions ?? []).filter(({ type }) => type !== condition.type);
        const conditions = [...others, { ...condition, lastTransitionTime: new Date().toISOString() }];
        const { resourceVersion } = member?.metadata ?? {};
        const patch = JSON.stringify({ metadata: { resourceVersion }, status: { conditions } });
        const how = ['--subresource=status', '--type=merge', '-p', patch];
        return (await host.kubectl(['patch', 'membercluster', 'east', ...how])).code === 0;
      });
    };
    const when = (value: string): Fields[] => [
      { conditionType: 'example.com/Degraded', operator: 'In', statusValues: [value] },
    ];
    const taintPolicy = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'ClusterTaintPolicy',
      metadata: { name: 'degraded' },
      spec: {
        addOnConditions: when('True'),
        addAfterSeconds: 3,
        removeOnConditions: when('False'),
        taints: [{ key: 'degraded', effect: 'NoExecute' }],
      },
    };
    await applyInUse([eastThenWest('5m'), deployment(namespace, 'web', 2, '100m'), taintPolicy]);
    const before = await settled(host, namespace, 'web', { east: 2 });
    await conditionIs('True');
    await settled(host, namespace, 'web', { west: 2 });
    expect(await told(before[0]?.metadata.name ?? '', 'TaintedPodMoved')).toContain('(degraded:NoExecute)');
    const { stdout } = await host.kubectl(['get', 'ctp', 'degraded']);
    expect(stdout).toMatch(/^degraded +True +True +\["east"\] /m);
    await conditionIs('False');
    const taints = async (): Promise<unknown[]> =>
      (await read<MemberCluster>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east'))?.status?.taints ?? [];
    await until('it takes pods again', async () => (await taints()).length === 0);
    await conditionIs('True');
    await until('it has the taint again', async () => (await taints()).length === 1);
    await kubectl(host, ['delete', 'clustertaintpolicy', 'degraded']);
    await until('the taint goes with its policy', async () => (await taints()).length === 0);
  });
});

describe('what a pod showed in its status', () => {
  const SAVED = 'example.com/saved';
  const WORDY = 'example.com/wordy';
  const rules = [
    { aliasLabelName: SAVED, jsonPath: `{.conditions[?(@.type=="${SAVED}")].message}` },
    { aliasLabelName: WORDY, jsonPath: `{.conditions[?(@.type=="${SAVED}")].reason}` },
  ];
  const env = [{ name: 'SAVED', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${SAVED}']` } } }];

  /** The program in the member says how far it is. */
  async function save(member: string, pod: Pod, message: string): Promise<void> {
    const { cluster } = topology.member(member);
    const conditions = [{ type: SAVED, status: 'True', reason: 'x'.repeat(64), message }];
    const { name } = pod.metadata;
    const how = ['--subresource=status', '--type=strategic', '-p', JSON.stringify({ status: { conditions } })];
    await kubectl(cluster, ['patch', 'pod', name, '-n', namespace, ...how]);
    await until('the host shows it', async () => {
      const shown = await read<Pod>(host, `/api/v1/namespaces/${namespace}/pods/${name}`);
      return shown?.status?.conditions?.some((one) => one.type === SAVED && one.message === message) === true;
    });
  }

  /** Of a pod of the host, as the API server was asked. */
  const asked = ({ metadata: { name } }: Pod, verb: string, subresource?: string): AuditEvent[] =>
    host
      .auditEvents()
      .filter(({ objectRef }) => objectRef?.resource === 'pods' && objectRef.namespace === namespace)
      .filter(({ objectRef }) => objectRef?.name === name && objectRef.subresource === subresource)
      .filter((event) => event.verb === verb && (event.responseStatus?.code ?? 0) < 300);

  const whenAsked = ({ stageTimestamp }: AuditEvent): number => Date.parse(stageTimestamp);

  test('is on the pod that comes in its place before that has a node, of a StatefulSet and of a Deployment with one replica, move after move', async () => {
    const failover = { cluster: { statePreservation: { rules } } };
    const one = deployment(namespace, 'web', 1, '100m', {}, { containers: [{ ...CONTAINER, env }] });
    await applyInUse([eastThenWest('5m', { failover }), stateful(), one, deployment(namespace, 'many', 2, '100m')]);
    await settled(host, namespace, 'many', { east: 2 });
    for (const [from, to, said] of [
      ['east', 'west', 'point-1'],
      ['west', 'east', 'point-2'],
    ] as const) {
      for (const app of ['db', 'web']) {
        const [pod] = await settled(host, namespace, app, { [from]: 1 });
        if (pod !== undefined) await save(from, pod, `${said}-${app}`);
      }
      await edit(to, { clusterTaints: null });
      await edit(from, { clusterTaints: [{ key: 'drained', effect: 'NoExecute' }] });
      for (const app of ['db', 'web']) {
        const [pod] = await settled(host, namespace, app, { [to]: 1 });
        expect(pod?.metadata.labels).toMatchObject({ app, [SAVED]: `${said}-${app}` });
        expect(pod?.metadata.labels).not.toHaveProperty([WORDY]);
        if (pod === undefined) continue;
        const [copy] = await podsOf(topology.member(to).cluster, namespace, `app=${app},${SAVED}=${said}-${app}`);
        expect(copy?.metadata.name).toBe(pod.metadata.name);
        const [before = 0, bound = 0] = [0, ...asked(pod, 'create', 'binding').map(whenAsked)].slice(-2);
        const given = asked(pod, 'patch').map(whenAsked);
        expect(given.filter((at) => before < at && at < bound)).toHaveLength(1);
      }
    }
    // Their copies were made with it: none was written to afterwards.
    const written = NAMES.flatMap((name) => topology.member(name).cluster.auditEvents())
      .filter(({ objectRef, verb }) => objectRef?.namespace === namespace && ['patch', 'update'].includes(verb))
      .filter(({ objectRef }) => objectRef?.resource === 'pods' && objectRef.subresource === undefined)
      .filter(({ objectRef }) => /^(db|web)-/.test(objectRef?.name ?? ''));
    expect(written).toEqual([]);
    const { preserved } = (await placementOf(host, namespace, 'web'))?.status ?? {};
    expect(preserved).toMatchObject([{ labels: { [SAVED]: 'point-2-web' } }]);
    const notHandedOn = [...(await eventsOf(host, namespace, 'web', 'Deployment'))];
    expect(notHandedOn.find(({ reason }) => reason === 'StateNotHandedOn')?.message).toContain(
      `${WORDY} is not handed on: by ${rules[1]?.jsonPath ?? ''} the value has 64 characters`,
    );
    const ofMany = await eventsOf(host, namespace, 'many', 'Deployment');
    expect(ofMany.find(({ reason }) => reason === 'StateNotHandedOn')?.message).toContain('there may be several pods');
  });
});

test('what a policy only rehearses is told and stays while others go, and goes without a restart when the policy says so', async () => {
  const [apiVersion, kind, name] = ['apps/v1', 'Deployment', 'tried'];
  const rehearsal = { resourceSelectors: [{ apiVersion, kind, name }], failover: { dryRun: true } };
  await applyInUse([
    eastThenWest('5m'),
    eastThenWest('5m', rehearsal, 'rehearsal'),
    deployment(namespace, 'web', 2, '100m'),
    deployment(namespace, name, 2, '100m'),
  ]);
  await settled(host, namespace, 'web', { east: 2 });
  const before = await settled(host, namespace, name, { east: 2 });
  await edit('east', { clusterTaints: [{ key: 'drained', effect: 'NoExecute' }] });
  await settled(host, namespace, 'web', { west: 2 });
  for (const { metadata } of before) {
    expect(await told(metadata.name, 'MoveWanted')).toMatch(
      /^TaintNoExecute: member east has taints .* \(drained:NoExecute\); it would be moved now, but its policy says failover\.dryRun: true$/,
    );
  }
  const pods = await podsOf(host, namespace, `app=${name}`);
  expect(pods.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
  expect(pods.flatMap(({ metadata }) => metadata.annotations?.[RELEASED_ANNOTATION] ?? [])).toEqual([]);
  const names = new Set(before.map(({ metadata }) => metadata.name));
  expect(evictions().filter(({ objectRef }) => names.has(objectRef?.name ?? ''))).toEqual([]);
  const metrics = await (await fetch(`${topology.spillway.url}/metrics`)).text();
  expect(metrics.split('\n')).toContainEqual(
    expect.stringMatching(/^spillway_descheduler_moves_total\{.*strategy="TaintNoExecute".*outcome="wanted".*\} 2$/),
  );
  const inEarnest = JSON.stringify({ spec: { failover: { dryRun: false } } });
  await kubectl(host, ['patch', 'placementpolicy', 'rehearsal', '-n', namespace, '--type=merge', '-p', inEarnest]);
  await settled(host, namespace, name, { west: 2 });
});

test('nor does what a policy only rehearses go for an edit of it, or a drain: each says so under its own name', async () => {
  const failover = { dryRun: true, activation: 'Eager' };
  const only = (member: string): Fields => {
    const { spec, ...rest } = policy(namespace, 'all', { clusterAffinity: { clusterNames: [member] } });
    return { ...rest, spec: { ...(spec as Fields), failover } };
  };
  await applyInUse([only('east'), deployment(namespace, 'web', 2, '100m')]);
  const before = await settled(host, namespace, 'web', { east: 2 });
  const toldOf = async (strategy: string): Promise<string> =>
    await until(
      `it says ${strategy}`,
      async () => {
        const all = await Promise.all(before.map(({ metadata }) => eventsOf(host, namespace, metadata.name)));
        return all.flat().find(({ reason, message }) => reason === 'MoveWanted' && message.startsWith(`${strategy}: `))
          ?.message;
      },
      { timeoutMs: 90_000 },
    );
  const rehearsed = /; it would be moved now, but its policy says failover\.dryRun: true$/;
  await host.apply([only('west')]);
  expect(await toldOf('PolicyChanged')).toMatch(rehearsed);
  await host.kubectl(['taint', 'node', 'east', 'spillway.dev/drain:NoSchedule']);
  onTestFinished(async () => void (await host.kubectl(['taint', 'node', 'east', 'spillway.dev/drain-'])));
  expect(await toldOf('Drain')).toMatch(rehearsed);
  const pods = await podsOf(host, namespace, 'app=web');
  const uids = (all: readonly Pod[]): unknown => new Set(all.map(({ metadata }) => metadata.uid));
  expect(uids(pods)).toEqual(uids(before));
  expect(pods.flatMap(({ metadata }) => metadata.annotations?.[RELEASED_ANNOTATION] ?? [])).toEqual([]);
  expect(evictions()).toEqual([]);
});

test('a descheduler that is to move nothing says what it would move, in Events and its metric, and writes to no pod', async () => {
  const { spillway, extenderPort = 0 } = topology;
  await applyInUse([eastThenWest('5m'), deployment(namespace, 'web', 2, '100m')]);
  const before = await settled(host, namespace, 'web', { east: 2 });
  await spillway.process.stop();
  const configuration = { ...CONFIGURATION, descheduler: { dryRun: true } };
  const dry = await startSpillway(host, { name: 'dry', logLevel: 'debug', extenderPort, configuration });
  try {
    await edit('east', { clusterTaints: [{ key: 'drained', effect: 'NoExecute' }] });
    for (const { metadata } of before) {
      expect(await told(metadata.name, 'MoveWanted')).toMatch(
        /^TaintNoExecute: member east has taints .* \(drained:NoExecute\); it would be moved now, but descheduler\.dryRun is set$/,
      );
    }
    const metrics = await (await fetch(`${dry.url}/metrics`)).text();
    const counted = metrics
      .split('\n')
      .filter((line) => /^spillway_descheduler_moves_total\{.*member="east"/.test(line));
    expect(counted).toContainEqual(expect.stringMatching(/outcome="wanted".*\} 2$/));
    expect(counted.filter((line) => line.includes('outcome="moved"'))).toEqual([]);
    const since = Date.now();
    await until('nothing happens for a while', () => Date.now() - since > 2_000);
    expect(evictions()).toEqual([]);
    const pods = await podsOf(host, namespace, 'app=web');
    expect(pods.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
    expect(pods.flatMap(({ metadata }) => metadata.annotations?.[RELEASED_ANNOTATION] ?? [])).toEqual([]);
  } finally {
    await dry.process.stop();
    spillway.process.restart();
    await waitReady(spillway);
  }
});

describe('limits of the configuration', () => {
  /** Of two members that are emptied at once the total is the limit, and not what each of them may have. */
  const RATES = { movesPerSecond: 1, movesPerSecondPerMember: 2 };
  let strict: Spillway;

  beforeAll(async () => {
    const { spillway, extenderPort = 0 } = topology;
    await spillway.process.stop();
    const configuration = { ...CONFIGURATION, descheduler: { ...RATES, movesPerPodPerHour: 1 } };
    strict = await startSpillway(host, { name: 'strict', logLevel: 'debug', extenderPort, configuration });
  });
  afterAll(async () => {
    const { spillway } = topology;
    await strict?.process.stop();
    spillway.process.restart();
    await waitReady(spillway);
    expect(errorsOf(strict)).toEqual([]);
  });
  afterEach(async () => {
    for (const name of NAMES) await drain(name, '-');
  });

  async function drain(name: string, how: ':NoSchedule' | '-'): Promise<void> {
    await host.kubectl(['taint', 'node', name, `spillway.dev/drain${how}`]);
  }

  test('two members that are emptied at once follow the total rate', async () => {
    const size = 9;
    // A process that has just begun knows no room in members yet: pods of theirs would be at home.
    await kubectl(host, ['cordon', LOCAL_NODE]);
    onTestFinished(async () => void (await host.kubectl(['uncordon', LOCAL_NODE])));
    for (const name of NAMES) {
      const clusterAffinity = { clusterNames: [name], overflowAffinities: [{ clusterNames: ['local'] }] };
      const { spec, ...rest } = policy(namespace, name, { clusterAffinity }, `of-${name}`);
      // Each goes in its turn, and waits for nobody.
      const failover = { cluster: { purgeMode: 'Directly' } };
      await host.apply([{ ...rest, spec: { ...(spec as Fields), failover } }]);
      await policyInUse(host, namespace, name);
    }
    await host.apply(NAMES.map((name) => deployment(namespace, `of-${name}`, size, '10m')));
    for (const name of NAMES) await settled(host, namespace, `of-${name}`, { [name]: size });
    await kubectl(host, ['uncordon', LOCAL_NODE]);
    await Promise.all(NAMES.map(async (name) => await drain(name, ':NoSchedule')));
    for (const name of NAMES) await settled(host, namespace, `of-${name}`, { local: size });
    for (const name of NAMES) expect(movesOf(`of-${name}`)).toHaveLength(size);
    // Of one that changed just then nothing came, and its turn is over all the same.
    const times = NAMES.map((name) =>
      evictions()
        .filter(({ objectRef }) => objectRef?.name?.startsWith(`of-${name}-`))
        .map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp)),
    );
    // From when both are emptied, and while nothing but their turn holds them.
    const from = Math.max(...times.map((some) => Math.min(...some)));
    const turns = times
      .flat()
      .filter((time) => time >= from)
      .toSorted((a, b) => a - b)
      .slice(0, 8);
    const rate = (turns.length - 1) / (((turns.at(-1) ?? Number.NaN) - from) / 1_000);
    const seen = times.map((some) => some.map((time) => time - from)).join('; ');
    expect(rate, seen).toBeLessThan(RATES.movesPerSecond * 1.1);
    expect(rate, seen).toBeGreaterThan(RATES.movesPerSecond * 0.8);
  });

  test('no more pods of a workload than it has are moved within an hour, over a kill of the manager; those that are left say so', async () => {
    await host.apply([eastThenWest('5m')]);
    await policyInUse(host, namespace, 'all');
    await host.apply([deployment(namespace, 'web', 2, '100m')]);
    await settled(host, namespace, 'web', { east: 2 });
    await drain('east', ':NoSchedule');
    await settled(host, namespace, 'web', { west: 2 });
    await scale(host, namespace, 'web', 3);
    await settled(host, namespace, 'web', { west: 3 });
    await drain('east', '-');
    await drain('west', ':NoSchedule');
    // One more makes as many as it has.
    await settled(host, namespace, 'web', { east: 1, west: 2 });
    const words =
      /: pods of its workload were moved too often \(3 times within an hour; descheduler\.movesPerPodPerHour is 1\)$/;
    await toldOfOne('web', 'DrainedPodHeld', words);
    await toldOfMoves('web', { Drain: 3 });
    await strict.process.stop('SIGKILL');
    await kubectl(host, ['delete', 'events', '--all', '-n', namespace]);
    strict.process.restart();
    await waitReady(strict);
    // The next process has looked, too, and says so itself.
    await toldOfOne('web', 'DrainedPodHeld', words);
    expect(whereAre(await podsOf(host, namespace, 'app=web'))).toEqual({ east: 1, west: 2 });
    expect(movesOf('web')).toHaveLength(3);
  });
});

test('a field of a policy that can never act is named in its condition, until it can', async () => {
  const vain = eastThenWest('5m', { placement: { clusterAffinity: { clusterNames: ['east'] } } });
  const failover = { repatriate: { after: '10m' } };
  await host.apply([{ ...vain, spec: { ...(vain['spec'] as Fields), failover } }]);
  const consistent = async (status: 'True' | 'False'): Promise<string> =>
    await until(`Consistent is ${status}`, async () => {
      const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/placementpolicies/all`;
      const { conditions = [] } = (await read<PlacementPolicy>(host, path))?.status ?? {};
      return conditions.find((one) => one.type === 'Consistent' && one.status === status)?.message;
    });
  expect(await consistent('False')).toMatch(/^spec\.failover\.repatriate: moves nothing: /);
  await host.apply([eastThenWest('5m', { failover })]);
  await consistent('True');
});
