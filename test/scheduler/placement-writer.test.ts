import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import { replicasOf, type TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** The WorkloadPlacement of Deployment shop/web under a policy. */

let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;

const WEIGHTS = { replicaScheduling: {} };
const REFUSAL = { cluster: 'east', reason: 'MemberQuotaExceeded', message: 'exceeded quota: pods=10' };
const AVOID_MS = 300_000;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.place('p', WEIGHTS);
  ({ deployment, set } = await room.deploy('web', 4));
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  await room.run(set, { 'local-1': 1, east: 1 });
});
afterEach(async () => {
  await room.close();
});

const bringUpToDate = async (workload = deployment): Promise<void | { requeueAfterMs: number }> =>
  await room.process.placements.bringUpToDate(workload.metadata.uid ?? '', new AbortController().signal);

/** Writes of statuses so far. */
const writes = (): number => room.api.requests('PATCH', '/workloadplacements/deployment-web/status').length;

/** What is stored, once the caches have it. */
async function stored(): Promise<WorkloadPlacement> {
  const found = room.placementOf('web');
  if (found === undefined) throw new Error('there is no WorkloadPlacement');
  const { store } = room.process;
  const version = found.metadata.resourceVersion;
  await room.seen('it is in the caches', () => store.get(deployment)?.metadata.resourceVersion === version);
  return found;
}

describe('at most one write in ten seconds', () => {
  test('by one process, and none without news', async () => {
    expect(await bringUpToDate()).toBeUndefined();
    expect((await stored()).status).toMatchObject({ where: 'east 1, local 1', updatedAt: '2026-01-01T00:00:00Z' });
    room.now += 60_000;
    let plans = 0;
    const off = room.process.workloads.on(() => (plans += 1));
    await bringUpToDate();
    expect(writes()).toBe(1);
    // Else the writer would be called again and again by itself.
    expect(plans).toBe(0);
    off();
    await room.run(set, { west: 1 });
    await bringUpToDate();
    expect(writes()).toBe(2);
    await stored();
    await room.run(set, { east: 1 });
    room.now += 4_000;
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 6_000 });
    room.now += 6_000;
    await bringUpToDate();
    expect(writes()).toBe(3);
    expect((await stored()).status).toMatchObject({ where: 'east 2, local 1, west 1' });
  });

  test('by the process that takes over, too', async () => {
    await bringUpToDate();
    await room.restart();
    await room.run(set, { west: 1 });
    room.now += 4_000;
    const answer = await bringUpToDate();
    expect(writes()).toBe(1);
    // Times in objects are in whole seconds.
    const { requeueAfterMs = 0 } = answer ?? {};
    expect(requeueAfterMs).toBeGreaterThanOrEqual(6_000);
    expect(requeueAfterMs).toBeLessThanOrEqual(7_000);
    room.now += requeueAfterMs;
    await bringUpToDate();
    expect(writes()).toBe(2);
  });

  test('also when the clock of the process before was far ahead: it is waited for once', async () => {
    room.now += 3_600_000;
    await bringUpToDate();
    await room.restart();
    room.now -= 3_600_000;
    await room.run(set, { west: 1 });
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 10_000 });
    room.now += 10_000;
    await bringUpToDate();
    expect(writes()).toBe(2);
  });

  test('also when its own clock was set back', async () => {
    await bringUpToDate();
    room.now -= 3_600_000;
    await room.run(set, { west: 1 });
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 10_000 });
    room.now += 10_000;
    await bringUpToDate();
    expect(writes()).toBe(2);
  });
});

