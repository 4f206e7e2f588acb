import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { manifest } from '../../hack/manifest.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { gang, memberClaim, withClaim } from '../fixtures/bound-workloads.ts';
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
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { burstSpec, deployment, policy, policyInUse, scale, settled, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/**
 * Two members behind lines that can be cut. What runs in the one that is cut off goes on: the word of the administrator is wrong in
 * all of these tests, so that what comes back with it is seen.
 */
let topology: Topology;
let host: Cluster;
const proxies = new Map<string, FaultProxy>();
const disks: Provisioner[] = [];
const NAMES = ['east', 'west'];
const PATIENT = { timeoutMs: 60_000 };
const TAINT = 'node.kubernetes.io/out-of-service';
const EAST = '/apis/spillway.dev/v1alpha1/memberclusters/east';

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    // Else each pod is written to once more, ten seconds after it is bound, and an eviction of that moment is tried again.
    spillway: { configuration: { outages: { toleration: 'Keep' } } },
    members: NAMES.map((name) => ({
      name,
      kwok: { nodes: 2, cpu: '8', stages: [jobsThatRun({ durationMilliseconds: 3_600_000 })] },
      unregistered: true,
    })),
  });
  ({ host } = topology);
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 1 };
  for (const name of NAMES) {
    proxies.set(name, await addProxiedMember(host, topology.member(name).cluster, { spec: { probe } }));
  }
  await Promise.all(NAMES.map((name) => waitForNode(host, name)));
  for (const name of ['descheduler', 'gangs']) await host.apply(manifest(`scheduler/${name}.yaml`));
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  for (const name of NAMES) {
    const { cluster } = topology.member(name);
    disks.push(startProvisioner(cluster));
    await cluster.apply([diskClass('disk', { metadata: { name: 'disk', annotations: isDefault } })]);
  }
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  for (const one of [...disks, ...proxies.values()]) await one.close();
  await topology?.close();
  expect(errors).toEqual([]);
});

let namespace = '';
let count = 0;
beforeEach(async () => {
  namespace = await newNamespace(host, `fenced-${(count += 1)}`);
});
afterEach(async () => {
  heal();
  await host.kubectl(['taint', 'node', 'east', `${TAINT}-`]);
  await until('east answers', async () => (await conditionOf('Reachable'))?.status === 'True');
  await kubectl(host, ['delete', 'namespace', namespace, '--wait=false']);
  await until('no pods are left', async () => {
    const left = await Promise.all(
      [host, ...NAMES.map((name) => topology.member(name).cluster)].map(async (one) => await podsOf(one, namespace)),
    );
    const names = left.map((pods) => pods.map(({ metadata }) => metadata.name));
    if (names.flat().length > 0) throw new Error(`of host, ${NAMES.join(', ')}: ${JSON.stringify(names)}`);
    return true;
  });
});

async function cut(): Promise<void> {
  const proxy = proxies.get('east');
  proxy?.inject({ kind: 'reset', when: 'before' });
  proxy?.resetConnections();
  await until('east is lost', async () => (await conditionOf('Reachable'))?.status === 'False');
}

function heal(): void {
  proxies.get('east')?.clear();
}

async function taint(effect: 'NoSchedule' | 'NoExecute'): Promise<void> {
  await kubectl(host, ['taint', 'node', 'east', `${TAINT}=nodeshutdown:${effect}`]);
}

async function conditionOf(type: string) {
  const member = await read<MemberCluster>(host, EAST);
  return member?.status?.conditions?.find((one) => one.type === type);
}

/** Of the one pod of that app, or of any of its pods. */
async function toldOfOne(app: string, reason: string): Promise<string> {
  const names = (await podsOf(host, namespace, `app=${app}`)).map(({ metadata }) => metadata.name);
  return await Promise.any(names.map(async (name) => await told(name, reason)));
}

async function endedUids(): Promise<string[]> {
  return Object.keys((await read<MemberCluster>(host, EAST))?.status?.fencing?.pods ?? {});
}

