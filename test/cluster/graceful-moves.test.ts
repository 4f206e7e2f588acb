import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { RELEASED_ANNOTATION } from '../../src/api/marks.ts';
import { releasedFrom } from '../../src/api/released.ts';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { WorkloadRebalancer } from '../../src/api/workload-rebalancer.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { eventsOf, type Fields, isReady, kubectl, newNamespace, podsOf, read } from '../fixtures/live-pods.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { deployment, policy, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Pods leave a member that answers: others are Ready elsewhere first. */
let topology: Topology;
let host: Cluster;
const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
/** A readiness gate: the test says when a pod is Ready. */
const GATE = 'example.com/go';

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    // Else each pod is written to once more, ten seconds after it is bound.
    spillway: { configuration: { outages: { toleration: 'Keep' } } },
    members: ['east', 'west'].map((name) => ({ name, kwok: { nodes: 2, cpu: '8' } })),
  });
  ({ host } = topology);
  await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

let namespace = '';
let count = 0;
beforeEach(async () => {
  namespace = await newNamespace(host, `graceful-${(count += 1)}`);
});
afterEach(async () => {
  await taint(false);
  await kubectl(host, ['delete', 'namespace', namespace, '--wait=false']);
});

async function taint(on: boolean): Promise<void> {
  const clusterTaints = on ? [{ key: 'drained', effect: 'NoExecute' }] : null;
  await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { clusterTaints } });
}

/** East first, then west. */
function rules(cluster: Fields = {}): Fields {
  const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
  const { spec, ...rest } = policy(namespace, 'all', placement);
  return { ...rest, spec: { ...(spec as Fields), failover: { cluster } } };
}

/** Policies that schedulers know. */
async function inUse(...policies: Fields[]): Promise<void> {
  await host.apply(policies);
  await policyInUse(host, namespace, 'all');
}

const gated = (replicas: number): Fields =>
  deployment(namespace, 'web', replicas, '100m', {}, { readinessGates: [{ conditionType: GATE }] });

async function open({ metadata: { name } }: Pod): Promise<void> {
  const status = { conditions: [{ type: GATE, status: 'True', lastTransitionTime: new Date().toISOString() }] };
  const how = ['--subresource=status', '--type=strategic', '-p', JSON.stringify({ status })];
  await kubectl(host, ['patch', 'pod', name, '-n', namespace, ...how]);
}

const pods = async (): Promise<Pod[]> => await podsOf(host, namespace, 'app=web');
const isReleased = ({ metadata }: Pod): boolean => metadata.annotations?.[RELEASED_ANNOTATION] !== undefined;
const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

/** Pods that wait for the word of the test. */
async function ungated(): Promise<Pod[]> {
  return (await pods()).filter((pod) => !isReady(pod) && pod.spec.nodeName !== undefined && !isGoing(pod));
}

async function gatedAreReady(replicas: number): Promise<void> {
  await host.apply([gated(replicas)]);
  await until('they are bound', async () => (await ungated()).length === replicas);
  for (const pod of await ungated()) await open(pod);
  await settled(host, namespace, 'web', { east: replicas });
}

async function released(): Promise<Pod> {
  return await until('one is released, and another one waits to be Ready in west', async () => {
    const all = await pods();
    const one = all.find((pod) => isReleased(pod) && pod.metadata.ownerReferences === undefined);
    return one !== undefined && (await ungated()).some(({ spec }) => spec.nodeName === 'west') ? one : undefined;
  });
}

function writes(verb: string, subresource?: string): AuditEvent[] {
  return host
    .auditEvents()
    .filter(({ objectRef, user }) => objectRef?.namespace === namespace && user.username === MANAGER)
    .filter((event) => event.verb === verb && event.objectRef?.subresource === subresource)
    .filter(({ objectRef, responseStatus }) => objectRef?.resource === 'pods' && (responseStatus?.code ?? 500) < 300);
}
const evictions = (): AuditEvent[] => writes('create', 'eviction');

async function metrics(): Promise<string> {
  return await (await fetch(`${topology.spillway.url}/metrics`)).text();
}

