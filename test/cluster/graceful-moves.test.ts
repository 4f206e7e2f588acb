import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { releasedFrom } from '../../src/api/released.ts';
import type { WorkloadRebalancer } from '../../src/api/workload-rebalancer.ts';
import { eventsOf, type Fields, isReady, kubectl, read } from '../fixtures/live-pods.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { deployment, policy, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { isGoing, isReleased, MovesHarness } from './moves-harness.ts';

/** Pods leave a member that answers: others are Ready elsewhere first. */
let m: MovesHarness;
let host: Cluster;
let namespace = '';
beforeAll(async () => {
  m = await MovesHarness.start('graceful');
  ({ host } = m);
});
afterAll(async () => {
  await m?.close();
});
beforeEach(async () => {
  namespace = await m.begin();
});
afterEach(async () => {
  await m.end();
});

test('20 pods move one after the other under a budget that allows no disruption, and 20 are Ready all the time', async () => {
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  };
  await m.inUse(m.rules());
  await host.apply([deployment(namespace, 'web', 20, '100m'), budget]);
  const before = await settled(host, namespace, 'web', { east: 20 });
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await m.taint(true);
    await settled(host, namespace, 'web', { west: 20 }, 120_000);
  });
  expect(fewest).toBe(20);
  expect(m.evictions()).toHaveLength(20);
  const names = new Set(before.map(({ metadata }) => metadata.name));
  expect(new Set(m.evictions().map(({ objectRef }) => objectRef?.name))).toEqual(names);
  await until('the last one is counted', async () => {
    const text = await m.metrics();
    const counted = 'spillway_descheduler_releases_ended_total{outcome="Replaced"} 20';
    return text.includes(counted) && text.includes('spillway_descheduler_released_pods 0');
  });
  // Their copies were created and deleted, and nothing else.
  const inEast = m.topology
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
    await m.inUse(m.rules());
    await m.gatedAreReady(2);
    await m.taint(true);
    const first = await m.released();
    await m.crash();
    await m.comeBack();
    await until('it is found', async () => (await m.metrics()).includes('spillway_descheduler_released_pods 1'));
    // Nothing is to be done as long as the other one is not Ready.
    expect((await m.pods()).filter(isReady)).toHaveLength(2);
    expect(m.evictions()).toEqual([]);
    const [other] = await m.ungated();
    // Ready while nobody looks.
    if (other === undefined) throw new Error('no pod waits');
    await m.crash();
    await m.open(other);
    await m.comeBack();
    await until('the first one is evicted', () =>
      m.evictions().some(({ objectRef }) => objectRef?.name === first.metadata.name),
    );
    await m.crash();
    await m.comeBack();
    await until(
      'all are in west',
      async () => {
        for (const pod of await m.ungated()) await m.open(pod);
        const all = await m.pods();
        return all.length === 2 && whereAre(all)['west'] === 2 && all.every(isReady) ? true : undefined;
      },
      { timeoutMs: 90_000 },
    );
    expect((await m.pods()).some(isReleased)).toBe(false);
  });

  test('leaves nothing behind when the Deployment is scaled down or deleted meanwhile', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(2);
    await m.taint(true);
    const first = await m.released();
    await m.crash();
    await kubectl(host, ['scale', 'deployment/web', '-n', namespace, '--replicas=1']);
    await m.comeBack();
    // One is Ready without it.
    await until('it ends', () => m.evictions().some(({ objectRef }) => objectRef?.name === first.metadata.name));
    await m.released();
    await m.crash();
    await kubectl(host, ['delete', 'deployment', 'web', '-n', namespace]);
    await until('only what nobody owns is left', async () => {
      const left = await m.pods();
      return left.filter((pod) => !isGoing(pod)).every(isReleased);
    });
    await m.comeBack();
    await until('nothing is left', async () => (await m.pods()).length === 0, { timeoutMs: 60_000 });
  });
});

test('what is not replaced in time is given back: the other one goes, and no pod that serves', async () => {
  // Long enough for another one to come to west meanwhile.
  await m.inUse(m.rules({ gracePeriodSeconds: 8 }));
  await m.gatedAreReady(3);
  const uids = (await m.pods()).map(({ metadata }) => metadata.uid);
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await m.taint(true);
    const first = await m.released();
    // It takes the ReplicaSet a while to have it again: meanwhile no other one is released.
    const controllers = host.component('kube-controller-manager');
    controllers.signal('SIGSTOP');
    try {
      await until('it is told', async () =>
        (await eventsOf(host, namespace, first.metadata.name)).some(({ reason }) => reason === 'ReleasedPodGivenBack'),
      );
      const isOutNow = async (): Promise<boolean> => (await m.pods()).some(isReleased);
      await expect(until('another one is released', isOutNow, { timeoutMs: 4_000 })).rejects.toThrow('another one');
    } finally {
      controllers.signal('SIGCONT');
    }
    await until('its ReplicaSet has it again, and not the other one', async () => {
      const all = await m.pods();
      const own = all.find(({ metadata }) => metadata.name === first.metadata.name);
      return own?.metadata.ownerReferences?.length === 1 && !isReleased(own) && all.length <= 4;
    });
    const second = await m.released();
    expect(releasedFrom(second)?.ready).toBe(3);
  });
  expect(fewest).toBe(3);
  expect(m.evictions()).toEqual([]);
  const left = new Set((await m.pods()).filter(isReady).map(({ metadata }) => metadata.uid));
  expect(uids.every((uid) => left.has(uid))).toBe(true);
});