/** East first, then west. */
function eastThenWest(onMemberLost: Fields, name = 'all'): Fields {
  const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
  const { spec, ...rest } = policy(namespace, name, placement);
  const kinds = ['Deployment', 'StatefulSet'].map((kind) => ({ apiVersion: 'apps/v1', kind }));
  const selectors = [...kinds, { apiVersion: 'batch/v1', kind: 'Job' }];
  return { ...rest, spec: { ...(spec as Fields), resourceSelectors: selectors, failover: { onMemberLost } } };
}

function stateful(): Fields {
  const { kind: _, spec, ...rest } = deployment(namespace, 'db', 1, '100m');
  return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: 'db' } };
}

function job(name = 'work', more: Fields = { podReplacementPolicy: 'Failed' }): Fields {
  const template = { metadata: { labels: { app: name } }, spec: burstSpec('100m', { restartPolicy: 'Never' }) };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace },
    spec: { backoffLimit: 5, ...more, template },
  };
}

function alone(): Fields {
  return { ...pod('alone', namespace, burstSpec('100m', { nodeName: 'east' })) };
}

const uidsOf = (pods: readonly Pod[]): string[] => pods.flatMap(({ metadata }) => metadata.uid ?? []);

/** What was written to pods of the namespace in east since, in order. */
function writesInEast(from: number): AuditEvent[] {
  return topology
    .member('east')
    .cluster.auditEvents()
    .filter(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp) >= from)
    .filter(({ objectRef, user }) => objectRef?.namespace === namespace && (user?.username ?? '').includes('spillway'))
    .filter(({ verb, objectRef }) => objectRef?.resource === 'pods' && ['create', 'delete', 'patch'].includes(verb));
}

async function told(name: string, reason: string): Promise<string> {
  return await until(
    `${name} is told ${reason}`,
    async () => (await eventsOf(host, namespace, name)).find((event) => event.reason === reason)?.message,
    PATIENT,
  );
}

/** Each has one copy, in west; those of before are gone in both clusters. */
async function allAreIn(where: string, apps: Readonly<Record<string, number>>): Promise<void> {
  for (const [app, size] of Object.entries(apps)) {
    await until(
      `${app} runs in ${where} alone`,
      async () => {
        const pods = await podsOf(host, namespace, `app=${app}`);
        return whereAre(pods)[where] === size && pods.length === size;
      },
      PATIENT,
    );
  }
}

/** Answers the pods once there are so many. */
async function scaled(app: string, size: number): Promise<Pod[]> {
  await scale(host, namespace, app, size);
  return await until(`${app} has ${size} pods`, async () => {
    const pods = await podsOf(host, namespace, `app=${app}`);
    return pods.length === size && pods.every(isReady) && pods;
  });
}