async function crash(): Promise<void> {
  await topology.spillway.process.stop('SIGKILL');
}
async function comeBack(): Promise<void> {
  topology.spillway.process.restart();
  await waitReady(topology.spillway);
}

test('20 pods move one after the other under a budget that allows no disruption, and 20 are Ready all the time', async () => {
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  };
  await inUse(rules());
  await host.apply([deployment(namespace, 'web', 20, '100m'), budget]);
  const before = await settled(host, namespace, 'web', { east: 20 });
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await taint(true);
    await settled(host, namespace, 'web', { west: 20 }, 120_000);
  });
  expect(fewest).toBe(20);
  expect(evictions()).toHaveLength(20);
  const names = new Set(before.map(({ metadata }) => metadata.name));
  expect(new Set(evictions().map(({ objectRef }) => objectRef?.name))).toEqual(names);
  await until('the last one is counted', async () => {
    const text = await metrics();
    const counted = 'spillway_descheduler_releases_ended_total{outcome="Replaced"} 20';
    return text.includes(counted) && text.includes('spillway_descheduler_released_pods 0');
  });
  // Their copies were created and deleted, and nothing else.
  const inEast = topology
    .member('east')
    .cluster.auditEvents()
    .filter(({ objectRef, user }) => objectRef?.namespace === namespace && user.username.endsWith(':spillway-host'))
    .filter(({ objectRef, verb }) => objectRef?.resource === 'pods' && !['get', 'list', 'watch'].includes(verb));
  expect(new Set(inEast.map(({ verb }) => verb))).toEqual(new Set(['create', 'delete']));
  const [first] = before;
  expect(
    (await eventsOf(host, namespace, first?.metadata.name ?? '')).find(({ reason }) => reason === 'TaintedPodMoved')
      ?.message,
  ).toMatch(
    /^member east has taints that it does not tolerate \(drained:NoExecute\); it was released, so that ReplicaSet web-\S+ makes another one, which goes elsewhere\. It goes on until that one is Ready$/,
  );
});

describe('a crash of the mover', () => {
  test('after a release, and before and after the eviction, is found and finished', async () => {
    await inUse(rules());
    await gatedAreReady(2);
    await taint(true);
    const first = await released();
    await crash();
    await comeBack();
    await until('it is found', async () => (await metrics()).includes('spillway_descheduler_released_pods 1'));
    // Nothing is to be done as long as the other one is not Ready.
    expect((await pods()).filter(isReady)).toHaveLength(2);
    expect(evictions()).toEqual([]);
    const [other] = await ungated();
    // Ready while nobody looks.
    if (other === undefined) throw new Error('no pod waits');
    await crash();
    await open(other);
    await comeBack();
    await until('the first one is evicted', () =>
      evictions().some(({ objectRef }) => objectRef?.name === first.metadata.name),
    );
    await crash();
    await comeBack();
    await until(
      'all are in west',
      async () => {
        for (const pod of await ungated()) await open(pod);
        const all = await pods();
        return all.length === 2 && whereAre(all)['west'] === 2 && all.every(isReady) ? true : undefined;
      },
      { timeoutMs: 90_000 },
    );
    expect((await pods()).some(isReleased)).toBe(false);
  });

  test('leaves nothing behind when the Deployment is scaled down or deleted meanwhile', async () => {
    await inUse(rules());
    await gatedAreReady(2);
    await taint(true);
    const first = await released();
    await crash();
    await kubectl(host, ['scale', 'deployment/web', '-n', namespace, '--replicas=1']);
    await comeBack();
    // One is Ready without it.
    await until('it ends', () => evictions().some(({ objectRef }) => objectRef?.name === first.metadata.name));
    await released();
    await crash();
    await kubectl(host, ['delete', 'deployment', 'web', '-n', namespace]);
    await until('only what nobody owns is left', async () => {
      const left = await pods();
      return left.filter((pod) => !isGoing(pod)).every(isReleased);
    });
    await comeBack();
    await until('nothing is left', async () => (await pods()).length === 0, { timeoutMs: 60_000 });
  });
});

