import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mayBeLost } from '../../src/api/unreachable.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Eight pods of a Deployment that are Ready in east, which all are to leave; west has room. */
let room: SchedulerRoom;
let names: string[];
const PODS = '/api/v1/namespaces/shop/pods';
const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/hold';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north', 'south']);
  const { set } = await room.deploy('web', 8);
  const selector = { matchLabels: { 'pod-template-hash': 'one' } };
  room.editSet('web-1', { spec: { replicas: 8, selector }, status: { replicas: 8, readyReplicas: 8 } });
  room.setRoom('local', 0);
  room.setRoom('west', 100);
  names = await room.run(set, { east: 8 });
  await ready('True');
  for (const name of ['east', 'west', 'north', 'south']) await say(name, 'True', 'Ready');
  await room.seen('the ReplicaSet is known', () => {
    const [first] = names.flatMap((name) => cached(name) ?? []);
    return first !== undefined && room.process.placed.surgingSetOf(first)?.replicas === 8;
  });
});
afterEach(async () => {
  await room.close();
});

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);
const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const released = (): number => room.api.requests('PATCH').filter(({ path }) => path.startsWith(PODS)).length;

async function ready(status: 'True' | 'False'): Promise<void> {
  const conditions = [{ type: 'Ready', status }];
  for (const name of names) room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions } });
  const isKnown = (name: string): boolean =>
    cached(name)?.metadata.resourceVersion === room.api.objects.get(`${PODS}/${name}`)?.metadata.resourceVersion;
  await room.seen('that is known', () => names.every(isKnown));
}

async function say(name: string, status: 'True' | 'False', reason: string): Promise<void> {
  const lastTransitionTime = new Date(room.now).toISOString();
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', lastTransitionTime, status, reason }));
  room.editMember(name, { status: { conditions } });
  await room.seen('the member is known', () => {
    const known = room.process.placed.member(name);
    return known?.reachable === (status === 'True') && known.mayBeLost === mayBeLost(reason);
  });
}

async function drained(): Promise<void> {
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.member('east')?.drained.has('east') === true);
}

async function tainted(): Promise<void> {
  room.editMember('east', { spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] } });
  await room.seen('it is known', () => room.process.placed.member('east')?.clusterTaints.length === 1);
}

/** The policy of the pods says that they stay where they are when their member is lost. */
async function held(): Promise<void> {
  room.place('hold', {});
  const spec = room.api.objects.get(POLICY)?.['spec'] as object;
  room.api.edit(POLICY, { spec: { ...spec, failover: { onMemberLost: { action: 'Hold' } } } });
  const { policies } = room.process.view;
  await room.seen('it is known', () => policies.get('shop/hold')?.policy?.spec.failover !== undefined);
}

const BUSY = ['TooManyRequests', 'ServerError', 'ProbeFailed', 'WatchStale', 'CredentialPluginFailed', 'Aborted'];
const OLD = /^Pod \S+: .*: member east is not reachable, and not lost either: what it said last may be old$/;

describe.each([
  ['a drain', drained, 'DrainedPodHeld'],
  ['a taint of effect NoExecute', tainted, 'TaintedPodHeld'],
] as const)('%s', (_what, begin, heldReason) => {
  test.each(BUSY)('evicts no pod that is Ready while the member is not reachable for %s', async (reason) => {
    await begin();
    await look();
    expect([released(), room.evictions()]).toEqual([1, []]);
    await say('east', 'False', reason);
    for (let seconds = 0; seconds < 60; seconds += 5) {
      room.now += 5_000;
      await look();
    }
    expect([released(), room.evictions()]).toEqual([1, []]);
    expect(room.told(heldReason)).toContainEqual(expect.stringMatching(OLD));
  });
});

test('a drain keeps pods also once they are shown as not Ready for that, and goes on when the member is reachable', async () => {
  await drained();
  await say('east', 'False', 'TooManyRequests');
  await ready('False');
  room.now += 600_000;
  await look();
  expect(room.evictions()).toEqual([]);
  await ready('True');
  await say('east', 'True', 'Ready');
  room.now += 5_000;
  await look();
  expect([released(), room.evictions()]).toEqual([1, []]);
});

test('a taint moves those that are shown as not Ready by then: who knows that a member is gone says so by it', async () => {
  await tainted();
  await say('east', 'False', 'ServerError');
  await look();
  expect(room.evictions()).toEqual([]);
  await ready('False');
  room.now += 5_000;
  await look();
  expect(room.evictions()).toHaveLength(8);
});

test('a member that is lost is left as its own rules say', async () => {
  await drained();
  await say('east', 'False', 'Timeout');
  await ready('False');
  room.now += 5_000;
  await look();
  expect(room.evictions()).toHaveLength(8);
});

test.each([
  ['a drain', drained, 'DrainedPodHeld'],
  ['a taint of effect NoExecute', tainted, 'TaintedPodHeld'],
] as const)(
  '%s moves nothing while the MemberCluster was made anew and has yet to be asked',
  async (_what, begin, heldReason) => {
    await say('east', 'False', 'Timeout');
    await ready('False');
    await held();
    await begin();
    await look();
    const old = room.api.objects.get(`${MEMBERS}/east`);
    room.api.delete(`${MEMBERS}/east`);
    const { apiVersion, kind, spec } = old as unknown as { apiVersion: string; kind: string; spec: object };
    room.make(MEMBERS, { apiVersion, kind, metadata: { name: 'east' }, spec });
    await room.seen('it is known', () => room.process.placed.member('east')?.isContacted === false);
    room.now += 5_000;
    await look();
    expect([released(), room.evictions()]).toEqual([0, []]);
    expect(room.told(heldReason).at(-1)).toMatch(/member east: it has not been contacted yet$/);
    await say('east', 'False', 'Timeout');
    room.now += 5_000;
    await look();
    expect([released(), room.evictions()]).toEqual([0, []]);
    await say('east', 'True', 'Ready');
    room.now += 5_000;
    await look();
    expect(room.evictions()).toHaveLength(8);
  },
);