describe('a lost member whose virtual node an administrator takes out of service', () => {
  test('gives all pods up that somebody makes anew, one after the other; what comes back is ended first, over a kill of the manager', async () => {
    const { spec, ...lostSoon } = eastThenWest({ after: '1s' }, 'bound');
    const resourceSelectors = ['ring', 'keeper'].map((name) => ({ apiVersion: 'apps/v1', kind: 'Deployment', name }));
    await host.apply([
      eastThenWest({ after: '24h' }),
      { ...lostSoon, spec: { ...(spec as Fields), resourceSelectors } },
    ]);
    for (const name of ['all', 'bound']) await policyInUse(host, namespace, name);
    await host.apply([
      deployment(namespace, 'web', 3, '100m'),
      stateful(),
      job(),
      alone(),
      gang(namespace),
      ...withClaim(namespace),
    ]);
    await settled(host, namespace, 'ring', { east: 2 });
    const [keeper] = await settled(host, namespace, 'keeper', { east: 1 });
    await settled(host, namespace, 'web', { east: 3 });
    await settled(host, namespace, 'db', { east: 1 });
    await settled(host, namespace, 'work', { east: 1 });
    const { metadata: single } = await untilRunning(host, namespace, 'alone');
    const before = await podsOf(host, namespace);
    await cut();
    // That the member is lost moves them not, however long.
    expect(await toldOfOne('ring', 'PodOfLostMemberHeld')).toMatch(/: the pods of a gang have one place together$/);
    expect(await toldOfOne('keeper', 'PodOfLostMemberHeld')).toMatch(/: it uses claims, and its data are there$/);
    expect(await endedUids()).toEqual([]);
    expect(uidsOf(await podsOf(host, namespace))).toEqual(uidsOf(before));
    await taint('NoSchedule');
    await allAreIn('west', { web: 3, db: 1, work: 1, ring: 2 });
    expect((await conditionOf('OutOfService'))?.reason).toBe('Fenced');
    expect(await told('db-0', 'OutOfServicePodReplaced')).toMatch(
      /^member east does not answer, and east is out of service \(taint node\.kubernetes\.io\/out-of-service\); it was evicted, and is gone at once, so that StatefulSet db makes another one, which goes elsewhere$/,
    );
    expect(await told('alone', 'OutOfServicePodHeld')).toMatch(/no controller .*; kubectl delete pod ends it at once$/);
    // Nobody is told that the Job's pod is done.
    const failed = await read<{ status?: { succeeded?: number } }>(
      host,
      `/apis/batch/v1/namespaces/${namespace}/jobs/work`,
    );
    expect(failed?.status?.succeeded ?? 0).toBe(0);
    await kubectl(host, ['delete', 'pod', 'alone', '-n', namespace, '--wait=true', '--timeout=20s']);
    // Without its data no cluster takes it. Whoever gives these up gets an empty disk elsewhere.
    expect(await toldOfOne('keeper', 'OutOfServicePodHeld')).toMatch(/: no other cluster takes it now \(/);
    expect(uidsOf(await podsOf(host, namespace, 'app=keeper'))).toEqual([keeper?.metadata.uid]);
    await kubectl(host, ['delete', 'pvc', 'data', '-n', namespace, '--wait=false']);
    await kubectl(host, ['delete', 'pod', keeper?.metadata.name ?? '', '-n', namespace, '--timeout=20s']);
    await until('so is its claim', async () => {
      return (await read(host, `/api/v1/namespaces/${namespace}/persistentvolumeclaims/data`)) === undefined;
    });
    await host.apply([memberClaim(namespace)]);
    // Once it is known what came of its creation: whoever is killed before leaves it to the next one to wait for that.
    await settled(host, namespace, 'keeper', { west: 1 });
    const ended = await endedUids();
    expect(new Set(ended)).toEqual(new Set(uidsOf(before)));
    expect(ended).toContain(single.uid);
    // Its copies run on, all the time.
    expect(await podsOf(topology.member('east').cluster, namespace)).toHaveLength(before.length);
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);
    const healed = Date.now();
    heal();
    await until('nothing of it is left in east', async () => {
      return (await podsOf(topology.member('east').cluster, namespace)).length === 0;
    });
    const writes = writesInEast(healed);
    expect(writes.map(({ verb }) => verb)).toEqual(before.map(() => 'delete'));
    await until('the word is used up', async () => (await conditionOf('OutOfService'))?.reason === 'MemberAnswers');
    await allAreIn('west', { web: 3, db: 1, work: 1, ring: 2, keeper: 1 });
    // Once the taint is away, east is as before.
    await kubectl(host, ['taint', 'node', 'east', `${TAINT}-`]);
    await until('east takes pods again', async () => {
      // Schedulers may not know yet that the taint is gone: then it goes to west.
      if (whereAre(await scaled('web', 4))['east'] === 1) return true;
      await scaled('web', 3);
      return false;
    });
  }, 240_000);

  test('with effect NoExecute: Kubernetes deletes all at once, and each is gone, though the manager was started in the outage', async () => {
    await host.apply([eastThenWest({ after: '24h' }), deployment(namespace, 'web', 3, '100m'), stateful(), alone()]);
    await settled(host, namespace, 'web', { east: 3 });
    await settled(host, namespace, 'db', { east: 1 });
    await untilRunning(host, namespace, 'alone');
    await cut();
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);
    await taint('NoExecute');
    await allAreIn('west', { web: 3, db: 1 });
    await until('the one that nobody makes anew is gone', async () => {
      return (await read<Pod>(host, `/api/v1/namespaces/${namespace}/pods/alone`)) === undefined;
    });
    const healed = Date.now();
    heal();
    await until('nothing of it is left in east', async () => {
      return (await podsOf(topology.member('east').cluster, namespace)).length === 0;
    });
    expect(new Set(writesInEast(healed).map(({ verb }) => verb))).toEqual(new Set(['delete']));
  });

  test('by policy: ReplaceWhenFenced waits for that word, and ends with it', async () => {
    await host.apply([
      eastThenWest({ after: '1s', action: 'ReplaceWhenFenced' }),
      // More than are replaced until a busy machine sees that the word is taken back.
      deployment(namespace, 'web', 24, '100m'),
    ]);
    const [first] = await settled(host, namespace, 'web', { east: 24 });
    await cut();
    expect(await told(first?.metadata.name ?? '', 'PodOfLostMemberHeld')).toMatch(
      /its policy says ReplaceWhenFenced, and its virtual node is not out of service$/,
    );
    await taint('NoSchedule');
    await until(
      'some are replaced',
      async () => (whereAre(await podsOf(host, namespace, 'app=web'))['west'] ?? 0) >= 2,
      PATIENT,
    );
    await kubectl(host, ['taint', 'node', 'east', `${TAINT}-`]);
    await until('the word is taken back', async () => (await conditionOf('OutOfService'))?.reason === 'InService');
    const left = (await podsOf(host, namespace, 'app=web')).filter(({ spec }) => spec.nodeName === 'east').length;
    expect(left).toBeGreaterThan(0);
    const since = Date.now();
    await until('nothing happens for a while', () => Date.now() - since > 10_000);
    const still = (await podsOf(host, namespace, 'app=web')).filter(({ spec }) => spec.nodeName === 'east').length;
    // Some may have been under way.
    expect(still).toBeGreaterThanOrEqual(left - 2);
  });
});