test('what is not replaced in time goes all the same where the policy says onTimeout: Evict, and not before', async () => {
  const seconds = 6;
  await m.inUse(m.rules({ gracePeriodSeconds: seconds, onTimeout: 'Evict' }));
  await m.gatedAreReady(2);
  const spec = { minAvailable: 2, selector: { matchLabels: { app: 'web' } } };
  const metadata = { name: 'web', namespace };
  await host.apply([{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec }]);
  const fewest = await fewestReady(host, namespace, 'web', async () => {
    await m.taint(true);
    const first = await m.released();
    const { name } = first.metadata;
    const stays = await until('it is told why it stays', async () =>
      (await eventsOf(host, namespace, name)).find(({ reason }) => reason === 'ReleasedPodStays'),
    );
    expect(stays.message).toMatch(/^no other pod became Ready in time, but it cannot be ended: .*disruption budget/);
    expect(m.evictions()).toEqual([]);
    await kubectl(host, ['delete', 'poddisruptionbudget', 'web', '-n', namespace]);
    const told = await until('it is told', async () =>
      (await eventsOf(host, namespace, name)).find(({ reason }) => reason === 'ReleasedPodEvicted'),
    );
    expect(told.message).toMatch(/no other pod that became Ready in time, .*onTimeout: Evict: it was evicted$/);
    const evicted = await until('it is evicted', () => m.evictions().find(({ objectRef }) => objectRef?.name === name));
    const waitedMs = Date.parse(evicted.requestReceivedTimestamp) - Date.parse(releasedFrom(first)?.at ?? '');
    expect(waitedMs).toBeGreaterThanOrEqual(seconds * 1_000);
    await until(
      'all are in west',
      async () => {
        for (const pod of await m.ungated()) await m.open(pod);
        const all = await m.pods();
        return all.length === 2 && whereAre(all)['west'] === 2 && all.every(isReady);
      },
      { timeoutMs: 90_000 },
    );
  });
  // One that serves went, and none had come for it.
  expect(fewest).toBeLessThan(2);
  expect(new Set(m.evictions().map(({ objectRef }) => objectRef?.name)).size).toBe(2);
});

