import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** A tenant names in a namespace of their own the UID of a workload of another one, which Kubernetes takes for an owner that is not there. */

let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;
const { signal } = new AbortController();

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('west', 100);
  room.setRoom('local', 0);
  room.place('p', { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  ({ deployment, set } = await room.deploy('web', 4));
  room.make('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: 'other' } });
});
afterEach(async () => {
  await room.close();
});

// The garbage collector has deleted it, and a finalizer of the tenant's keeps it.
const KEPT = {
  finalizers: ['tenant.example/keep'],
  deletionTimestamp: '2026-01-01T00:00:00Z',
  deletionGracePeriodSeconds: 0,
};

async function forgePod(more: object = {}): Promise<void> {
  const { name, uid } = set.metadata;
  room.make('/api/v1/namespaces/other/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'forged',
      namespace: 'other',
      labels: { 'pod-template-hash': 'one' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true }],
      ...more,
    },
    spec: { containers: [{ name: 'main' }] },
    status: { phase: 'Pending' },
  });
  await room.seen('it is known', () => room.process.view.pods.get('other/forged') !== undefined);
}

async function makeReady(names: readonly string[]): Promise<void> {
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  for (const name of names) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status });
  const { pods } = room.process.view;
  await room.seen('they are Ready', () =>
    names.every((name) => (pods.get(`shop/${name}`)?.status?.conditions ?? []).length > 0),
  );
}

const bringUpToDate = async (): Promise<unknown> =>
  await room.process.placements.bringUpToDate(deployment.metadata.uid ?? '', signal);

test('the WorkloadPlacement of a workload is made whatever names its UID in another namespace', async () => {
  await forgePod(KEPT);
  await room.run(set, { east: 2, west: 2 });
  await bringUpToDate();
  expect(room.placementOf('web')).toBeDefined();
});

test('the WorkloadPlacement of a workload stays, also when all of its own pods were updated after a foreign one', async () => {
  const names = await room.run(set, { east: 2, west: 2 });
  await bringUpToDate();
  await room.seen('it is stored', () => room.process.store.get(deployment) !== undefined);
  await forgePod(KEPT);
  await makeReady(names);
  room.now += 20_000;
  await bringUpToDate();
  expect(room.placementOf('web')).toBeDefined();
});

test('which pods go first is not said by policies of another namespace', async () => {
  await room.run(set, { east: 2, west: 2 });
  await room.process.costs.bringUpToDate(set.metadata.uid ?? '', signal);
  const before = room.goingOrder();
  await forgePod(KEPT);
  const overflowAffinities = [{ clusterNames: ['east'] }];
  room.make('/apis/spillway.dev/v1alpha1/namespaces/other/placementpolicies', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'e', namespace: 'other' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet' }],
      placement: { clusterAffinity: { clusterNames: ['west'], overflowAffinities } },
    },
  });
  await room.seen('the policy is known', () => room.process.view.policies.get('other/e') !== undefined);
  await room.restart();
  await room.process.costs.bringUpToDate(set.metadata.uid ?? '', signal);
  expect(room.goingOrder()).toEqual(before);
});

test('moves of a workload are not held by a pod of another namespace', async () => {
  await makeReady(await room.run(set, { east: 4 }));
  await forgePod();
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('the drain is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
  await room.process.members.bringUpToDate('east', signal);
  expect(room.evictions().length).toBeGreaterThan(0);
});

test('a pod of another namespace does not count as one of the workload, nor is it looked at in the place of its pods', async () => {
  await forgePod();
  await room.run(set, { east: 1 });
  const { view, placed } = room.process;
  expect(view.seats.waiting(view.seatGroupsOf(deployment))).toBe(0);
  expect([...placed.workloadKeys()]).toContain(`shop/${deployment.metadata.uid ?? ''}`);
});

test('a ReplicaSet of another namespace is none of a Deployment that it names', async () => {
  const { name, uid } = deployment.metadata;
  room.make('/apis/apps/v1/namespaces/other/replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: 'forged',
      namespace: 'other',
      annotations: { 'deployment.kubernetes.io/revision': '99' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true }],
    },
    spec: { replicas: 1 },
  });
  const { owners } = room.process.view;
  const forged = { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'other', name: 'forged' };
  await room.seen('it is known', () => owners.named(forged) !== undefined);
  expect(owners.ownedBy(deployment).map(({ metadata }) => metadata.name)).toEqual([set.metadata.name]);
});
