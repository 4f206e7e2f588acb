import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MovesFuse } from '../../src/descheduler/moves-fuse.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { WEBHOOK_DOWN } from '../fixtures/eviction-refusals.ts';
import type { Fault } from '../fixtures/memory-api.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', uid: 'w' } };
const pod = (name: string, deletionTimestamp?: string): Pod => ({
  metadata: { name, uid: name, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  spec: { containers: [] },
  status: { phase: 'Running' },
});
const here = ['a', 'b'].map((name) => pod(name));

function most(pods: readonly Pod[], replicas: number | undefined): number | undefined {
  const fuse = new MovesFuse({
    placed: {
      rulesOf: () => ({ workload, replicas, failover: undefined, clusterTolerations: [] }),
      ofWorkload: () => pods,
    },
    records: { withinAnHour: () => 1_000, fewEnoughInMs: () => 5 },
    perPodPerHour: 5,
  });
  return fuse.tooOften(pod('a'))?.most;
}

test('pods that were moved, and are Terminating for as long as their member does not answer, do not raise the limit', () => {
  const gone = Array.from({ length: 50 }, (_, index) => pod(`gone-${String(index)}`, '2026-01-01T00:00:00Z'));
  expect(most([...here, ...gone], 2)).toBe(10);
  expect(most([...here, ...gone], undefined)).toBe(10);
  expect(most(gone, undefined)).toBe(5);
});

test('it is by what the workload asks for, or has, whichever is more', () => {
  expect(most(here, 4)).toBe(20);
  expect(most([...here, pod('c')], 2)).toBe(15);
});

describe('of two members that are drained at once, and a workload of which one pod may be moved within the hour', () => {
  let room: SchedulerRoom;
  const MEMBERS = ['east', 'west'];
  const drain = async (): Promise<void> => {
    const { signal } = new AbortController();
    const look = async (one: string): Promise<unknown> => await room.process.members.bringUpToDate(one, signal);
    await Promise.all(MEMBERS.map(async (one) => await look(one).catch(() => undefined)));
  };
  const refuse = (fault: Fault | undefined): void => {
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? fault : undefined);
  };
  beforeEach(async () => {
    room = await SchedulerRoom.start([...MEMBERS, 'north']);
    const names = await room.run((await room.deploy('web', 4)).set, { east: 2, west: 2 });
    const conditions = [{ type: 'Ready', status: 'True' }];
    for (const name of names)
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: 'Running', conditions } });
    for (const name of [...MEMBERS, 'north', 'local']) room.setRoom(name, 100);
    room.perPodPerHour = 0.25;
    for (const name of MEMBERS)
      room.api.edit(`/api/v1/nodes/${name}`, {
        spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] },
      });
    await room.restart();
  });
  afterEach(async () => {
    await room.close();
  });

  test('one goes', async () => {
    await drain();
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('DrainedPodHeld').join()).toMatch(/moved too often \(1 times within an hour;/);
  });

  test('one goes, though both were judged before what they hand on was read', async () => {
    const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
    room.place('p', {});
    const statePreservation = { rules: [{ aliasLabelName: 'example.com/former-ip', jsonPath: '{.podIP}' }] };
    const failover = { cluster: { purgeMode: 'Directly', statePreservation } };
    room.api.edit(path, { spec: { ...(room.api.objects.get(path)?.['spec'] as object), failover } });
    const { policies } = room.process.view;
    await room.seen('the policy', () => policies.get('shop/p')?.policy?.spec.failover?.cluster !== undefined);
    await drain();
    expect(room.api.requests('GET', '/workloadplacements/deployment-web').length).toBeGreaterThan(1);
    expect(room.evictions()).toHaveLength(1);
  });

  test('none goes for an hour that nobody answered about', async () => {
    refuse('reset');
    await drain();
    expect(room.evictions()).toHaveLength(1);
    refuse(undefined);
    room.now += 3_500_000;
    await drain();
    expect(room.evictions()).toHaveLength(1);
  });

  test('the next one goes when the host surely refuses the first', async () => {
    refuse(WEBHOOK_DOWN);
    await drain();
    const before = room.evictions().length;
    refuse(undefined);
    room.now += 2_000;
    await drain();
    expect(room.evictions()).toHaveLength(before + 1);
    expect(room.told('DrainedPodMoved')).toHaveLength(2);
  });
});