test('action Replace moves only pods of Jobs that make others meanwhile; the work of all others goes on', async () => {
  const rule = { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] };
  const waiting = ['waits', 'ignores'];
  await host.apply([
    eastThenWest({ after: '15s', action: 'Replace' }),
    job('plain', {}),
    job('waits'),
    job('ignores', { podFailurePolicy: { rules: [rule] } }),
  ]);
  const before = new Map<string, string[]>();
  for (const name of ['plain', ...waiting]) before.set(name, uidsOf(await settled(host, namespace, name, { east: 1 })));
  await cut();
  for (const name of waiting)
    expect(await toldOfOne(name, 'PodOfLostMemberHeld')).toMatch(/\(podReplacementPolicy: Failed\)$/);
  await until(
    'another one runs in west',
    async () => (whereAre(await podsOf(host, namespace, 'app=plain'))['west'] ?? 0) === 1,
    PATIENT,
  );
  heal();
  await allAreIn('west', { plain: 1 });
  for (const name of waiting) {
    const pods = await podsOf(host, namespace, `app=${name}`);
    expect([uidsOf(pods), whereAre(pods)]).toEqual([before.get(name), { east: 1 }]);
  }
}, 240_000);

test('on a member that answers it counts for nothing, also when that is lost later, until it is said anew', async () => {
  await host.apply([eastThenWest({ after: '24h' }), stateful()]);
  const [db] = await settled(host, namespace, 'db', { east: 1 });
  await taint('NoSchedule');
  const refused = await until('it is refused', async () => {
    const condition = await conditionOf('OutOfService');
    return condition?.reason === 'MemberAnswers' ? condition : undefined;
  });
  expect(refused).toMatchObject({ status: 'False' });
  expect(refused.message).toContain(`kubectl taint node east ${TAINT}-`);
  await until('so is whoever looks at the Node', async () => {
    const events = await eventsOf(host, 'default', 'east', 'Node');
    return events.some(({ reason }) => reason === 'OutOfServiceRefused');
  });
  await cut();
  await topology.spillway.process.stop('SIGKILL');
  topology.spillway.process.restart();
  await waitReady(topology.spillway);
  const since = Date.now();
  await until('nothing happens for a while', () => Date.now() - since > 20_000);
  expect(uidsOf(await podsOf(host, namespace))).toEqual([db?.metadata.uid]);
  expect(await endedUids()).not.toContain(db?.metadata.uid);
  await kubectl(host, ['taint', 'node', 'east', `${TAINT}-`]);
  await until('it is taken back', async () => (await conditionOf('OutOfService'))?.reason === 'InService');
  await taint('NoSchedule');
  await allAreIn('west', { db: 1 });
});