test('what is not replaced in time is given back: the other one goes, and no pod that serves', async () => {
  // Long enough for another one to come to west meanwhile.
  await inUse(rules({ gracePeriodSeconds: 8 }));
  await gatedAreReady(3);
  const uids = (await pods()).map(({ metadata }) => metadata.uid);
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await taint(true);
    const first = await released();
    // It takes the ReplicaSet a while to have it again: meanwhile no other one is released.
    const controllers = host.component('kube-controller-manager');
    controllers.signal('SIGSTOP');
    try {
      await until('it is told', async () =>
        (await eventsOf(host, namespace, first.metadata.name)).some(({ reason }) => reason === 'ReleasedPodGivenBack'),
      );
      const isOutNow = async (): Promise<boolean> => (await pods()).some(isReleased);
      await expect(until('another one is released', isOutNow, { timeoutMs: 4_000 })).rejects.toThrow('another one');
    } finally {
      controllers.signal('SIGCONT');
    }
    await until('its ReplicaSet has it again, and not the other one', async () => {
      const all = await pods();
      const own = all.find(({ metadata }) => metadata.name === first.metadata.name);
      return own?.metadata.ownerReferences?.length === 1 && !isReleased(own) && all.length <= 4;
    });
    const second = await released();
    expect(releasedFrom(second)?.ready).toBe(3);
  });
  expect(fewest).toBe(3);
  expect(evictions()).toEqual([]);
  const left = new Set((await pods()).filter(isReady).map(({ metadata }) => metadata.uid));
  expect(uids.every((uid) => left.has(uid))).toBe(true);
});

test('what is not replaced in time goes all the same where the policy says onTimeout: Evict, and not before', async () => {
  const seconds = 6;
  await inUse(rules({ gracePeriodSeconds: seconds, onTimeout: 'Evict' }));
  await gatedAreReady(2);
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await taint(true);
    const first = await released();
    const { name } = first.metadata;
    const told = await until('it is told', async () =>
      (await eventsOf(host, namespace, name)).find(({ reason }) => reason === 'ReleasedPodEvicted'),
    );
    expect(told.message).toMatch(/no other pod that became Ready in time, .*onTimeout: Evict: it was evicted$/);
    const evicted = await until('it is evicted', () => evictions().find(({ objectRef }) => objectRef?.name === name));
    const waitedMs = Date.parse(evicted.requestReceivedTimestamp) - Date.parse(releasedFrom(first)?.at ?? '');
    expect(waitedMs).toBeGreaterThanOrEqual(seconds * 1_000);
    await until(
      'all are in west',
      async () => {
        for (const pod of await ungated()) await open(pod);
        const all = await pods();
        return all.length === 2 && whereAre(all)['west'] === 2 && all.every(isReady);
      },
      { timeoutMs: 90_000 },
    );
  });
  // One that serves went, and none had come for it.
  expect(fewest).toBeLessThan(2);
  expect(new Set(evictions().map(({ objectRef }) => objectRef?.name)).size).toBe(2);
});

describe('the policy says', () => {
  test('Directly: it is evicted at once, and the budget holds', async () => {
    await inUse(rules({ purgeMode: 'Directly' }));
    await host.apply([deployment(namespace, 'web', 2, '100m')]);
    await settled(host, namespace, 'web', { east: 2 });
    await taint(true);
    await settled(host, namespace, 'web', { west: 2 });
    expect(
      writes('patch').filter(({ objectRef }) => evictions().some((one) => one.objectRef?.name === objectRef?.name)),
    ).toEqual([]);
  });

  test('Never: it stays, and says so', async () => {
    await inUse(rules({ purgeMode: 'Never' }));
    await host.apply([deployment(namespace, 'web', 1, '100m')]);
    const [only] = await settled(host, namespace, 'web', { east: 1 });
    await taint(true);
    const message = await until(
      'it is told',
      async () =>
        (await eventsOf(host, namespace, only?.metadata.name ?? '')).find(({ reason }) => reason === 'TaintedPodHeld')
          ?.message,
    );
    expect(message).toMatch(/and it stays there for now: its policy says purgeMode: Never$/);
    expect(evictions()).toEqual([]);
  });

  test('nothing, and the Deployment says Recreate: no two run side by side', async () => {
    await inUse(rules());
    await host.apply([deployment(namespace, 'web', 1, '100m', { strategy: { type: 'Recreate' } })]);
    await settled(host, namespace, 'web', { east: 1 });
    await taint(true);
    await settled(host, namespace, 'web', { west: 1 });
    expect((await pods()).some(isReleased)).toBe(false);
    expect(evictions()).toHaveLength(1);
  });
});

