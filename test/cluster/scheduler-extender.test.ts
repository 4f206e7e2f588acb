import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startSecondScheduler } from '../../hack/second-scheduler.ts';
import { startSpillway, SYSTEM_NAMESPACE, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { OBSERVER_AGENT } from '../../src/members/connection.ts';
import {
  condition,
  eventsOf,
  type Fields,
  kubectl,
  letGo,
  newNamespace,
  pod,
  podsOf,
  serviceAccountIn,
  untilPod,
} from '../fixtures/live-pods.ts';
import { untilMemberCondition } from '../fixtures/member-condition.ts';
import { SchedulerCaller } from '../fixtures/scheduler-caller.ts';
import {
  burstNamespace,
  burstSpec,
  costsKeep,
  deployment,
  LOCAL_PREFIX,
  placementOf,
  scale,
  schedulingMessage,
  settled,
  whereAre,
  policy,
} from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Ordinary Deployments of the host; kube-scheduler asks Spillway where their pods may run. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    // Else each pod in a member is written to once more, ten seconds after it is bound.
    spillway: { configuration: { outages: { toleration: 'Keep' } } },
    members: [
      { name: 'east', kwok: { nodes: 4, cpu: '8' }, options: { spec: { region: 'eu' } } },
      { name: 'west', kwok: { nodes: 4, cpu: '8' }, options: { spec: { region: 'us' } } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 2, cpu: '10', prefix: LOCAL_PREFIX });
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Of the host's nodes, as far as pods of 8 cores can have them, and of both members. */
const ALL_CORES = 16 + 2 * 32;

/** Every test has the room of all clusters for itself. */
afterEach(async () => {
  for (const kind of ['deployment', 'pod']) await kubectl(host, ['delete', kind, '--all', '-A', '--wait=false']);
  await until('no pods are left', async () => {
    const { items } = (await host.api.call('GET', '/api/v1/pods')) as { items: unknown[] };
    return items.length === 0;
  });
});

describe('a namespace that may burst', () => {
  test('fills the host first, then members; without the label pods stay', async () => {
    await burstNamespace(host, 'burst');
    await host.apply([deployment('burst', 'web', 24, '1')]);
    const pods = await until('all pods are bound', async () => {
      const found = await podsOf(host, 'burst', 'app=web');
      return found.length === 24 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    const { local, ...members } = whereAre(pods);
    expect(local).toBe(20);
    expect(Object.values(members).reduce((all, one) => all + one, 0)).toBe(4);
    await newNamespace(host, 'stay');
    await host.apply([deployment('stay', 'web', 1, '1', {}, { tolerations: [{ operator: 'Exists' }] })]);
    expect(await schedulingMessage(host, 'stay', 'web')).toMatch(/Insufficient cpu/);
    await kubectl(host, ['label', 'namespace', 'stay', 'spillway.dev/burst=enabled']);
    await until('the pod is bound once the namespace is labelled', async () => {
      const counts = whereAre(await podsOf(host, 'stay', 'app=web'));
      return counts['waiting'] === undefined;
    });
  });
});

/** As the API server noted it, in whole seconds. */
function secondsToBind(one: Pod): number {
  const bound = condition(one, 'PodScheduled')?.lastTransitionTime ?? '';
  return (Date.parse(bound) - Date.parse(one.metadata.creationTimestamp ?? '')) / 1000;
}

/** Pods with a deletion cost of ours. */
async function costed(namespace: string): Promise<number> {
  const pods = await podsOf(host, namespace);
  return pods.filter(({ metadata }) => metadata.annotations?.['spillway.dev/deletion-cost'] !== undefined).length;
}

describe('scale-in', () => {
  test('of 20 local and 10 burst pods exactly the burst pods go, and only they were written to', async () => {
    await burstNamespace(host, 'shrink');
    await host.apply([deployment('shrink', 'web', 30, '1')]);
    const pods = await until('30 pods are ready', async () => {
      const found = await podsOf(host, 'shrink', 'app=web');
      const ready = found.every(({ status }) => status?.phase === 'Running');
      return found.length === 30 && ready && whereAre(found)['local'] === 20 ? found : undefined;
    });
    const local = pods
      .filter(({ spec }) => spec.nodeName?.startsWith(LOCAL_PREFIX))
      .map(({ metadata }) => metadata.uid);
    await until('the costs are there', async () => (await costed('shrink')) === 10);
    await scale(host, 'shrink', 'web', 20);
    const left = await settled(host, 'shrink', 'web', { local: 20 });
    expect(new Set(left.map(({ metadata }) => metadata.uid))).toEqual(new Set(local));
    const writes = host
      .auditEvents()
      .filter(({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'pods')
      .filter(({ objectRef }) => objectRef?.namespace === 'shrink' && objectRef.subresource === undefined);
    expect(writes).toHaveLength(10);
  });
});

describe('a division by room', () => {
  test('knows the room on the nodes of the host as it knows that of members', async () => {
    await newNamespace(host, 'room');
    const weightPreference = { dynamicWeight: 'AvailableReplicas' };
    // Of pods with 2 cores 6 fit on the host, beside what is there, and 16 in each member.
    await host.apply([
      policy('room', 'by-room', { replicaScheduling: { weightPreference } }, 'web'),
      deployment('room', 'large', 2, '4', {}, { tolerations: [] }),
    ]);
    await settled(host, 'room', 'large', { local: 2 });
    await host.apply([deployment('room', 'web', 19, '2')]);
    await settled(host, 'room', 'web', { local: 3, east: 8, west: 8 });
  });
});

/** The recipe of a virtual node with thousands of cores on paper, none of them where a big pod could use it. */
describe('pods that fit nowhere', () => {
  test('stay unbound, hold nothing, and are told why; small ones do not wait behind them', async () => {
    await burstNamespace(host, 'big');
    await host.apply([deployment('big', 'huge', 30, '16')]);
    const message = await schedulingMessage(host, 'big', 'huge');
    expect(message).toMatch(/1 member east: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    expect(message).toMatch(/1 member west: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    await until('each of the big ones was refused', async () => {
      const found = await podsOf(host, 'big', 'app=huge');
      return found.length === 30 && found.every((one) => condition(one, 'PodScheduled')?.status === 'False');
    });
    let tries = 0;
    await until(
      'small pods are bound in under 5 s',
      async () => {
        tries += 1;
        const app = `small-${String(tries)}`;
        // They take every core of the host and of the members: whatever a big one held would be missing.
        await host.apply([deployment('big', app, ALL_CORES / 8, '8')]);
        const small = await until('every small pod is bound', async () => {
          const found = await podsOf(host, 'big', `app=${app}`);
          return found.length === ALL_CORES / 8 && whereAre(found)['waiting'] === undefined ? found : undefined;
        });
        // Each was bound when the scheduler looked at it first.
        expect(await refusedBefore('big', small)).toEqual([]);
        const slowest = Math.max(...small.map(secondsToBind));
        if (slowest < 5) return true;
        // A machine with much else to do gets another chance.
        await kubectl(host, ['delete', 'deployment', app, '-n', 'big']);
        await until('they are gone', async () => (await podsOf(host, 'big', `app=${app}`)).length === 0);
        throw new Error(`the slowest took ${String(slowest)} s`);
      },
      { timeoutMs: 120_000 },
    );
    const huge = await podsOf(host, 'big', 'app=huge');
    expect(whereAre(huge)).toEqual({ waiting: 30 });
    const events = await eventsOf(host, 'big', huge[0]?.metadata.name ?? '');
    expect(events.find(({ reason }) => reason === 'FailedScheduling')?.message).toContain('member east: ');
  });
});

/** Names of pods for which the scheduler found no node at least once. */
async function refusedBefore(namespace: string, pods: readonly Pod[]): Promise<string[]> {
  const failed = encodeURIComponent('reason=FailedScheduling');
  const list = (await host.api.call('GET', `/api/v1/namespaces/${namespace}/events?fieldSelector=${failed}`)) as {
    items: { involvedObject: { name?: string } }[];
  };
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  return list.items.map(({ involvedObject }) => involvedObject.name ?? '').filter((name) => names.has(name));
}

describe('pods that ask for a virtual node', () => {
  test('go there without any rules, and stay on the host when they do not ask', async () => {
    await newNamespace(host, 'asking');
    await host.apply([
      pod('there', 'asking', burstSpec('1', { nodeSelector: { 'kubernetes.io/hostname': 'west' } })),
      pod('anywhere', 'asking', burstSpec('1', { tolerations: [{ operator: 'Exists' }] })),
    ]);
    await until('both are bound', async () => {
      const found = await podsOf(host, 'asking');
      return found.length === 2 && found.every(({ spec }) => spec.nodeName !== undefined);
    });
    expect(whereAre(await podsOf(host, 'asking'))).toEqual({ west: 1, local: 1 });
  });
});

describe('pods with owners that were made up', () => {
  test('keep no other pod waiting', async () => {
    await newNamespace(host, 'made-up');
    const owner = () => [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'made-up', uid: crypto.randomUUID(), controller: true },
    ];
    const controllers = host.component('kube-controller-manager');
    // It would delete them one after the other.
    controllers.signal('SIGSTOP');
    try {
      const make = async (index: number): Promise<unknown> => {
        const made = pod(`made-up-${index}`, 'made-up', burstSpec('10m'), { ownerReferences: owner() });
        return await host.api.call('POST', '/api/v1/namespaces/made-up/pods', made);
      };
      await Promise.all(Array.from({ length: 100 }, (_, index) => make(index)));
      await host.apply([pod('honest', 'made-up', burstSpec('10m'))]);
      // Half a second for each of the others would be 50.
      const isBound = ({ spec }: Pod): boolean => spec.nodeName !== undefined;
      await untilPod(host, 'made-up', 'honest', 'is bound', isBound, { timeoutMs: 25_000 });
    } finally {
      controllers.signal('SIGCONT');
    }
  });
});

describe('annotations of Federation v1', () => {
  test('divide an ordinary Deployment, without any policy and without a label', async () => {
    await newNamespace(host, 'federation');
    const preferences = { rebalance: true, clusters: { local: { weight: 1, maxReplicas: 2 }, '*': { weight: 2 } } };
    const web = deployment('federation', 'web', 10, '100m');
    const annotations = { 'federation.kubernetes.io/deployment-preferences': JSON.stringify(preferences) };
    await host.apply([{ ...web, metadata: { ...(web['metadata'] as Fields), annotations } }]);
    await settled(host, 'federation', 'web', { local: 2, east: 4, west: 4 });
    await scale(host, 'federation', 'web', 14);
    await settled(host, 'federation', 'web', { local: 2, east: 6, west: 6 });
    await costsKeep(host, 'federation', { local: 1, east: 2, west: 2 });
    await scale(host, 'federation', 'web', 5);
    await settled(host, 'federation', 'web', { local: 1, east: 2, west: 2 });
  });
});

describe('a MemberCluster that wants the name of a real node', () => {
  test('keeps no pod from that node, while it is there and afterwards', async () => {
    const name = `${LOCAL_PREFIX}-0`;
    await burstNamespace(host, 'named');
    const spec = { credentials: { secretRef: { namespace: SYSTEM_NAMESPACE, name: 'member-east' } } };
    await host.apply([{ apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata: { name }, spec }]);
    await untilMemberCondition(host, name, 'Ready', 'NodeNameTaken');
    const there = { nodeSelector: { 'kubernetes.io/hostname': name } };
    await host.apply([deployment('named', 'meanwhile', 1, '1', {}, there)]);
    await settled(host, 'named', 'meanwhile', { local: 1 });
    await letGo(host, name);
    await host.apply([deployment('named', 'afterwards', 1, '1', {}, there)]);
    await settled(host, 'named', 'afterwards', { local: 1 });
  });
});

describe('scores from outside', () => {
  test('choose the member; small changes move nothing; what has ended counts no more', async () => {
    await newNamespace(host, 'scores');
    const signals = [{ name: 'carbon', weight: 100 }];
    const placement = {
      clusterAffinity: { exclude: ['local'] },
      scoreWeights: { locality: 0, freeRoom: 0, price: 0, images: 0, signals },
      hysteresis: 20,
    };
    await host.apply([policy('scores', 'green', placement)]);
    // Stretched to 0 to 100: 45 against 50.
    await say({ east: -10, west: 0 });
    await untilPlaced('scores', 'one', 'west');
    await host.apply([deployment('scores', 'web', 1, '100m')]);
    await settled(host, 'scores', 'web', { west: 1 });
    // 15 points better, which is less than the hysteresis: new workloads follow, this one stays.
    await say({ east: 30, west: 0 });
    await untilPlaced('scores', 'two', 'east');
    await scale(host, 'scores', 'web', 2);
    await settled(host, 'scores', 'web', { west: 2 });
    await say({ east: 60, west: 0 });
    await untilPlaced('scores', 'three', 'east');
    await scale(host, 'scores', 'web', 3);
    await settled(host, 'scores', 'web', { west: 2, east: 1 });
    await say({ east: 60, west: 10 }, new Date(Date.now() - 1_000).toISOString());
    await untilPlaced('scores', 'four', 'west');
  });

  /** What a program outside would write; that of east ends at a time. */
  async function say(values: Record<string, number>, eastEnds?: string): Promise<void> {
    await host.apply(
      Object.entries(values).map(([clusterName, value]) => ({
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementScore',
        metadata: { name: clusterName },
        spec: {
          clusterName,
          scores: [{ name: 'carbon', value }],
          ...(clusterName === 'east' && eastEnds !== undefined ? { validUntil: eastEnds } : {}),
        },
      })),
    );
  }
});

/** A write takes a moment to be seen, so pods without a past are made until one goes there. */
async function untilPlaced(namespace: string, name: string, member: string): Promise<void> {
  let tries = 0;
  await until(`a pod goes to ${member}`, async () => {
    tries += 1;
    const app = `${name}-${String(tries)}`;
    await host.apply([deployment(namespace, app, 1, '100m')]);
    const [one] = await until(`${app} is bound`, async () => {
      const found = await podsOf(host, namespace, `app=${app}`);
      return found.length === 1 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    return one?.spec.nodeName === member;
  });
}

describe('images that the nodes of a member have', () => {
  test('bring pods there, and elsewhere once others have them', async () => {
    await newNamespace(host, 'images');
    const placement = {
      clusterAffinity: { exclude: ['local'] },
      scoreWeights: { locality: 0, freeRoom: 0, price: 0, images: 100 },
    };
    await host.apply([policy('images', 'where-they-are', placement)]);
    await show('west', ['registry.example/app:v1']);
    await untilPlaced('images', 'one', 'west');
    await show('east', ['registry.example/app:v1']);
    await show('west', []);
    await untilPlaced('images', 'two', 'east');
    await show('east', []);
  });

  /** As kubelets report them. */
  async function show(member: string, names: readonly string[]): Promise<void> {
    const { api } = topology.member(member).cluster;
    const images = names.length === 0 ? null : [{ names, sizeBytes: 1_000_000 }];
    for (const index of [0, 1, 2, 3]) {
      await api.call('PATCH', `/api/v1/nodes/kwok-${String(index)}/status`, { status: { images } });
    }
  }
});

/**
 * Pods of namespaces with a label become larger in the member than anybody outside can know, so that only its quota, or its
 * scheduler, tells that they do not fit.
 */
function growingPods(label: string, cpu: string): readonly Fields[] {
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicy',
      metadata: { name: label },
      spec: {
        failurePolicy: 'Fail',
        reinvocationPolicy: 'Never',
        matchConstraints: {
          namespaceSelector: { matchLabels: { pods: label } },
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: {
              expression: `[JSONPatch{op: 'add', path: '/spec/containers/0/resources/requests/cpu', value: '${cpu}'}]`,
            },
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name: label },
      spec: { policyName: label },
    },
  ];
}

describe('a member that refuses pods', () => {
  const eastThenWest = {
    clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] },
  };
  /** Of a node that never comes: longer than one policy says, and shorter than another one. */
  const LEAD_SECONDS = 15;
  const refusedIn = (pods: readonly Pod[]): Pod[] =>
    pods.filter((one) => condition(one, 'spillway.dev/Mirrored')?.reason === 'MemberQuotaExceeded');

  test('with TryNext the refused pods make way, and all run in the next member', async () => {
    await refusing('next');
    await grantEvictions();
    // Nobody waits that long for a member that has refused.
    const clusterAffinity = { ...eastThenWest.clusterAffinity, tryNextAfter: '10m' };
    await host.apply([
      policy('next', 'next', { clusterAffinity, onRefusal: 'TryNext' }),
      deployment('next', 'web', 4, '100m'),
    ]);
    const inEast = new Set<string>();
    await until(
      'all pods run in west',
      async () => {
        const pods = await podsOf(host, 'next', 'app=web');
        for (const { metadata, spec } of pods) if (spec.nodeName === 'east') inEast.add(metadata.name);
        const running = pods.filter(({ spec, status }) => spec.nodeName === 'west' && status?.phase === 'Running');
        return running.length === 4 && pods.length === 4;
      },
      { timeoutMs: 90_000, intervalMs: 200 },
    );
    const evictions = evictionsIn('next');
    const answered = (code: number): AuditEvent[] =>
      evictions.filter(({ responseStatus }) => responseStatus?.code === code);
    // A pod that changed just then is looked at again: 409.
    expect(answered(201).length + answered(409).length).toBe(evictions.length);
    // Each of those that were refused went once, and no other did.
    const evicted = answered(201).map(({ objectRef }) => objectRef?.name ?? '');
    expect(evicted.toSorted()).toEqual([...inEast].toSorted());
    expect(evicted.length).toBeGreaterThan(0);
    expect(evicted.length).toBeLessThanOrEqual(4);
    const [name = ''] = evicted;
    const told = await until('it is told why', async () => {
      const events = await eventsOf(host, 'next', name);
      return events.find(({ reason }) => reason === 'RefusedPodReplaced')?.message;
    });
    expect(told).toMatch(
      /^member east refuses it \(MemberQuotaExceeded\), and it never started there; .*exceeded quota/,
    );
    expect(await podsOf(topology.member('east').cluster, 'next')).toEqual([]);
  });

  test('a pod that is left Pending makes way after tryNextAfter, or onUnschedulable.after, or when no elastic node came in its time, and runs in the next tier', async () => {
    await outgrowing('pending');
    await grantEvictions();
    const resources = { cpu: '32', memory: '64Gi', pods: '10' };
    await elasticInEast([
      { name: 'late', resources, maxNodes: 1, leadTimeSeconds: LEAD_SECONDS, nodeLabels: { pool: 'late' } },
    ]);
    onTestFinished(async () => await elasticInEast(null));
    const clusterAffinity = { ...eastThenWest.clusterAffinity, tryNextAfter: '5s' };
    const unschedulable = (name: string, after: string): Fields => {
      const { spec, ...rest } = policy('pending', name, eastThenWest, name);
      return { ...rest, spec: { ...(spec as Fields), failover: { onUnschedulable: { after } } } };
    };
    await host.apply([
      policy('pending', 'next', { clusterAffinity, onRefusal: 'TryNext' }, 'web'),
      unschedulable('hasty', '5s'),
      unschedulable('patient', '20s'),
      ...['web', 'hasty', 'patient'].map((name) => deployment('pending', name, 1, '100m')),
    ]);
    /** The time of the tier, that of the node, that of the policy, in ms; and 10 s as after any refusal. */
    const least: Readonly<Record<string, number>> = {
      web: 15_000,
      hasty: (LEAD_SECONDS + 10) * 1_000,
      patient: 30_000,
    };
    /** By name of the pod, since when the member has no node for it, in ms. */
    const unscheduled = new Map<string, number>();
    await until(
      'all pods run in west',
      async () => {
        const pods = await podsOf(host, 'pending');
        for (const one of pods) {
          const since = condition(one, 'spillway.dev/MemberScheduled')?.lastTransitionTime;
          if (since !== undefined) unscheduled.set(one.metadata.name, Date.parse(since));
        }
        const running = pods.filter(({ spec, status }) => spec.nodeName === 'west' && status?.phase === 'Running');
        return running.length === 3 && pods.length === 3;
      },
      { timeoutMs: 90_000, intervalMs: 200 },
    );
    // A pod that changed just then is looked at again: 409.
    const evictions = evictionsIn('pending').filter(({ responseStatus }) => responseStatus?.code !== 409);
    const evicted = evictions.map(({ objectRef }) => objectRef?.name ?? '');
    expect(evicted.toSorted()).toEqual([...unscheduled.keys()].toSorted());
    expect(evictions.length).toBeGreaterThan(0);
    for (const { objectRef, responseStatus, requestReceivedTimestamp } of evictions) {
      expect(responseStatus?.code).toBe(201);
      const { name = '' } = objectRef ?? {};
      const waited = Date.parse(requestReceivedTimestamp) - (unscheduled.get(name) ?? Number.NaN);
      expect(waited, name).toBeGreaterThanOrEqual(least[name.split('-')[0] ?? ''] ?? Infinity);
    }
    const told = await until('it is told why', async () => {
      const events = await eventsOf(host, 'pending', evicted[0] ?? '');
      return events.find(({ reason }) => reason === 'UnschedulablePodReplaced')?.message;
    });
    expect(told).toMatch(
      /^member east has had no node for it for too long, and it never started there; .*Insufficient cpu/,
    );
    await until('the copies are gone', async () => {
      return (await podsOf(topology.member('east').cluster, 'pending')).length === 0;
    });
  });

  test('with TryNext, but without the right to evict, they stay and it is told; the host is not asked all the time', async () => {
    await Promise.all([refusing('no-right'), refusing('right')]);
    await grantEvictions();
    await kubectl(host, ['delete', 'clusterrolebinding', 'spillway-descheduler']);
    const role = ['--clusterrole=spillway-descheduler', '--serviceaccount=spillway-system:spillway-manager'];
    await kubectl(host, ['create', 'rolebinding', 'spillway-descheduler', '-n', 'right', ...role]);
    await host.apply([
      policy('no-right', 'next', { ...eastThenWest, onRefusal: 'TryNext' }),
      deployment('no-right', 'web', 1, '100m'),
      deployment('no-right', 'api', 1, '100m'),
    ]);
    const before = await until('both pods are refused', async () => {
      const found = refusedIn(await podsOf(host, 'no-right'));
      return found.length === 2 ? found : undefined;
    });
    for (const { metadata } of before) {
      const event = await until(`${metadata.name} is told`, async () => {
        const events = await eventsOf(host, 'no-right', metadata.name);
        return events.find(({ reason }) => reason === 'RefusedPodStays');
      });
      expect(event).toMatchObject({ type: 'Warning', count: 1 });
      expect(event.message).toBe(
        'it stays in member east, which refuses it, and starts there once it is taken: ' +
          'the host does not let Spillway evict it (apply manifests/scheduler/descheduler.yaml)',
      );
    }
    const told = Date.now();
    // Whatever becomes of the pods they are looked at again.
    await kubectl(host, ['annotate', 'pods', '--all', '-n', 'no-right', 'seen=again']);
    // The next pods go elsewhere all the same, and where the right is granted those that were refused do, too.
    await scale(host, 'no-right', 'web', 2);
    await host.apply([
      policy('right', 'next', { ...eastThenWest, onRefusal: 'TryNext' }),
      deployment('right', 'web', 1, '100m'),
    ]);
    await settled(host, 'right', 'web', { west: 1 });
    const codes = evictionsIn('right').map(({ responseStatus }) => responseStatus?.code);
    expect(codes.filter((code) => code !== 409)).toEqual([201]);
    const after = await podsOf(host, 'no-right');
    expect(whereAre(after)).toEqual({ east: 2, west: 1 });
    expect(refusedIn(after).map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
    await until('the WorkloadPlacement says who is avoided', async () => {
      const { avoided = [] } = (await placementOf(host, 'no-right', 'web'))?.status ?? {};
      return avoided.some(({ cluster, reason }) => cluster === 'east' && reason === 'MemberQuotaExceeded');
    });
    expect(evictionsIn('no-right')).toEqual([]);
    const forbidden = host
      .auditEvents()
      .filter(({ objectRef, responseStatus }) => objectRef?.namespace === 'no-right' && responseStatus?.code === 403);
    const times = forbidden.map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
    const [first = 0] = times;
    expect(first).toBeGreaterThan(0);
    expect(forbidden.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource ?? ''}`)).toEqual(
      forbidden.map(() => 'get pods'),
    );
    // Both workloads may have been looked at in the same moment.
    expect(times.filter((time) => time < first + 60_000).length).toBeLessThanOrEqual(2);
    expect(times.filter((time) => time > told && time < first + 60_000)).toEqual([]);
  });

  test('with Stay they stay; the refusal outlives a crash, as the pods tell it, and ends in its time', async () => {
    await Promise.all([refusing('kept'), refusing('short')]);
    await host.apply([
      policy('kept', 'kept', eastThenWest),
      policy('short', 'short', { ...eastThenWest, avoidFor: '15s' }),
      deployment('kept', 'web', 1, '100m'),
      deployment('short', 'web', 1, '100m'),
    ]);
    const first = async (namespace: string): Promise<Pod> =>
      await until(`the pod of ${namespace} is refused`, async () => refusedIn(await podsOf(host, namespace))[0]);
    const [kept, short] = await Promise.all([first('kept'), first('short')]);
    await topology.spillway.process.stop('SIGKILL');
    // What WorkloadPlacements remember is not needed for it.
    await kubectl(host, ['delete', 'workloadplacements', '--all', '-n', 'kept']);
    topology.spillway.process.restart();
    await waitReady(topology.spillway);
    await scale(host, 'kept', 'web', 2);
    const bound = async (namespace: string): Promise<Record<string, number>> =>
      await until(`both pods of ${namespace} are bound`, async () => {
        const counts = whereAre(await podsOf(host, namespace, 'app=web'));
        return counts['waiting'] === undefined && Object.values(counts).reduce((a, b) => a + b, 0) === 2
          ? counts
          : undefined;
      });
    expect(await bound('kept')).toEqual({ east: 1, west: 1 });
    const since = Date.parse(condition(short, 'spillway.dev/Mirrored')?.lastTransitionTime ?? '');
    await until('the refusal has ended', () => Date.now() > since + 16_000);
    await scale(host, 'short', 'web', 2);
    expect(await bound('short')).toEqual({ east: 2 });
    const left = await podsOf(host, 'kept');
    expect(left.find(({ metadata }) => metadata.uid === kept.metadata.uid)?.spec.nodeName).toBe('east');
  });

  async function grantEvictions(): Promise<void> {
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
  }

  function evictionsIn(namespace: string): AuditEvent[] {
    return host
      .auditEvents()
      .filter(({ objectRef }) => objectRef?.namespace === namespace && objectRef.subresource === 'eviction');
  }

  /** A namespace of the host that has one in east as well, whose quota refuses all pods. */
  async function refusing(namespace: string): Promise<void> {
    const quota = { metadata: { name: 'small', namespace }, spec: { hard: { 'requests.cpu': '1' } } };
    await growing(namespace, '4', 'exceeded quota: small', { apiVersion: 'v1', kind: 'ResourceQuota', ...quota });
  }

  async function elasticInEast(elastic: readonly object[] | null): Promise<void> {
    const patch = JSON.stringify({ spec: { capacity: { elastic } } });
    await kubectl(host, ['patch', 'membercluster', 'east', '--type=merge', '-p', patch]);
  }

  /** A namespace of the host that has one in east as well, for whose pods no node there is large enough. */
  async function outgrowing(namespace: string): Promise<void> {
    await growing(namespace, '16', '"cpu": "16"');
  }

  /** In east the pods of the namespace have so many cores; what an attempt there is answered tells when that is so. */
  async function growing(namespace: string, cpu: string, answer: string, ...more: readonly Fields[]): Promise<void> {
    const { cluster: east } = topology.member('east');
    const grow = `grow-to-${cpu}`;
    const labels = { 'spillway.dev/allow-host': 'any', pods: grow };
    await east.apply([
      ...growingPods(grow, cpu),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      ...more,
    ]);
    await Promise.all([newNamespace(host, namespace), serviceAccountIn(east, namespace)]);
    await until(`pods grow in ${namespace} of east`, async () => {
      const { stdout, stderr } = await east.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], {
        input: JSON.stringify(pod('trial', namespace, burstSpec('100m'))),
      });
      return `${stdout}${stderr}`.includes(answer);
    });
  }
});

/** By which the scheduler knows that it has to ask. */
const MARK = 'spillway.dev/extender';

describe("the cluster's own scheduler, while Spillway does not answer", () => {
  test('goes on for all pods but those that carry the mark; these wait, and fit where they are bound', async () => {
    await burstNamespace(host, 'silent');
    // The virtual nodes have 32 cores each, their largest node 8.
    const huge = burstSpec('16', { nodeSelector: { type: 'virtual-kubelet' } });
    const { process: manager } = topology.spillway;
    manager.signal('SIGSTOP');
    try {
      // Without the mark it goes by the sum that the virtual node shows, as docs/guides/scheduling.md says.
      await host.apply([pod('by-sum', 'silent', huge)]);
      await untilBound('by-sum', (nodeName) => ['east', 'west'].includes(nodeName));
      await host.apply(readFileSync(new URL('../../manifests/scheduler/extender-pods.yaml', import.meta.url), 'utf8'));
      await until('pods get the mark', async () => (await dryRun(pod('probe', 'silent', huge))).includes(MARK));
      await host.apply([
        pod('huge', 'silent', huge),
        pod('small', 'silent', burstSpec('1', { nodeSelector: { type: 'virtual-kubelet' } })),
        pod('plain', 'silent', burstSpec('1', { tolerations: [] })),
      ]);
      await untilBound('plain', (nodeName) => nodeName.startsWith(LOCAL_PREFIX));
      for (const name of ['huge', 'small']) {
        const told = await until(`${name} was looked at`, async () => {
          const events = await eventsOf(host, 'silent', name);
          return events.find(({ reason }) => reason === 'FailedScheduling')?.message;
        });
        expect(told).toMatch(/127\.0\.0\.1.*confirm/);
      }
      const waiting = (await podsOf(host, 'silent')).filter(({ spec }) => spec.nodeName === undefined);
      expect(waiting.map(({ metadata }) => metadata.name).toSorted()).toEqual(['huge', 'small']);
    } finally {
      manager.signal('SIGCONT');
    }
    await untilMembersAreKeptSince(new Date());
    const member = await untilBound('small', (nodeName) => ['east', 'west'].includes(nodeName));
    const copy = await until('it is in the member', async () => {
      const found = await podsOf(topology.member(member).cluster, 'silent');
      return found.find(({ metadata }) => metadata.name === 'small');
    });
    expect(copy.spec.containers[0]?.resources).toEqual({ requests: { cpu: '1' } });
    await until('the one that went by the sum is told so', async () => {
      const found = (await podsOf(host, 'silent')).find(({ metadata }) => metadata.name === 'by-sum');
      return found !== undefined && condition(found, 'spillway.dev/MemberScheduled')?.status === 'False';
    });
    const large = (await podsOf(host, 'silent')).find(({ metadata }) => metadata.name === 'huge');
    expect(large?.spec.nodeName).toBeUndefined();
    await kubectl(host, ['delete', 'mutatingadmissionpolicybinding', 'spillway-extender-pods']);
  });

  async function dryRun(one: Fields): Promise<string> {
    const { stdout } = await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], {
      input: JSON.stringify(one),
    });
    return stdout;
  }

  /** It may have lost the Leases: whoever starts before it has them again takes the members over. */
  async function untilMembersAreKeptSince(moment: Date): Promise<void> {
    for (const member of ['east', 'west']) {
      await until(`the Lease of ${member} is held again`, async () => {
        const path = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM_NAMESPACE}/leases/spillway-member-${member}`;
        const { spec } = (await host.api.call('GET', path)) as { spec: { holderIdentity?: string; renewTime: string } };
        return spec.holderIdentity !== undefined && new Date(spec.renewTime) > moment;
      });
    }
  }

  async function untilBound(name: string, isRight: (nodeName: string) => boolean): Promise<string> {
    return await until(`${name} is bound`, async () => {
      const found = (await podsOf(host, 'silent')).find(({ metadata }) => metadata.name === name);
      const nodeName = found?.spec.nodeName;
      if (nodeName !== undefined && !isRight(nodeName)) throw new Error(`it is on ${nodeName}`);
      return nodeName;
    });
  }
});

describe('a second scheduler, as it is shipped', () => {
  test('binds the pods that carry its name; while Spillway does not answer they wait', async () => {
    // All certificates are those that Spillway makes and gives by itself.
    const extenderPort = await freePort();
    const replica = await startSpillway(host, { name: 'shipped', extenderPort, extenderCertificates: 'SelfManaged' });
    onTestFinished(() => replica.process.stop());
    for (const member of ['east', 'west']) {
      await until(`${member} is observed`, async () => {
        return (await metric('spillway_member_observed', { member }, replica.url)) === 1;
      });
    }
    const second = await startSecondScheduler(host, { extenderPort });
    onTestFinished(() => second.stop());
    await burstNamespace(host, 'second');
    const spec = { schedulerName: 'spillway-scheduler', nodeSelector: { type: 'virtual-kubelet' } };
    await host.apply([deployment('second', 'web', 2, '1', {}, spec)]);
    const pods = await until('both pods are bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 2 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    const scheduled = await until('the scheduler tells of it', async () => {
      const events = await eventsOf(host, 'second', pods[0]?.metadata.name ?? '');
      return events.find(({ reason }) => reason === 'Scheduled');
    });
    expect(scheduled.source).toBe('spillway-scheduler');
    // kube-scheduler does not go on without it: the pods are all Spillway's business.
    replica.process.signal('SIGSTOP');
    try {
      await scale(host, 'second', 'web', 3);
      const failed = await until('the scheduler says that it could not ask', async () => {
        const all = await podsOf(host, 'second', 'app=web');
        const late = all.find(({ spec: { nodeName } }) => nodeName === undefined);
        const told = late === undefined ? [] : await eventsOf(host, 'second', late.metadata.name);
        return told.find(({ reason }) => reason === 'FailedScheduling');
      });
      expect(failed.message).toMatch(/127\.0\.0\.1/);
    } finally {
      replica.process.signal('SIGCONT');
    }
    await until('the third pod is bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 3 && whereAre(found)['waiting'] === undefined;
    });
  });
});

describe('a replica that acts for no member', () => {
  const READS = ['get', 'list', 'watch'];

  test('gives schedulers the same answers, writes nothing to members, and goes on when the other is killed', async () => {
    const port = await freePort();
    const second = await startSpillway(host, { name: 'second', extenderPort: port, logLevel: 'debug' });
    const first = await SchedulerCaller.of(host, topology.extenderPort ?? 0);
    const caller = await SchedulerCaller.of(host, port);
    try {
      await burstNamespace(host, 'twice');
      const there = { nodeSelector: { 'kubernetes.io/hostname': 'east' } };
      await host.apply([1, 2, 3, 4, 5].map((index) => pod(`p-${String(index)}`, 'twice', burstSpec('3', there))));
      const { cluster } = topology.member('east');
      await until('all of them run in the member', async () => {
        const found = await podsOf(cluster, 'twice');
        return found.length === 5 && found.every(({ spec }) => spec.nodeName !== undefined);
      });
      for (const member of ['east', 'west']) {
        await until(`${member} is observed`, async () => {
          return (await metric('spillway_member_observed', { member }, second.url)) === 1;
        });
      }
      const huge = { Pod: asked('huge', burstSpec('16')), NodeNames: ['east', 'west'] };
      const ranked = { Pod: asked('ranked', burstSpec('2')), NodeNames: ['east', 'west'] };
      const told = await caller.ask('/filter', huge);
      expect(told).toEqual(await first.ask('/filter', huge));
      expect(JSON.stringify(told)).toMatch(/east.*largest free slot [258] cpu/);
      expect(await caller.ask('/prioritize', ranked)).toEqual(await first.ask('/prioritize', ranked));

      await topology.spillway.process.stop('SIGKILL');
      const answers = new Set([JSON.stringify(told)]);
      await until(
        'the second one acts for both members',
        async () => {
          answers.add(JSON.stringify(await caller.ask('/filter', huge)));
          const acting = ['east', 'west'].map(async (member) => {
            const free = await metric('spillway_member_largest_free_slot', { member, resource: 'cpu' }, second.url);
            const observed = await metric('spillway_member_observed', { member }, second.url);
            return free !== undefined && observed === undefined;
          });
          return (await Promise.all(acting)).every(Boolean);
        },
        { timeoutMs: 60_000 },
      );
      answers.delete(JSON.stringify(told));
      expect([...answers], `other answers than ${JSON.stringify(told)}: ${[...answers].join(' ')}`).toEqual([]);
      const small = { Pod: asked('small', burstSpec('2', there)), NodeNames: ['east'] };
      expect(await caller.ask('/filter', small)).toMatchObject({ NodeNames: ['east'] });
      for (const member of ['east', 'west']) {
        const seen = topology
          .member(member)
          .cluster.auditEvents()
          .filter(({ userAgent }) => userAgent === OBSERVER_AGENT);
        expect(seen.length).toBeGreaterThan(0);
        expect(seen.filter(({ verb }) => !READS.includes(verb))).toEqual([]);
      }
    } finally {
      await Promise.all([first.close(), caller.close()]);
      await second.process.stop();
      if (!topology.spillway.process.running) topology.spillway.process.restart();
      await waitReady(topology.spillway);
      for (const member of ['east', 'west']) {
        await until(`${member} is kept by the first one again`, async () => {
          return (await metric('spillway_member_largest_free_slot', { member, resource: 'cpu' })) !== undefined;
        });
      }
    }
    expect(errorsOf(second)).toEqual([]);
  });

  /** A pod that only this question is about. */
  function asked(name: string, spec: Fields): Fields {
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'twice', uid: `uid-of-${name}` }, spec };
  }
});