describe('a plan that changes while no pod comes or goes', () => {
  const cordon = async (unschedulable: boolean): Promise<void> => {
    room.editMember('west', { spec: { unschedulable } });
    const { nodes } = room.process.view;
    const west = () => nodes.clusters().find(({ name }) => name === 'west');
    await room.seen('the member is seen', () => (west()?.unavailable !== undefined) === unschedulable);
  };
  const writtenAnHourAgo = async (): Promise<void> => {
    await bringUpToDate();
    await stored();
    room.now += 3_600_000;
  };
  const targets = (): string[] => (room.placementOf('web')?.status?.clusters ?? []).map(({ name }) => name);

  test('is not written when the member is back within a minute, and is when it is not', async () => {
    await writtenAnHourAgo();
    expect(targets()).toEqual(['east', 'local', 'west']);
    await cordon(true);
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 60_000 });
    room.now += 59_000;
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 1_000 });
    await cordon(false);
    await bringUpToDate();
    expect(writes()).toBe(1);
    await cordon(true);
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 60_000 });
    room.now += 60_000;
    await bringUpToDate();
    expect(writes()).toBe(2);
    expect(targets()).toEqual(['east', 'local']);
  });

  test('is tried again at once when its write failed', async () => {
    await writtenAnHourAgo();
    await cordon(true);
    await bringUpToDate();
    room.now += 60_000;
    room.api.fault = ({ path }) => (path.endsWith('/deployment-web/status') ? { code: 500 } : undefined);
    await expect(bringUpToDate()).rejects.toThrow();
    room.api.fault = undefined;
    room.now += 10_000;
    await bringUpToDate();
    expect(targets()).toEqual(['east', 'local']);
  });

  test('counts in this process for as long as it is not written', async () => {
    await writtenAnHourAgo();
    await cordon(true);
    await bringUpToDate();
    room.now += 59_000;
    expect([...(room.process.workloads.plan(deployment)?.targets?.keys() ?? [])]).not.toContain('west');
  });

  test('does not keep the end of an avoidance waiting', async () => {
    room.process.workloads.refused(deployment, { ...REFUSAL, cluster: 'north' }, AVOID_MS);
    await bringUpToDate();
    await stored();
    room.now += AVOID_MS - 5_000;
    await cordon(true);
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 5_000 });
  });

  test('waits anew where nobody looked for long', async () => {
    await writtenAnHourAgo();
    await cordon(true);
    await bringUpToDate();
    room.now += 3_600_000;
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 60_000 });
  });

  test('is written as ever when a policy was made anew under its name', async () => {
    await writtenAnHourAgo();
    const { policies } = room.process.view;
    room.unplace('p');
    await room.seen('the policy is gone', () => policies.get('shop/p') === undefined);
    room.place('p', { clusterAffinity: { clusterNames: ['east', 'local'] }, replicaScheduling: {} });
    await room.seen('the policy is known', () => policies.get('shop/p') !== undefined);
    await bringUpToDate();
    expect(targets()).toEqual(['east', 'local']);
  });

  test('is written at once with the first pod that comes', async () => {
    await writtenAnHourAgo();
    await cordon(true);
    await bringUpToDate();
    await room.run(set, { local: 1 });
    await bringUpToDate();
    expect(writes()).toBe(2);
    expect(targets()).toEqual(['east', 'local']);
  });
});

test('a place that a pod was told, and is never bound to, counts no more once its time is over, though nothing else happens', async () => {
  const { seats, pods } = room.process.view;
  const [name = ''] = await room.run(set, { '': 1 });
  const waiting = pods.get(`shop/${name}`);
  if (waiting === undefined) throw new Error('no pod was made');
  seats.assume(waiting, 'east', 30_000);
  expect(await bringUpToDate()).toEqual({ requeueAfterMs: 30_000 });
  expect((await stored()).status).toMatchObject({ where: 'east 2, local 1', placed: 3 });
  room.now += 12_000;
  expect(await bringUpToDate()).toEqual({ requeueAfterMs: 18_000 });
  room.now += 18_000;
  expect(await bringUpToDate()).toBeUndefined();
  expect((await stored()).status).toMatchObject({ where: 'east 1, local 1', placed: 2, waiting: 1 });
  expect(writes()).toBe(2);
});