describe('a WorkloadRebalancer', () => {
  const path = '/apis/spillway.dev/v1alpha1/workloadrebalancers';
  const evenly = {
    clusterAffinity: { clusterNames: ['east', 'west'] },
    replicaScheduling: {
      replicaSchedulingType: 'Divided',
      replicaDivisionPreference: 'Weighted',
      weightPreference: {
        staticWeightList: ['east', 'west'].map((name) => ({ targetCluster: { clusterNames: [name] }, weight: 1 })),
      },
    },
  };

  const named = (apiVersion: string, kind: string, name: string): Fields => ({ apiVersion, kind, namespace, name });
  const rebalancer = (spec: Fields, ...more: Fields[]): Fields => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadRebalancer',
    metadata: { name: namespace },
    spec: { workloads: [named('apps/v1', 'Deployment', 'web'), ...more], ...spec },
  });
  const stored = async (): Promise<WorkloadRebalancer | undefined> =>
    await read<WorkloadRebalancer>(host, `${path}/${namespace}`);
  const untilOver = async (): Promise<string[]> => {
    const { status } = await until('it is over', async () => {
      const found = await stored();
      return found?.status?.finishTime === undefined ? undefined : found;
    });
    return (status?.observedWorkloads ?? []).map(({ result = '', reason }) => `${result} ${reason}`);
  };

  test('divides anew what runs by the policy of this moment, one pod after the other is Ready in its place, tells it, and goes in its time', async () => {
    await inUse(rules());
    await host.apply([deployment(namespace, 'web', 4, '100m')]);
    const jobTemplate = {
      spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'any' }] } } },
    };
    const nightly = named('batch/v1', 'CronJob', 'nightly');
    await host.apply([
      {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { name: 'nightly', namespace },
        spec: { schedule: '@yearly', jobTemplate },
      },
    ]);
    await settled(host, namespace, 'web', { east: 4 });
    let results: string[] = [];
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      const others = [named('apps/v1', 'Deployment', 'gone'), nightly];
      await host.apply([policy(namespace, 'all', evenly), rebalancer({ ttlSecondsAfterFinished: 5 }, ...others)]);
      // What became of each is there for these seconds only.
      [results] = await Promise.all([untilOver(), settled(host, namespace, 'web', { east: 2, west: 2 })]);
    });
    expect(fewest).toBe(4);
    const moved = evictions().map(({ objectRef }) => objectRef?.name ?? '');
    expect(moved).toHaveLength(2);
    const none = 'Failed ReferencedWorkloadNotFound';
    expect(results).toEqual(['Successful Rebalanced', none, none]);
    expect((await eventsOf(host, namespace, moved[0] ?? '')).map(({ reason }) => reason)).toContain('PodRebalanced');
    await until('it goes', async () => (await stored()) === undefined);
    expect(whereAre(await pods())).toEqual({ east: 2, west: 2 });
  });

  test('goes on after a crash in the middle of a move, and then moves no more than before', async () => {
    await inUse(rules());
    await gatedAreReady(2);
    await inUse(policy(namespace, 'all', evenly));
    await host.apply([rebalancer({})]);
    const { metadata } = await released();
    await crash();
    await comeBack();
    expect((await stored())?.status?.finishTime).toBeUndefined();
    for (const pod of await ungated()) await open(pod);
    await settled(host, namespace, 'web', { east: 1, west: 1 });
    expect(await untilOver()).toEqual(['Successful Rebalanced']);
    expect(evictions().map(({ objectRef }) => objectRef?.name)).toEqual([metadata.name]);
    await kubectl(host, ['delete', 'workloadrebalancer', namespace]);
  });
});

