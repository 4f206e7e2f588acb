import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { AuditEvent } from '../../hack/audit-log.ts';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { manifest } from '../../hack/manifest.ts';
import { serviceAccountKubeconfig } from '../../hack/service-account.ts';
import {
  installSpillway,
  type Spillway,
  startSpillway,
  SYSTEM_NAMESPACE,
  waitForNode,
  waitReady,
} from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { EXTENDER_RESOURCE, RELEASED_ANNOTATION } from '../../src/api/marks.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { controllerOf } from '../../src/kube/owner-references.ts';
import type { FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';
import {
  describeWrite,
  eventsOf,
  type Fields,
  isReady,
  kubectl,
  newNamespace,
  pod,
  podsOf,
  read,
  writesOfAll,
} from '../fixtures/live-pods.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { burstSpec, deployment, policy, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { proxyOfHost, report, violationsOf, wait } from './lab.ts';
import { holdNth, type Moment } from './nth-write.ts';

/**
 * A pod of a Deployment leaves a member that answers, and another one is Ready in its place before. The program reaches the host and both
 * members through proxies only: they cut lines, and hold the request at which it is killed.
 */
const NAMES = ['east', 'west'] as const;
/** Has no nodes and takes no pods: it counts, among the members that answer or do not. */
const THIRD = 'north';
/** More than a move has; the loop ends at the first number that is not reached. */
const MOST_SITES = 60;
/** Longer than the Leases of the program last. */
const CUT_MS = 20_000;
/** Released, made in its place, told to be Ready, evicted, ended there, ended here. */
const OF_A_MOVE = [
  'PATCH pods (host)',
  'POST pods (west)',
  'PATCH pods/status (host)',
  'POST pods/eviction (host)',
  'DELETE pods (east)',
  'DELETE pods (host)',
];
/** A readiness gate: the test says when a pod is Ready. */
const GATE = 'example.com/go';

let workspace: Workspace;
let host: Cluster;
let spillway: Spillway;
const members = new Map<string, Cluster>();
const proxies: Record<string, FaultProxy> = {};

beforeAll(async () => {
  workspace = Workspace.create();
  const extenderPort = await freePort();
  const started = NAMES.map(async (name, index) => {
    const serviceCidr = `10.${String(120 + index)}.0.0/16`;
    const member = await startCluster(workspace, { name, audit: true, serviceCidr });
    await startKwok(member, { nodes: 2, cpu: '8', prefix: name });
    members.set(name, member);
  });
  const third = startCluster(workspace, { name: THIRD, serviceCidr: '10.122.0.0/16' });
  [host] = await Promise.all([startCluster(workspace, { name: 'host', audit: true, extenderPort }), ...started]);
  members.set(THIRD, await third);
  await installSpillway(host);
  await host.apply(manifest('scheduler/descheduler.yaml'));
  await host.apply(manifest('scheduler/extender-pods.yaml'));
  await until('pods get the mark', areMarked);
  const toHost = await proxyOfHost(host);
  proxies['host'] = toHost;
  const kubeconfig = join(host.dir, 'manager.kubeconfig');
  const access = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-manager');
  writeFileSync(kubeconfig, access.replaceAll(host.server, toHost.url), { mode: 0o600 });
  spillway = await startSpillway(host, { kubeconfig, extenderPort, args: ['--host-identity', 'NodeCertificate'] });
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 60 };
  for (const name of [...NAMES, THIRD])
    proxies[name] = await addProxiedMember(host, memberOf(name), { spec: { probe } });
  await Promise.all(NAMES.map((name) => waitForNode(host, name)));
});
afterAll(async () => {
  await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
  await workspace?.close();
});

/**
 * What comes while the program is killed waits for it. Without the mark the scheduler goes on alone, which knows no cluster taints:
 * the next pod may be bound to the member that the first one leaves, and has to leave it as well.
 */