describe('the room of a member', () => {
  test('is told in its status and in the metrics, as its nodes have it', async () => {
    await newNamespace(host, 'told');
    const there = { nodeSelector: { 'kubernetes.io/hostname': 'east' } };
    const names = ['a', 'b', 'c', 'd', 'e'];
    await host.apply(names.map((name) => pod(name, 'told', burstSpec('3', there))));
    const { cluster } = topology.member('east');
    const taken = await until('all of them have a node in the member', async () => {
      const found = await podsOf(cluster, 'told');
      const nodes = found.map(({ spec }) => spec.nodeName).filter((name) => name !== undefined);
      return nodes.length === names.length ? nodes : undefined;
    });
    // Nodes of 8 cores, and pods of 3.
    const free = [0, 1, 2, 3].map((index) => 8 - 3 * taken.filter((node) => node === `kwok-${String(index)}`).length);
    const largest = Math.max(...free);
    const slots = free.reduce((sum, cores) => sum + Math.floor(cores / 3), 0);
    await until('the metrics say so', async () => {
      expect(await metric('spillway_member_largest_free_slot', { member: 'east', resource: 'cpu' })).toBe(largest);
      expect(await metric('spillway_member_shape_slots', { member: 'east', shape: 'cpu=3' })).toBe(slots);
      return true;
    });
    await until('the status says so', async () => {
      const { status } = (await host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters/east')) as {
        status?: Pick<MemberClusterStatus, 'largestFreeSlot' | 'fits'>;
      };
      expect(status?.largestFreeSlot).toMatchObject({ cpu: String(largest) });
      expect(status?.fits).toContainEqual({ requests: { cpu: '3' }, slots });
      return true;
    });
  });

  test('may be minutes away, and has a limit', async () => {
    await newNamespace(host, 'elastic');
    const resources = { cpu: '16', memory: '64Gi', pods: '10' };
    const group = { name: 'burst', resources, maxNodes: 1, leadTimeSeconds: 8, nodeLabels: { pool: 'burst' } };
    await changeElastic([group]);
    // No node that is there takes 12 cores.
    const there = burstSpec('12', { nodeSelector: { 'kubernetes.io/hostname': 'west' } });
    await host.apply([pod('first', 'elastic', there)]);
    await untilReserved(1);
    // It waits there when the time is over, too, but keeps no room from others.
    await untilReserved(0);
    const [first] = await podsOf(host, 'elastic');
    expect(first?.spec.nodeName).toBe('west');
    await topology.member('west').kwok?.addNodes({ nodes: 1, prefix: 'burst', cpu: '16', labels: { pool: 'burst' } });
    await until('it runs on the node that came', async () => {
      const [found] = await podsOf(topology.member('west').cluster, 'elastic');
      return found?.spec.nodeName === 'burst-0';
    });
    // The node that is there counts: there will be no other.
    await host.apply([pod('second', 'elastic', there)]);
    const told = await until('the second is told why it waits', async () => {
      const events = await eventsOf(host, 'elastic', 'second');
      return events.find(({ reason }) => reason === 'FailedScheduling')?.message;
    });
    expect(told).toMatch(/member west: .*no node has 12 cpu free \(largest free slot 8 cpu\)/);
    await changeElastic(null);
  });

  async function changeElastic(elastic: readonly object[] | null): Promise<void> {
    const patch = JSON.stringify({ spec: { capacity: { elastic } } });
    await kubectl(host, ['patch', 'membercluster', 'west', '--type=merge', '-p', patch]);
  }

  async function untilReserved(count: number): Promise<void> {
    await until(`room for ${String(count)} pods is set aside`, async () => {
      return (await metric('spillway_member_reserved_pods', { member: 'west' })) === count;
    });
  }
});

