import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startSecondScheduler } from '../../hack/second-scheduler.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/api/wire.ts';
import { condition, eventsOf, kubectl, newNamespace, pod, podsOf, read } from '../fixtures/live-pods.ts';
import {
  burstNamespace,
  burstSpec,
  deployment,
  LOCAL_PREFIX,
  placementOf,
  policy,
  scale,
  schedulingMessage,
  settled,
  whereAre,
} from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Ordinary Deployments of the host; kube-scheduler asks Spillway where their pods may run. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
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

describe('tiers', () => {
  test('fill one after the other up to their maximum, and are emptied in the reverse order', async () => {
    await newNamespace(host, 'tiers');
    const placement = {
      clusterAffinity: {
        clusterNames: ['local'],
        overflowAffinities: [{ clusterNames: ['east'], max: 3 }, { clusterNames: ['west'] }],
      },
    };
    await host.apply([policy('tiers', 'overflow', placement), deployment('tiers', 'web', 10, '2')]);
    await settled(host, 'tiers', 'web', { local: 10 });
    await scale(host, 'tiers', 'web', 12);
    await settled(host, 'tiers', 'web', { local: 10, east: 2 });
    await scale(host, 'tiers', 'web', 20);
    const pods = await settled(host, 'tiers', 'web', { local: 10, east: 3, west: 7 });
    await costsKeep('tiers', { local: 10, east: 3 });
    await costsKeep('tiers', { local: 10 });
    await scale(host, 'tiers', 'web', 13);
    await settled(host, 'tiers', 'web', { local: 10, east: 3 });
    await scale(host, 'tiers', 'web', 2);
    await settled(host, 'tiers', 'web', { local: 2 });
    expect(pods).toHaveLength(20);
  });
});

describe('static weights', () => {
  test('divide exactly, through a roll-out and from 3 to 30 to 3', async () => {
    await newNamespace(host, 'weights');
    const rule = (name: string, weight: number) => ({ targetCluster: { clusterNames: [name] }, weight });
    const placement = {
      replicaScheduling: {
        weightPreference: { staticWeightList: [rule('local', 1), rule('east', 2), rule('west', 3)] },
      },
    };
    await host.apply([policy('weights', 'shares', placement), deployment('weights', 'web', 12, '100m')]);
    await settled(host, 'weights', 'web', { local: 2, east: 4, west: 6 });
    await kubectl(host, ['set', 'image', '-n', 'weights', 'deployment/web', 'main=registry.example/app:v2']);
    await kubectl(host, ['rollout', 'status', '-n', 'weights', 'deployment/web', '--timeout=60s']);
    await settled(host, 'weights', 'web', { local: 2, east: 4, west: 6 });
    await costsKeep('weights', { local: 1, east: 1, west: 1 });
    await scale(host, 'weights', 'web', 3);
    await settled(host, 'weights', 'web', { local: 1, east: 1, west: 1 });
    await scale(host, 'weights', 'web', 30);
    await settled(host, 'weights', 'web', { local: 5, east: 10, west: 15 });
    await costsKeep('weights', { local: 1, east: 1, west: 1 });
    await scale(host, 'weights', 'web', 3);
    await settled(host, 'weights', 'web', { local: 1, east: 1, west: 1 });
    const placed = await until('WorkloadPlacement tells of it', async () => {
      const found = await placementOf(host, 'weights', 'web');
      return found?.status?.replicas === 3 && found.status.placed === 3 ? found : undefined;
    });
    expect(placed.status).toMatchObject({
      policy: { kind: 'PlacementPolicy', name: 'shares', generation: 1 },
      where: 'east 1, local 1, west 1',
      waiting: 0,
      clusters: [
        { name: 'east', tier: 0, target: 1, actual: 1 },
        { name: 'local', tier: 0, target: 1, actual: 1 },
        { name: 'west', tier: 0, target: 1, actual: 1 },
      ],
    });
    const accepted = await read<{ status?: { conditions?: { type: string; status: string }[] } }>(
      host,
      '/apis/spillway.dev/v1alpha1/namespaces/weights/placementpolicies/shares',
    );
    expect(accepted?.status?.conditions?.map(({ type, status }) => [type, status])).toEqual([
      ['Accepted', 'True'],
      ['Consistent', 'True'],
    ]);
  });
});

/** Waits until the costs are such that these pods, and no others, are left when the workload shrinks to as many. */
async function costsKeep(namespace: string, wanted: Record<string, number>): Promise<void> {
  const total = Object.values(wanted).reduce((all, one) => all + one, 0);
  const costOf = ({ metadata }: Pod): number =>
    Number(metadata.annotations?.['controller.kubernetes.io/pod-deletion-cost'] ?? 0);
  await until(`the costs of ${namespace} keep ${JSON.stringify(wanted)}`, async () => {
    const pods = (await podsOf(host, namespace)).toSorted((a, b) => costOf(b) - costOf(a));
    const [last, next] = [pods[total - 1], pods[total]];
    if (last === undefined || next === undefined || costOf(last) <= costOf(next)) return false;
    return isDeepStrictEqual(whereAre(pods.slice(0, total)), wanted);
  });
}

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

describe('pods that fit nowhere', () => {
  test('stay unbound, hold nothing, and are told why; small ones are bound at once', async () => {
    await burstNamespace(host, 'big');
    await host.apply([deployment('big', 'huge', 30, '16')]);
    const message = await schedulingMessage(host, 'big', 'huge');
    expect(message).toMatch(/1 member east: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    expect(message).toMatch(/1 member west: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    await host.apply([deployment('big', 'small', 40, '1')]);
    const small = await until('40 small pods are bound', async () => {
      const found = await podsOf(host, 'big', 'app=small');
      return found.length === 40 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    // From the creation of each pod to its bind; how long kubectl and the controllers take on a busy machine is not meant.
    expect(Math.max(...small.map(secondsToBind))).toBeLessThan(5);
    const huge = await podsOf(host, 'big', 'app=huge');
    expect(whereAre(huge)).toEqual({ waiting: 30 });
    const events = await eventsOf(host, 'big', huge[0]?.metadata.name ?? '');
    expect(events.find(({ reason }) => reason === 'FailedScheduling')?.message).toContain('member east: ');
  });
});

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

describe('a second scheduler, as it is shipped', () => {
  test('binds the pods that carry its name; while Spillway does not answer they wait', async () => {
    const { extenderPort } = topology;
    if (extenderPort === undefined) throw new Error('no extender');
    const second = await startSecondScheduler(host, { extenderPort });
    await burstNamespace(host, 'second');
    const spec = { schedulerName: 'spillway-scheduler', nodeSelector: { type: 'virtual-kubelet' } };
    await host.apply([deployment('second', 'web', 2, '1', {}, spec)]);
    const pods = await until('both pods are bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 2 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    const events = await eventsOf(host, 'second', pods[0]?.metadata.name ?? '');
    expect(events.find(({ reason }) => reason === 'Scheduled')?.source).toBe('spillway-scheduler');
    // kube-scheduler does not go on without it: the pods are all Spillway's business.
    topology.spillway.process.signal('SIGSTOP');
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
      topology.spillway.process.signal('SIGCONT');
    }
    await until('the third pod is bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 3 && whereAre(found)['waiting'] === undefined;
    });
    await second.stop();
  });
});