describe('the policy says', () => {
  test('Directly: it is evicted at once, and the budget holds: what that refuses is tried again once another one is Ready', async () => {
    await m.inUse(m.rules({ purgeMode: 'Directly' }));
    await m.gatedAreReady(3);
    const names = (await m.pods()).map(({ metadata }) => metadata.name);
    await host.apply([
      {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'web', namespace },
        spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
      },
    ]);
    await until('it is counted', async () => {
      const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/web`;
      return (await read<{ status?: { disruptionsAllowed?: number } }>(host, path))?.status?.disruptionsAllowed === 1;
    });
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      await m.taint(true);
      // Nobody is Ready in place of the first one before the test says so: the budget has nothing to spare for a second one.
      const refused = await until('an eviction is refused', () => m.refusedEvictions()[0]?.objectRef?.name);
      await until('it is tried again', () => m.refusedEvictions().length > 1);
      expect(m.evictions()).toHaveLength(1);
      expect(m.evictions()[0]?.objectRef?.name).not.toBe(refused);
      await until(
        'all are in west',
        async () => {
          for (const pod of await m.ungated()) await m.open(pod);
          const all = await m.pods();
          return all.length === 3 && whereAre(all)['west'] === 3 && all.every(isReady);
        },
        { timeoutMs: 90_000 },
      );
    });
    expect(fewest).toBe(2);
    expect(m.evictions()).toHaveLength(3);
    expect(new Set(m.evictions().map(({ objectRef }) => objectRef?.name))).toEqual(new Set(names));
    // None of them was released.
    expect(m.writes('patch').filter(({ objectRef }) => names.includes(objectRef?.name ?? ''))).toEqual([]);
  });

  test('Never: it stays, and says so', async () => {
    const { placement, failover } = m.rules({ purgeMode: 'Directly' })['spec'] as Record<string, Fields>;
    const clusterTolerations = [{ key: 'drained', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3 }];
    const other = policy(namespace, 'other', { ...placement, clusterTolerations }, 'other');
    await m.inUse(m.rules({ purgeMode: 'Never' }), { ...other, spec: { ...(other['spec'] as Fields), failover } });
    await policyInUse(host, namespace, 'other');
    await host.apply(['web', 'other'].map((name) => deployment(namespace, name, 1, '100m')));
    const [only] = await settled(host, namespace, 'web', { east: 1 });
    const [beside] = await settled(host, namespace, 'other', { east: 1 });
    await m.taint(true);
    const message = await until(
      'it is told',
      async () =>
        (await eventsOf(host, namespace, only?.metadata.name ?? '')).find(({ reason }) => reason === 'TaintedPodHeld')
          ?.message,
    );
    expect(message).toMatch(/and it stays there for now: its policy says purgeMode: Never$/);
    // It is looked at whenever this one is, which the taint moves seconds later.
    await settled(host, namespace, 'other', { west: 1 });
    expect(m.evictions().map(({ objectRef }) => objectRef?.name)).toEqual([beside?.metadata.name]);
    expect(m.writes('patch')).toEqual([]);
    expect((await settled(host, namespace, 'web', { east: 1 }))[0]?.metadata.uid).toBe(only?.metadata.uid);
  });

  test('nothing, and the Deployment says Recreate: no two run side by side', async () => {
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 1, '100m', { strategy: { type: 'Recreate' } })]);
    await settled(host, namespace, 'web', { east: 1 });
    await m.taint(true);
    await settled(host, namespace, 'web', { west: 1 });
    expect((await m.pods()).some(isReleased)).toBe(false);
    expect(m.evictions()).toHaveLength(1);
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
    await m.inUse(m.rules());
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
    const moved = m.evictions().map(({ objectRef }) => objectRef?.name ?? '');
    expect(moved).toHaveLength(2);
    const none = 'Failed ReferencedWorkloadNotFound';
    expect(results).toEqual(['Successful Rebalanced', none, none]);
    expect((await eventsOf(host, namespace, moved[0] ?? '')).map(({ reason }) => reason)).toContain('PodRebalanced');
    await until('it goes', async () => (await stored()) === undefined);
    expect(whereAre(await m.pods())).toEqual({ east: 2, west: 2 });
  });

  test('in a dry run says which pods would be moved, and why, and moves none until it is edited', async () => {
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 4, '100m')]);
    const before = await settled(host, namespace, 'web', { east: 4 });
    await m.inUse(policy(namespace, 'all', evenly));
    await host.apply([rebalancer({ dryRun: true })]);
    expect(await untilOver()).toEqual(['Successful DryRun']);
    const { status } = (await stored()) ?? {};
    expect(status?.summary).toBe('dry run: 1 of 1, 2 pods would move');
    const moves = status?.observedWorkloads?.[0]?.moves ?? [];
    const names = before.map(({ metadata }) => metadata.name);
    expect(moves.map(({ from, to }) => [from, to])).toEqual([
      ['east', 'west'],
      ['east', 'west'],
    ]);
    expect(new Set(moves.map(({ pod }) => pod)).size).toBe(2);
    for (const { pod, why } of moves) {
      expect(names).toContain(pod);
      expect(why).toMatch(/^DivisionDrift: /);
    }
    expect(status?.observedWorkloads?.[0]?.message).toBeUndefined();
    expect([m.evictions(), m.writes('patch')]).toEqual([[], []]);
    await host.apply([rebalancer({ dryRun: false })]);
    await settled(host, namespace, 'web', { east: 2, west: 2 });
    expect(await untilOver()).toEqual(['Successful Rebalanced']);
    const gone = m.evictions().map(({ objectRef }) => objectRef?.name);
    expect(new Set(gone)).toEqual(new Set(moves.map(({ pod }) => pod)));
    await kubectl(host, ['delete', 'workloadrebalancer', namespace]);
  });

  test('goes on after a crash in the middle of a move, and then moves no more than before', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(2);
    await m.inUse(policy(namespace, 'all', evenly));
    await host.apply([rebalancer({})]);
    const { metadata } = await m.released();
    await m.crash();
    await m.comeBack();
    expect((await stored())?.status?.finishTime).toBeUndefined();
    for (const pod of await m.ungated()) await m.open(pod);
    await settled(host, namespace, 'web', { east: 1, west: 1 });
    expect(await untilOver()).toEqual(['Successful Rebalanced']);
    expect(m.evictions().map(({ objectRef }) => objectRef?.name)).toEqual([metadata.name]);
    await kubectl(host, ['delete', 'workloadrebalancer', namespace]);
  });
});