describe('kubectl spillway move', () => {
  interface Counted {
    status?: { hard?: object };
  }
  const move = async (...words: string[]) =>
    await kubectlSpillway(host, ['move', '-n', namespace, '--from', 'east', '--to', 'west', ...words], {
      timeoutMs: 110_000,
    });
  const stored = async (): Promise<WorkloadMigration[]> => {
    const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadmigrations`;
    return (await read<{ items: WorkloadMigration[] } & WorkloadMigration>(host, path))?.items ?? [];
  };

  test('brings three pods from east, which comes first, to west, three Ready all the time; a dry run only says that they fit', async () => {
    await inUse(rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const dry = await move('deploy/web', '--dry-run=server');
    expect(dry.stdout).toMatch(
      /^workloadmigration\.spillway\.dev\/web-[0-9a-f]{6} created \(server dry run\)\ndeployment\/web: 3 pods: Fits\n$/,
    );
    expect([dry.code, await stored(), evictions(), writes('patch')]).toEqual([0, [], [], []]);
    let done = dry;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      done = await move('--all', '--wait', '--timeout', '90');
      await settled(host, namespace, 'web', { west: 3 });
    });
    expect(fewest).toBe(3);
    expect(done.stdout.split('\n').slice(1)).toEqual([
      'deployment/web: 3 pods: Fits',
      'deployment/web: 3 of 3 pods moved',
      '',
    ]);
    expect(done.code).toBe(0);
    expect(evictions()).toHaveLength(3);
    // It is over: the policy alone says where the next one goes.
    await kubectl(host, ['scale', 'deployment', 'web', '-n', namespace, '--replicas=4']);
    await settled(host, namespace, 'web', { east: 1, west: 3 });
  });

  test('moves nothing, and says what does not fit, when west is too small for all of them', async () => {
    const onWest = { nodeSelector: { 'spillway.dev/member': 'west' } };
    await host.apply([deployment(namespace, 'filler', 2, '6', {}, onWest)]);
    await inUse(rules());
    await host.apply([deployment(namespace, 'web', 3, '2')]);
    await settled(host, namespace, 'web', { east: 3 });
    await settled(host, namespace, 'filler', { west: 2 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect(code).toBe(5);
    expect(stdout.split('\n')[1]).toMatch(
      /^deployment\/web: 3 pods: DoesNotFit: a place for 2 of 3 pods \(member west: .*cpu/,
    );
    expect(stderr).toMatch(
      /^error: nothing was moved, as not all of it fits\nreason: 1 workload of 1: deployment\/web: .*\nfix: by what the reason says make room/m,
    );
    expect([evictions(), writes('patch')]).toEqual([[], []]);
    expect(whereAre(await pods())).toEqual({ east: 3 });
  });

  test('moves nothing, and says which quota is in the way, when the namespace in west has one that is too small', async () => {
    const west = topology.member('west').cluster;
    const labels = { 'spillway.dev/allow-host': 'any' };
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace } };
    await west.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      { ...quota, spec: { hard: { 'requests.cpu': '250m' } } },
    ]);
    const quotaPath = `/api/v1/namespaces/${namespace}/resourcequotas/few`;
    await until('it is counted', async () => (await read<Counted>(west, quotaPath))?.status?.hard !== undefined);
    await inUse(rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect([code, stdout.split('\n')[1]]).toEqual([
      5,
      'deployment/web: 3 pods: DoesNotFit: a place for 2 of 3 pods (member west: quota few: 100m requests.cpu wanted, 50m left)',
    ]);
    expect(stderr).toMatch(/^reason: 1 workload of 1: deployment\/web: .*quota few/m);
    expect([evictions(), writes('patch'), await podsOf(west, namespace)]).toEqual([[], [], []]);
    expect(whereAre(await pods())).toEqual({ east: 3 });
  });

  test('stopped half way: what has begun is finished, and nothing more begins, also after a crash', async () => {
    await inUse(rules());
    await gatedAreReady(3);
    expect(await move('deployment/web')).toMatchObject({ code: 0 });
    const { metadata } = await released();
    await crash();
    await comeBack();
    await until('it is still under way', async () => (await stored())[0]?.status?.finishTime === undefined);
    await kubectl(host, ['delete', 'workloadmigrations', '--all', '-n', namespace]);
    for (const pod of await ungated()) await open(pod);
    await settled(host, namespace, 'web', { east: 2, west: 1 });
    expect(evictions().map(({ objectRef }) => objectRef?.name)).toEqual([metadata.name]);
  });
});