async function areMarked(): Promise<boolean> {
  const input = JSON.stringify(pod('probe', 'default', burstSpec('1')));
  const made = await kubectl(host, ['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input });
  return made.includes(EXTENDER_RESOURCE);
}

function memberOf(name: string): Cluster {
  const found = members.get(name);
  if (found === undefined) throw new Error(`there is no member ${name}`);
  return found;
}

async function taint(on: boolean): Promise<void> {
  const clusterTaints = on ? [{ key: 'drained', effect: 'NoExecute' }] : null;
  await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { clusterTaints } });
}
beforeEach(async () => {
  for (const proxy of Object.values(proxies)) proxy.clear();
  await taint(false);
  await until('the program knows that the taint is gone', async () => {
    const member = await read<MemberCluster>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
    return member?.status?.observedGeneration === member?.metadata.generation;
  });
});

/** East first, then west. */
async function prepare(namespace: string, failover: Fields = {}): Promise<void> {
  await newNamespace(host, namespace);
  const clusterAffinity = { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] };
  const { spec, ...rest } = policy(namespace, 'all', { clusterAffinity });
  await host.apply([{ ...rest, spec: { ...(spec as Fields), failover } }]);
  await policyInUse(host, namespace, 'all');
}

function cut(side: string): void {
  proxies[side]?.inject({ kind: 'reset', when: 'before' });
  proxies[side]?.resetConnections();
}

const isReleased = ({ metadata }: Pod): boolean => metadata.annotations?.[RELEASED_ANNOTATION] !== undefined;
const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

/** One pod runs in west, of its ReplicaSet, with its copy, and nothing else is anywhere. */
async function isMoved(namespace: string): Promise<boolean> {
  const pods = await podsOf(host, namespace);
  const [east = [], west = []] = await Promise.all(NAMES.map((name) => podsOf(memberOf(name), namespace)));
  const copies = new Set(west.map(({ metadata }) => metadata.labels?.['spillway.dev/uid']));
  const isRight = (pod: Pod): boolean =>
    pod.spec.nodeName === 'west' &&
    isReady(pod) &&
    !isReleased(pod) &&
    !isGoing(pod) &&
    controllerOf(pod) !== undefined &&
    copies.has(pod.metadata.uid);
  if (pods.length === 1 && pods.every(isRight) && west.length === 1 && east.length === 0) return true;
  const counts = `${JSON.stringify(whereAre(pods))}, released ${String(pods.filter(isReleased).length)}`;
  throw new Error(`${namespace}: ${counts}; copies ${String(east.length)} in east, ${String(west.length)} in west`);
}

/** Requests about pods that were carried out. */
function done(cluster: Cluster, namespace: string, verb: string, subresource?: string): AuditEvent[] {
  return writesOfAll(cluster).filter(
    (event) =>
      event.verb === verb &&
      event.objectRef?.resource === 'pods' &&
      event.objectRef.subresource === subresource &&
      event.objectRef.namespace === namespace &&
      (event.responseStatus?.code ?? 500) < 300,
  );
}

/** The pod was evicted once, one was made in its place, and no copy was made twice. */
function expectMovedOnce(namespace: string): void {
  const evicted = done(host, namespace, 'create', 'eviction').map(({ objectRef }) => objectRef?.name);
  const made = NAMES.map((name) => done(memberOf(name), namespace, 'create').map(({ objectRef }) => objectRef?.name));
  const all = writesOfAll(host)
    .filter(({ objectRef }) => objectRef?.namespace === namespace)
    .map((event) => `${event.requestReceivedTimestamp} ${event.user.username} ${describeWrite(event)}`);
  const message = `${namespace}: evicted ${evicted.join()}, made ${JSON.stringify(made)}\n${all.join('\n')}`;
  expect([evicted.length, made.map(({ length }) => length)], message).toEqual([1, [1, 1]]);
  expect(done(host, namespace, 'create'), message).toHaveLength(2);
}