describe('a workload of a kind that is not Kubernetes own', () => {
  const GROUP = 'workloads.example.com';
  const apiVersion = `${GROUP}/v1`;

  beforeAll(async () => {
    const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    await host.apply([
      {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `rollouts.${GROUP}` },
        spec: {
          group: GROUP,
          scope: 'Namespaced',
          names: { plural: 'rollouts', singular: 'rollout', kind: 'Rollout', listKind: 'RolloutList' },
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
        },
      },
    ]);
    await until(
      'the kind is served',
      async () => (await kubectl(host, ['get', `rollouts.${GROUP}`, '-A'])) !== undefined,
    );
  });

  afterEach(async () => {
    await kubectl(host, ['delete', 'replicaset', '--all', '-n', 'owned', '--wait=false']);
  });

  /** Wherever no policy sends them. */
  async function running(app: string): Promise<void> {
    await until(`pods of ${app} run`, async () => {
      const pods = await podsOf(host, 'owned', `app=${app}`);
      return pods.length === 2 && pods.every(({ status }) => status?.phase === 'Running');
    });
  }

  /** A Rollout with a ReplicaSet of its own, as its controller would make it. Returns what names it as an owner. */
  async function rollOut(name: string, tier: string): Promise<Fields> {
    const metadata = { name, namespace: 'owned', labels: { tier } };
    await host.apply([{ apiVersion, kind: 'Rollout', metadata, spec: { secret: 'not read' } }]);
    const path = `/apis/${apiVersion}/namespaces/owned/rollouts/${name}`;
    const { uid } = ((await host.api.call('GET', path)) as { metadata: { uid: string } }).metadata;
    const { spec } = deployment('owned', name, 2, '1') as { spec: Fields };
    const owner = { apiVersion, kind: 'Rollout', name, uid, controller: true };
    const ofSet = { name, namespace: 'owned', ownerReferences: [owner] };
    await host.apply([{ apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: ofSet, spec }]);
    return owner;
  }

  async function consistent(kind = 'placementpolicy'): Promise<string> {
    const path = '{.status.conditions[?(@.type=="Consistent")]}';
    const stdout = await kubectl(host, ['get', kind, 'front', '-n', 'owned', '-o', `jsonpath=${path}`]);
    const { status = '', message = '' } = JSON.parse(stdout === '' ? '{}' : stdout) as {
      status?: string;
      message?: string;
    };
    return `${status} ${message}`;
  }

  /** Collections of the host that the manager follows. */
  async function followed(): Promise<string[]> {
    const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    const found = text.matchAll(/^kube_informer_objects\{cluster="host",resource="([^"]+)"\}/gm);
    return [...found].map(([, resource]) => resource ?? '').toSorted();
  }

  test('is placed and overridden by its labels once its metadata may be read; until then policies and pods say what to grant', async () => {
    await newNamespace(host, 'owned');
    const labelSelector = { matchLabels: { tier: 'front' } };
    const resourceSelectors = [{ apiVersion, kind: 'Rollout', labelSelector }];
    const placement = { clusterAffinity: { clusterNames: ['east'] } };
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementPolicy',
        metadata: { name: 'front', namespace: 'owned' },
        spec: { resourceSelectors, placement },
      },
    ]);
    const owner = await rollOut('early', 'front');
    await running('early');
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'OverridePolicy',
        metadata: { name: 'front', namespace: 'owned' },
        spec: {
          resourceSelectors,
          overrideRules: [{ overriders: { labelsOverrider: [{ operator: 'add', value: { seen: 'front' } }] } }],
        },
      },
      pod('sent', 'owned', burstSpec('1', { nodeName: 'west' }), { ownerReferences: [owner] }),
    ]);
    const mayNot = /^False .*may not read rollouts\.workloads/;
    await until('the override policy says so', async () => mayNot.test(await consistent('overridepolicy')));
    const [sent] = await until('its pod is held, and says what to grant', async () => {
      const pods = (await podsOf(host, 'owned')).filter(({ metadata }) => metadata.name === 'sent');
      return pods.some(({ status }) => status?.reason === 'OverrideRefused') ? pods : undefined;
    });
    expect(sent?.status?.message).toContain('make a ClusterRole with the label');
    expect(await podsOf(topology.member('west').cluster, 'owned')).toEqual([]);
    await until('the policy says so', async () => mayNot.test(await consistent()));
    const [early] = await podsOf(host, 'owned', 'app=early');
    await until('and so does an Event of the pod', async () => {
      const events = await eventsOf(host, 'owned', early?.metadata.name ?? '');
      return events.some(
        ({ reason, message }) => reason === 'OwnerNotReadable' && message.includes('make a ClusterRole'),
      );
    });
    const before = await followed();
    expect(before).not.toContain('rollouts');

    const robot = { kind: 'Robot', name: 'r', uid: 'made-up', controller: true };
    const madeUp = Array.from({ length: 100 }, (_, index) => {
      const ownerReferences = [{ ...robot, apiVersion: `x${String(index)}.example.com/v1` }];
      return pod(`made-up-${String(index)}`, 'owned', burstSpec('1', { schedulerName: 'nobody' }), { ownerReferences });
    });
    await host.apply(madeUp);
    await host.apply([
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'owners-rollouts', labels: { 'spillway.dev/aggregate-to-owners': 'true' } },
        rules: [{ apiGroups: [GROUP], resources: ['rollouts'], verbs: ['get', 'list', 'watch'] }],
      },
    ]);
    await until('the policy is content', async () => (await consistent()).startsWith('True'), { timeoutMs: 60_000 });
    await until('so is the override policy', async () => (await consistent('overridepolicy')).startsWith('True'));
    await rollOut('web', 'front');
    await rollOut('back', 'back');
    await settled(host, 'owned', 'web', { east: 2 });
    await until('what was held runs with what the policy says', async () => {
      return (await podsOf(topology.member('west').cluster, 'owned', 'seen=front')).length === 1;
    });
    expect(await podsOf(topology.member('east').cluster, 'owned', 'app=web,seen=front')).toHaveLength(2);
    await running('back');
    // Labels that are put on later count for the next pod.
    await kubectl(host, ['label', `rollout.${GROUP}`, 'back', '-n', 'owned', 'tier=front', '--overwrite']);
    await kubectl(host, ['delete', 'pod', '-n', 'owned', '-l', 'app=back', '--wait=false']);
    await settled(host, 'owned', 'back', { east: 2 });
    // Nothing of what was made up is.
    expect(await followed()).toEqual([...before, 'rollouts'].toSorted());
    expect(await metric('kube_informer_objects', { cluster: 'host', resource: 'rollouts' })).toBe(3);
  });
});

/** Value of a sample; undefined when there is none with these labels. `url`: of a program; default: the first one. */
async function metric(
  name: string,
  labels: Readonly<Record<string, string>>,
  url = topology.spillway.url,
): Promise<number | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const line = text.split('\n').find((one) => one.startsWith(`${name}{`) && wanted.every((part) => one.includes(part)));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
}