describe('who is avoided', () => {
  test('is known to the next process, until its time is over', async () => {
    room.process.workloads.refused(deployment, REFUSAL, AVOID_MS);
    await bringUpToDate();
    const { status } = await stored();
    expect(status?.avoided).toEqual([{ ...REFUSAL, since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:05:00Z' }]);
    await room.restart();
    expect(room.process.workloads.avoided(deployment)).toMatchObject([REFUSAL]);
    room.now += AVOID_MS;
    expect(room.process.workloads.avoided(deployment)).toEqual([]);
    await bringUpToDate();
    expect(room.placementOf('web')?.status?.avoided).toEqual([]);
  });

  test('is known to it also where the pod that was refused was the last one, and is gone', async () => {
    await bringUpToDate();
    await stored();
    room.process.workloads.refused(deployment, REFUSAL, AVOID_MS);
    const all = room.pods().map(({ metadata }) => metadata.name);
    room.endPods(all);
    const { view } = room.process;
    await room.seen('the pods are gone', () => all.every((name) => view.pods.get(`shop/${name}`) === undefined));
    room.now += 11_000;
    await bringUpToDate();
    expect((await stored()).status).toMatchObject({ placed: 0, avoided: [REFUSAL] });
    await room.restart();
    expect(room.process.workloads.avoided(deployment)).toMatchObject([REFUSAL]);
  });
});

describe('the object', () => {
  test('belongs to the workload', async () => {
    await bringUpToDate();
    const { metadata, spec } = await stored();
    const { apiVersion, kind, metadata: own } = deployment;
    expect(metadata.ownerReferences).toEqual([{ apiVersion, kind, name: 'web', uid: own.uid }]);
    expect(spec.workload).toEqual({ apiVersion, kind, name: 'web', uid: own.uid });
  });

  test('goes when no rules speak of the workload any more, but not while it has no pods to tell', async () => {
    const pods = await room.run(set, { west: 1 });
    await bringUpToDate();
    await stored();
    room.unplace('p');
    await room.seen('the policy is gone', () => room.process.view.policies.get('shop/p') === undefined);
    const all = room.pods().map(({ metadata }) => metadata.name);
    room.endPods(all);
    const { view } = room.process;
    await room.seen('the pods are gone', () => all.every((name) => view.pods.get(`shop/${name}`) === undefined));
    await bringUpToDate();
    expect(pods).toHaveLength(1);
    expect(room.placementOf('web')).toBeDefined();
    await room.run(set, { east: 1 });
    const { uid } = (await stored()).metadata;
    await bringUpToDate();
    expect(room.placementOf('web')).toBeUndefined();
    const [deleted] = room.api.requests('DELETE', '/workloadplacements/deployment-web');
    expect(deleted?.body).toMatchObject({ preconditions: { uid } });
  });

  test('keeps what a pod left when its policy goes, without the rest, for an hour', async () => {
    await bringUpToDate();
    // The move itself is not written yet.
    const left = { pod: 'web-old', uid: 'old', time: '2026-01-01T00:00:00Z', labels: { point: 'cp-42' } };
    room.api.edit('/apis/spillway.dev/v1alpha1/namespaces/shop/workloadplacements/deployment-web', {
      status: { ...(await stored()).status, preserved: [left] },
    });
    await stored();
    room.unplace('p');
    await room.seen('the policy is gone', () => room.process.view.policies.get('shop/p') === undefined);
    room.now += 60_000;
    const hour = { requeueAfterMs: 3_540_000 };
    expect(await bringUpToDate()).toEqual(hour);
    expect((await stored()).status).toEqual({ preserved: [left], updatedAt: '2026-01-01T00:01:00Z' });
    expect(await bringUpToDate()).toEqual(hour);
    room.now += 3_540_000;
    expect(await bringUpToDate()).toBeUndefined();
    expect(room.placementOf('web')).toBeUndefined();
  });

  test('of a workload that is scaled to none says so, also by a process that saw none of its pods', async () => {
    await room.run(set, { west: 1 });
    await bringUpToDate();
    expect((await stored()).status).toMatchObject({ placed: 3, where: 'east 1, local 1, west 1' });
    const all = room.pods().map(({ metadata }) => metadata.name);
    room.endPods(all);
    await room.restart();
    room.now += 11_000;
    await bringUpToDate();
    // They may be made anew in a moment: what each cluster is to have stays.
    const { status } = await stored();
    expect(status).toMatchObject({ placed: 0, waiting: 0, where: '', policy: { name: 'p' } });
    expect(status?.clusters?.map(({ name, target, actual }) => [name, target, actual])).toEqual([
      ['east', 2, 0],
      ['local', 1, 0],
      ['west', 1, 0],
    ]);
    room.api.edit('/apis/apps/v1/namespaces/shop/deployments/web', { spec: { replicas: 0 } });
    const { owners } = room.process.view;
    await room.seen('it is scaled', () => replicasOf(owners.byUid(deployment.metadata.uid ?? '') ?? set) === 0);
    room.now += 11_000;
    await bringUpToDate();
    expect((await stored()).status).toMatchObject({ replicas: 0, placed: 0, clusters: [] });
    const before = writes();
    room.now += 11_000;
    await bringUpToDate();
    expect(writes()).toBe(before);
  });

  test('of a former workload of that name is replaced, and nothing of it is remembered', async () => {
    room.process.workloads.refused(deployment, REFUSAL, AVOID_MS);
    await bringUpToDate();
    const former = await stored();
    room.undeploy('web');
    room.endPods(room.pods().map(({ metadata }) => metadata.name));
    const next = await room.deploy('web', 2);
    expect(next.deployment.metadata.uid).not.toBe(deployment.metadata.uid);
    await room.run(next.set, { west: 2 });
    // Kubernetes collects the object of the former one in its own time: until then it is there.
    await room.restart();
    expect(room.process.workloads.avoided(next.deployment)).toEqual([]);
    await bringUpToDate(next.deployment);
    const now = room.placementOf('web');
    expect(now?.metadata.uid).not.toBe(former.metadata.uid);
    expect(now?.spec.workload.uid).toBe(next.deployment.metadata.uid);
    expect(now?.status).toMatchObject({ where: 'west 2', avoided: [] });
  });
});