describe('the mover is killed', () => {
  /** Of that namespace, or namespaces themselves, which the first copy brings with it. */
  const isWrite = (namespace: string): ((request: ProxiedRequest) => boolean) => {
    const own = new RegExp(`/namespaces/${namespace}(/|$)`);
    return ({ method, path }) =>
      method !== 'GET' && (own.test(path) || (method === 'POST' && path === '/api/v1/namespaces'));
  };

  /** Like `POST pods/eviction (host)`. */
  function inWords(side: string, { method, path }: ProxiedRequest): string {
    const [resource = 'namespaces', , sub] = path.split('/namespaces/')[1]?.split('/').slice(1) ?? [];
    return `${method} ${resource}${sub === undefined ? '' : `/${sub}`} (${side})`;
  }

  /** Moves one pod, and kills the program at its n-th write since of those that match, if there is one. Answers which that was. */
  async function moveAndKill(
    namespace: string,
    when: Moment,
    site: number,
    kind?: string,
  ): Promise<string | undefined> {
    await prepare(namespace);
    await host.apply([deployment(namespace, 'web', 1, '100m')]);
    await settled(host, namespace, 'web', { east: 1 });
    let words: string | undefined;
    const what = `the move is over, killed ${when} write ${String(site)}`;
    const isOver = async (): Promise<boolean> => await isMoved(namespace);
    const isOwn = isWrite(namespace);
    const matches = (request: ProxiedRequest, side: string): boolean =>
      isOwn(request) && (kind === undefined || kind === inWords(side, request));
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      const held = holdNth(proxies, matches, site, when);
      await taint(true);
      await until(what, async () => held.found !== undefined || (await isOver()), { timeoutMs: 60_000 });
      held.remove();
      if (held.found === undefined) return;
      words = inWords(held.found.side, held.found.request);
      await spillway.process.stop('SIGKILL');
      spillway.process.restart();
      await waitReady(spillway);
      await until(`${what}, ${words}`, isOver, { timeoutMs: 120_000 });
    });
    expect(fewest, what).toBe(1);
    expectMovedOnce(namespace);
    await taint(false);
    await kubectl(host, ['delete', 'namespace', namespace, '--wait=false']);
    return words;
  }

  test('F67: at every write of a graceful move', { timeout: 2_400_000 }, async (context) => {
    const sites: string[] = [];
    const killed = async (name: string, when: Moment, site: number, kind?: string): Promise<boolean> => {
      const words = await moveAndKill(`moves-${when}-${name}`, when, site, kind);
      if (words === undefined) return false;
      console.info(`${when} ${name}: ${words}`);
      sites.push(`${when} ${words}`);
      return true;
    };
    for (const when of ['before', 'after'] as const) {
      for (let site = 1; site <= MOST_SITES && (await killed(String(site), when, site)); site++);
    }
    // Writes come in another order now and then, so that one may never have been the n-th.
    for (const when of ['before', 'after'] as const) {
      for (const [index, kind] of OF_A_MOVE.entries()) {
        if (sites.includes(`${when} ${kind}`)) continue;
        expect(await killed(`kind-${String(index)}`, when, 1, kind), `${when} ${kind}`).toBe(true);
      }
    }
    expect(violationsOf(spillway)).toEqual([]);
    const kinds = new Set(sites.map((site) => site.replace(/^\w+ /, ''))).size;
    const figures = `${String(sites.length)} crash sites, ${String(kinds)} kinds of writes; at each 1 eviction, 1 pod in its place, 1 Ready all the time`;
    report(context, ['F67'], 'found and finished, nothing orphaned', figures);
  });
});

describe('a line is cut in the middle of a move', () => {
  const gated = (namespace: string): Fields =>
    deployment(namespace, 'web', 1, '100m', {}, { readinessGates: [{ conditionType: GATE }] });

  async function ungated(namespace: string): Promise<Pod[]> {
    const pods = await podsOf(host, namespace);
    return pods.filter((pod) => !isReady(pod) && pod.spec.nodeName !== undefined && !isGoing(pod));
  }

  /** From now on those that come may be Ready. */
  async function openAll(namespace: string): Promise<void> {
    for (const { metadata } of await ungated(namespace)) {
      const status = { conditions: [{ type: GATE, status: 'True', lastTransitionTime: new Date().toISOString() }] };
      const how = ['--subresource=status', '--type=strategic', '-p', JSON.stringify({ status })];
      await kubectl(host, ['patch', 'pod', metadata.name, '-n', namespace, ...how]);
    }
  }

  /** One pod that serves in east, under a policy with that. */
  async function serving(namespace: string, failover: Fields = {}): Promise<Pod> {
    await prepare(namespace, failover);
    await host.apply([gated(namespace)]);
    await until('it is bound', async () => (await ungated(namespace)).length === 1);
    await openAll(namespace);
    const [only] = await settled(host, namespace, 'web', { east: 1 });
    if (only === undefined) throw new Error(`${namespace}: no pod is there`);
    return only;
  }

  /** It is to leave. */
  async function releasedNow(namespace: string): Promise<void> {
    await taint(true);
    await until('one is released, and another one waits in west', async () => {
      const released = (await podsOf(host, namespace)).some(isReleased);
      return released && (await ungated(namespace)).some(({ spec }) => spec.nodeName === 'west');
    });
  }

  /** @returns how long that took, in ms. */
  async function movedWhenOpen(namespace: string, side: string): Promise<number> {
    const began = Date.now();
    await until(
      `it is in west after the line to ${side} was cut`,
      async () => {
        await openAll(namespace);
        return await isMoved(namespace);
      },
      { timeoutMs: 120_000 },
    );
    return Date.now() - began;
  }

  test.for(['host', ...NAMES])('F68: to %s', async (side, context) => {
    const namespace = `cut-${side}`;
    await serving(namespace);
    let tookMs = 0;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      await releasedNow(namespace);
      cut(side);
      await wait(CUT_MS);
      expect(done(host, namespace, 'create', 'eviction')).toEqual([]);
      expect((await podsOf(host, namespace)).filter(isReleased)).toHaveLength(1);
      proxies[side]?.clear();
      tookMs = await movedWhenOpen(namespace, side);
    });
    expect(fewest).toBe(1);
    expectMovedOnce(namespace);
    expect(violationsOf(spillway)).toEqual([]);
    const figures = `line to ${side} cut for ${String(CUT_MS / 1_000)} s: moved ${(tookMs / 1_000).toFixed(1)} s after it, 1 eviction, 1 Ready all the time`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });

  /** Over long before the line is back. */
  const GRACE_SECONDS = 8;

  test('F68: to east, for longer than gracePeriodSeconds: the time is not up, whatever onTimeout says, and begins anew', async (context) => {
    const namespace = 'cut-east-in-time';
    await serving(namespace, { cluster: { gracePeriodSeconds: GRACE_SECONDS, onTimeout: 'Evict' } });
    let tookMs = 0;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      await releasedNow(namespace);
      cut('east');
      await wait(CUT_MS);
      proxies['east']?.clear();
      await wait((GRACE_SECONDS * 1_000) / 2);
      expect(done(host, namespace, 'create', 'eviction')).toEqual([]);
      tookMs = await movedWhenOpen(namespace, 'east');
    });
    expect(fewest).toBe(1);
    expectMovedOnce(namespace);
    expect(violationsOf(spillway)).toEqual([]);
    const figures = `line to east cut for ${String(CUT_MS / 1_000)} s with gracePeriodSeconds ${String(GRACE_SECONDS)} and onTimeout Evict: no eviction until ${String(GRACE_SECONDS / 2)} s after it, moved ${(tookMs / 1_000).toFixed(1)} s later, 1 Ready all the time`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });

  test('F68: to west, for longer than gracePeriodSeconds: what serves is given back', async (context) => {
    const namespace = 'cut-west-in-time';
    const only = await serving(namespace, { cluster: { gracePeriodSeconds: GRACE_SECONDS, onTimeout: 'GiveBack' } });
    const own = async (): Promise<Pod[]> => (await podsOf(host, namespace)).filter((pod) => !isGoing(pod));
    let tookMs = 0;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      await releasedNow(namespace);
      cut('west');
      const since = Date.now();
      await until('its ReplicaSet has it again, and it alone', async () => {
        const [first, ...others] = await own();
        const isBack = first !== undefined && !isReleased(first) && controllerOf(first) !== undefined;
        return isBack && others.length === 0 && first.metadata.uid === only.metadata.uid;
      });
      tookMs = Date.now() - since;
      await wait(CUT_MS - tookMs);
      proxies['west']?.clear();
      await until('nothing is left in west', async () => {
        const copies = await podsOf(memberOf('west'), namespace);
        return copies.length === 0 && (await podsOf(host, namespace)).length === 1;
      });
    });
    expect(fewest).toBe(1);
    expect(done(host, namespace, 'create', 'eviction')).toEqual([]);
    expect(violationsOf(spillway)).toEqual([]);
    const figures = `line to west cut for ${String(CUT_MS / 1_000)} s with gracePeriodSeconds ${String(GRACE_SECONDS)}: given back after ${(tookMs / 1_000).toFixed(1)} s, 0 evictions, 1 Ready all the time, nothing left in west`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });
});

describe('most members are cut off', () => {
  /** A member is looked at for 15 s before its pods are moved, and the policy says 1 s. */
  const LONG_MS = 30_000;
  const PODS = 3;

  const paused = async (): Promise<number> => {
    const text = await (await fetch(`${spillway.url}/metrics`)).text();
    return Number(/^spillway_descheduler_paused\S* (\d+)$/m.exec(text)?.[1]);
  };
  /** Condition MovesAllowed of a member, as `False MovesPaused: message`; nothing when it has none. */
  const movesAllowed = async (name: string): Promise<string> => {
    const member = await read<MemberCluster>(host, `/apis/spillway.dev/v1alpha1/memberclusters/${name}`);
    const found = member?.status?.conditions?.find(({ type }) => type === 'MovesAllowed');
    return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`;
  };
  const untilAllowed = async (name: string): Promise<void> => {
    await until(`MovesAllowed of ${name} is True`, async () => {
      const now = await movesAllowed(name);
      if (now.startsWith('True NotPaused: ')) return true;
      throw new Error(`it is ${now}`);
    });
  };

  test('F56: two of three at once, though all pods would fit into the third', async (context) => {
    const namespace = 'cut-most';
    await prepare(namespace, { onMemberLost: { after: '1s' } });
    await host.apply([deployment(namespace, 'web', PODS, '100m')]);
    await settled(host, namespace, 'web', { east: PODS });
    const uids = async (): Promise<Set<string | undefined>> =>
      new Set((await podsOf(host, namespace)).map(({ metadata }) => metadata.uid));
    const before = await uids();
    for (const name of ['east', THIRD]) cut(name);
    await until('moves are paused', async () => (await paused()) === 1, { timeoutMs: 60_000 });
    const since = Date.now();
    const told = await until('it is told of both', async () => {
      const all = await eventsOf(host, 'default', 'east', 'MemberCluster');
      return all.find(({ reason }) => reason === 'MovesPaused')?.message;
    });
    expect(told).toMatch(/2 of 3 members do not answer.*spec\.clusterTaints/);
    for (const name of ['east', THIRD]) {
      const said = await until(`${name} says so`, async () => {
        const now = await movesAllowed(name);
        return now.startsWith('False MovesPaused: ') ? now : undefined;
      });
      expect(said).toContain('2 of 3 members do not answer');
      // Ready to be pasted.
      const way = `kubectl patch membercluster ${name} --type=merge -p '{"spec":{"clusterTaints":[{"key":"gone","effect":"NoExecute"}]}}'`;
      expect(said).toContain(way);
    }
    expect(await movesAllowed('west')).toBe('');
    await wait(LONG_MS - (Date.now() - since));
    expect(await uids()).toEqual(before);
    expect(done(host, namespace, 'create', 'eviction')).toEqual([]);
    expect(await movesAllowed('east')).toMatch(/^False MovesPaused: /);

    proxies[THIRD]?.clear();
    const answers = Date.now();
    await until(
      'one of three is lost: its pods are replaced',
      async () => {
        return whereAre(await podsOf(host, namespace))['west'] === PODS;
      },
      { timeoutMs: 90_000 },
    );
    const tookMs = Date.now() - answers;
    expect(await paused()).toBe(0);
    // Also of the one that is lost still.
    for (const name of ['east', THIRD]) await untilAllowed(name);
    expect(done(host, namespace, 'create', 'eviction')).toHaveLength(PODS);
    proxies['east']?.clear();
    await until(
      'one copy is left of each',
      async () => {
        const copies = await Promise.all(NAMES.map(async (name) => await podsOf(memberOf(name), namespace)));
        return copies.map(({ length }) => length).join() === `0,${String(PODS)}`;
      },
      { timeoutMs: 60_000 },
    );
    for (const name of ['east', THIRD]) await untilAllowed(name);
    expect(violationsOf(spillway)).toEqual([]);
    const figures = `2 of 3 for ${String(LONG_MS / 1_000)} s: 0 evictions; when 1 of them answered, ${String(PODS)} pods of the other replaced within ${(tookMs / 1_000).toFixed(1)} s`;
    report(context, ['F56'], 'nothing is evicted', figures);
  });
});
