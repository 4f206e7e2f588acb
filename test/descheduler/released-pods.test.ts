import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { asOwned, releasedText } from '../../src/api/released.ts';
import type { ReleasedPods } from '../../src/descheduler/released-pods.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import { isReady } from '../../src/kube/conditions.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import { CAUGHT_UP_MS } from '../../src/kube/reflector-timings.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import type { PlacedPods } from '../../src/placement/placed-pods.ts';
import { releasedPodsIn } from '../fixtures/released-pods.ts';
import {
  AGAINST_BUDGET,
  DENIED_BY_POLICY,
  DENIED_BY_WEBHOOK,
  MANY_BUDGETS,
  TOO_BUSY,
  WEBHOOK_DOWN,
} from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

const MINUTE = 60_000;
let room: SchedulerRoom;
let releases: Releases;
let ends: ReleasedPods;
let set: TypedObject;
let name: string;

/** Of a ReplicaSet of one pod, this one is released, and none has come in its place. */
beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  ({ set } = await room.deploy('web', 1));
  room.editSet('web-1', { spec: { replicas: 1, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
  [name = ''] = await room.run(set, { east: 1 });
  releases = new Releases(() => room.now);
  ends = releasedPodsIn(room, releases);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await room.close();
});

/** `aheadMs`: by how much the clock was wrong that wrote on the pod. */
async function release(ready: 'True' | 'False', aheadMs = 0): Promise<void> {
  const at = new Date(room.now + aheadMs).toISOString().replace('.000Z', 'Z');
  const { uid = '' } = set.metadata;
  const mark = releasedText({ hash: 'one', replicaSet: 'web-1', uid, at, ready: 1 });
  room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, {
    metadata: {
      labels: { 'pod-template-hash': null },
      annotations: { 'spillway.dev/released': mark },
      ownerReferences: null,
    },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready }] },
  });
  const known = (): Pod | undefined => room.process.view.pods.get(`shop/${name}`);
  const isSo = (): boolean => {
    const pod = known();
    if (pod?.metadata.annotations?.['spillway.dev/released'] !== mark) return false;
    return isReady(pod) === (ready === 'True');
  };
  await room.seen('it is released', isSo);
  releases.seen(known() as Pod);
}

async function answers(yes: boolean, member = 'east'): Promise<void> {
  const lastTransitionTime = new Date(room.now).toISOString();
  const condition = yes ? { status: 'True', reason: 'Ready' } : { status: 'False', reason: 'Timeout' };
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', lastTransitionTime, ...condition }));
  room.editMember(member, { status: { conditions } });
  const reachable = (): boolean | undefined =>
    room.process.placed.members().find((one) => one.name === member)?.reachable;
  await room.seen('the member is known', () => reachable() === yes);
}

/** The caches show that the ReplicaSet is to have so many pods. */
async function wanted(replicas: number | undefined): Promise<void> {
  const { placed } = room.process;
  const [pod] = releases.of(ownerKeyOf(set));
  if (pod === undefined) throw new Error('nothing is released');
  await room.seen('the ReplicaSet is known', () => placed.surgingSetOf(asOwned(pod))?.replicas === replicas);
}

const look = async (): Promise<unknown> => {
  return await ends.bringUpToDate(ownerKeyOf(set), new AbortController().signal);
};
const evictions = (): number => room.api.requests('POST', '/eviction').length;
const givenBack = (): number => room.api.requests('PATCH', `/pods/${name}`).length;

test('of a member that does not answer none goes when the time is up, nor right after it answers again', async () => {
  await release('False');
  await look();
  await answers(false);
  room.now += 11 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
  await answers(true);
  room.now += 9 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
  // It could have said by now that it is Ready.
  room.now += MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
});

test('none is evicted while an owner cannot be read by which a policy may choose it, and it says so', async () => {
  await release('False');
  await answers(true);
  await look();
  const why = 'it is not known whether PlacementPolicy p is meant for it, as its owner App web cannot be read now';
  const notYet = vi.spyOn(room.process.placed, 'whyRulesNotYet').mockReturnValue(why);
  room.now += 11 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
  expect(room.told('ReleasedPodStays').at(-1)).toContain(why);
  notYet.mockReturnValue(undefined);
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
});

test('one whose ReplicaSet is gone goes, whatever is not known of its rules', async () => {
  await release('True');
  await answers(true);
  vi.spyOn(room.process.placed, 'whyRulesNotYet').mockReturnValue('its owner is not known');
  room.undeploy('web');
  await wanted(undefined);
  await look();
  expect(evictions()).toBe(1);
});

test('its time is not up by the defaults while the policy that gives it more went for a moment, and it says so', async () => {
  await release('False');
  await answers(true);
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  room.place('p', {});
  const cluster = { purgeMode: 'Gracefully', gracePeriodSeconds: 3_600, onTimeout: 'GiveBack' };
  room.api.edit(path, { spec: { ...(room.api.objects.get(path)?.['spec'] as object), failover: { cluster } } });
  const policy = () => room.process.view.policies.get('shop/p')?.policy;
  await room.seen('the policy is known', () => policy()?.spec.failover !== undefined);
  await look();
  room.now += 11 * MINUTE;
  await look();
  room.unplace('p');
  await room.seen('it is gone', () => policy() === undefined);
  await look();
  room.now += MINUTE - 1_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
  expect(room.told('ReleasedPodStays').at(-1)).toMatch(/PlacementPolicy p was deleted.* may come back$/);
  room.now += 1_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
});

test('one whose policy only rehearses moves by now is given back when the time is up, and so are others', async () => {
  await release('True');
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  room.place('p', {});
  room.api.edit(path, { spec: { ...(room.api.objects.get(path)?.['spec'] as object), failover: { dryRun: true } } });
  const { policies } = room.process.view;
  await room.seen('the policy is known', () => policies.get('shop/p')?.policy?.spec.failover?.dryRun === true);
  await answers(true);
  await look();
  room.now += 10 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 1]);
});

test('of a member that is lost one goes where its ReplicaSet can make no other one beside it', async () => {
  room.setRoom('local', 1);
  await release('False');
  await answers(true, 'west');
  await look();
  room.now += 10 * MINUTE;
  await answers(false);
  await look();
  // By default pods of a lost member are moved after five minutes.
  room.now += 5 * MINUTE - 1_000;
  await look();
  expect(evictions()).toBe(0);
  room.now += 1_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
  expect(room.told('ReleasedPodEvicted')[0]).toMatch(/made no other pod beside it within a minute/);
});

test('of a member that is lost one stays where the one that its ReplicaSet lacks would find no place, and says so', async () => {
  room.setRoom('local', 0);
  room.setRoom('west', 0);
  await release('False');
  await answers(true, 'west');
  await answers(false);
  await look();
  room.now += 5 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
  expect(room.told('ReleasedPodStays')).toEqual([
    expect.stringMatching(
      /^Pod web-1-1: its ReplicaSet makes no other pod beside it, but it cannot be ended: no other cluster takes it now \(/,
    ),
  ]);
  room.setRoom('local', 1);
  room.now += 15_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
  // That place is promised: nobody else gets it.
  expect(room.process.mover.underWay.sent().map(({ metadata }) => metadata.name)).toEqual([name]);
});

test('of a member that was lost during a pause one goes by the time since that ended', async () => {
  room.setRoom('local', 1);
  await release('False');
  await answers(false);
  await answers(false, 'west');
  await look();
  room.now += 30 * MINUTE;
  await look();
  await answers(true, 'west');
  await look();
  room.now += 5 * MINUTE - 1_000;
  await look();
  expect(evictions()).toBe(0);
  room.now += 1_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
});

test.each([
  ['an hour', 3_600, 1],
  ['ever', undefined, 0],
])('of a member that is lost one that tolerates that for %s stays for it', async (_, tolerationSeconds, after) => {
  room.setRoom('local', 1);
  const toleration = { key: 'spillway.dev/member-unreachable', operator: 'Exists', effect: 'NoExecute' };
  const tolerations = [{ ...toleration, ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }) }];
  room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { tolerations } });
  await release('False');
  await answers(true, 'west');
  await answers(false);
  await look();
  room.now += 60 * MINUTE - 1_000;
  await look();
  expect(evictions()).toBe(0);
  room.now += 1_000;
  await look();
  expect(evictions()).toBe(after);
});

test('of a member that is lost one that is Ready, though the caches do not show it yet, does not go', async () => {
  await release('False');
  await answers(true, 'west');
  await answers(false);
  await look();
  room.now += 11 * MINUTE;
  const before = releases.of(ownerKeyOf(set));
  await release('True');
  for (const pod of before) releases.seen(pod);
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
});

test('of a member that is lost one that tolerates that, though the caches do not show it yet, does not go', async () => {
  room.setRoom('local', 1);
  await release('False');
  await answers(true, 'west');
  await answers(false);
  await look();
  room.now += 11 * MINUTE;
  const before = releases.of(ownerKeyOf(set));
  const tolerations = [{ key: 'spillway.dev/member-unreachable', operator: 'Exists', effect: 'NoExecute' }];
  room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { tolerations } });
  for (const pod of before) releases.seen(pod);
  await look();
  expect([evictions(), room.api.requests('GET', `/pods/${name}`).length]).toEqual([0, 1]);
});

test('one whose virtual node is out of service goes once its member has been silent for 30 s', async () => {
  await release('False');
  await answers(false);
  const taint = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' };
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [taint] } });
  room.editMember('east', { status: { fencing: { nodes: { east: 'Fenced' } } } });
  await room.seen('it is known', () =>
    room.process.placed.members().some(({ outOfService }) => outOfService.has('east')),
  );
  room.now += 29_000;
  await look();
  expect(evictions()).toBe(0);
  room.now += 1_000;
  await look();
  expect([evictions(), givenBack()]).toEqual([1, 0]);
});

test('one that is Ready again when its member answers is given back', async () => {
  await release('False');
  await answers(false);
  room.now += 11 * MINUTE;
  await look();
  await answers(true);
  await release('True');
  room.now += 11 * MINUTE;
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 1]);
});

test('one that is Ready by now, though the caches do not show it yet, does not go', async () => {
  await release('False');
  room.now += 11 * MINUTE;
  const before = releases.of(ownerKeyOf(set));
  await release('True');
  for (const pod of before) releases.seen(pod);
  await look();
  expect([evictions(), givenBack()]).toEqual([0, 0]);
});

test.each([-60, 24 * 60])(
  'a wall clock that was %i minutes ahead at the release neither ends the time nor holds it up',
  async (minutes) => {
    await release('False', minutes * MINUTE);
    await look();
    expect(evictions()).toBe(0);
    room.now += 10 * MINUTE;
    await look();
    expect(evictions()).toBe(1);
  },
);

describe('another one was Ready, as far as caches show', () => {
  let other: string;
  beforeEach(async () => {
    await release('True');
    [other = ''] = await room.run(set, { west: 1 });
    otherIs('True');
    const { placed } = room.process;
    await room.seen('it is Ready', () => placed.ofController(ownerKeyOf(set)).some(isReady));
  });
  function otherIs(status: 'True' | 'False'): void {
    const conditions = [{ type: 'Ready', status }];
    room.api.edit(`/api/v1/namespaces/shop/pods/${other}`, { status: { phase: 'Running', conditions } });
    room.editSet('web-1', { status: { replicas: 1, readyReplicas: status === 'True' ? 1 : 0 } });
  }
  /** Caches show what they do now for ever. */
  function behind(problem?: string): PlacedPods {
    const { placed } = room.process;
    const known = placed.ofController(ownerKeyOf(set));
    return new Proxy(placed, {
      get: (target, key) => {
        if (key === 'problem') return problem;
        if (key === 'ofController') return () => known;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function'
          ? (...args: unknown[]): unknown => Reflect.apply(value, target, args)
          : value;
      },
    });
  }

  test('and is: it goes', async () => {
    const before = releases.of(ownerKeyOf(set)).map(({ metadata }) => metadata);
    await look();
    expect([evictions(), givenBack()]).toEqual([1, 0]);
    // That pod as it was looked at, and no other one: it may be Ready by then, or have been given back.
    const { uid, resourceVersion } = before[0] ?? {};
    expect(room.api.requests('POST', '/eviction')).toMatchObject([
      { body: { deleteOptions: { preconditions: { uid, resourceVersion } } } },
    ]);
  });

  test('while the host cannot be followed: it stays, whatever the time', async () => {
    ends = releasedPodsIn(room, releases, behind('pods: 503'));
    room.now += 11 * MINUTE;
    await look();
    expect([evictions(), givenBack()]).toEqual([0, 0]);
  });

  test('and is not any more, though no watch says anything: it stays, and is looked at soon', async () => {
    ends = releasedPodsIn(room, releases, behind());
    otherIs('False');
    expect(await look()).toEqual({ requeueAfterMs: 1_000 });
    expect([evictions(), givenBack()]).toEqual([0, 0]);
    otherIs('True');
    expect(await look()).toEqual({ requeueAfterMs: 5_000 });
    expect([evictions(), givenBack()]).toEqual([1, 0]);
  });
});

test.each([
  ['its budget does', AGAINST_BUDGET],
  ['several budgets do', MANY_BUDGETS],
  ['admission does', DENIED_BY_WEBHOOK],
])('one whose ReplicaSet is to have none is given back where %s not let it end', async (_, refusal) => {
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? refusal : undefined);
  await release('True');
  room.editSet('web-1', { spec: { replicas: 0 } });
  await wanted(0);
  await look();
  expect(room.pods()[0]?.metadata).toMatchObject({ labels: { 'pod-template-hash': 'one' } });
  expect([evictions(), room.events]).toEqual([1, []]);
});

test('one whose ReplicaSet is to have none ends without it, which may be gone before it would have it again', async () => {
  await release('True');
  room.editSet('web-1', { spec: { replicas: 0 } });
  await wanted(0);
  await look();
  expect([evictions(), givenBack(), room.events]).toEqual([1, 0, []]);
});

test('one that several disruption budgets choose says so where its ReplicaSet is gone, and is tried again', async () => {
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? MANY_BUDGETS : undefined);
  await release('True');
  room.undeploy('web');
  await wanted(undefined);
  await look();
  expect(room.told('ReleasedPodStays')).toEqual([
    expect.stringContaining('more than one disruption budget chooses it'),
  ]);
  room.api.fault = undefined;
  await look();
  expect(evictions()).toBe(2);
});

test.each([
  ['is gone before it has the pod again', true],
  ['does not want it', false],
])('one that is given back to a ReplicaSet that %s', async (_, isGone) => {
  await release('True');
  room.now += 11 * MINUTE;
  releases.countAnew(room.process.view.pods.get(`shop/${name}`) as Pod);
  room.now += 11 * MINUTE;
  await look();
  const cached = (): Pod => room.process.view.pods.get(`shop/${name}`) as Pod;
  await room.seen('it is given back', () => cached().metadata.labels?.['pod-template-hash'] !== undefined);
  releases.seen(cached());
  if (isGone) room.undeploy('web');
  room.now += CAUGHT_UP_MS - 1;
  await look();
  expect(evictions()).toBe(0);
  room.now += 1;
  // As long as a budget does not let it, it is tried again.
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  await look();
  room.api.fault = undefined;
  await look();
  await look();
  expect([evictions(), releases.has(ownerKeyOf(set))]).toEqual([isGone ? 2 : 0, false]);
  expect(room.told('ReleasedPodStays')).toHaveLength(isGone ? 1 : 0);
});

test('one whose ReplicaSet may not be read says so, and which manifest would grant it', async () => {
  await release('False');
  const message = 'replicasets.apps "web-1" is forbidden: User "manager" cannot get resource "replicasets"';
  const forbidden = { code: 403, reason: 'Forbidden', message };
  room.api.fault = ({ method, path }) =>
    method === 'GET' && path.endsWith('/replicasets/web-1') ? forbidden : undefined;
  room.now += 11 * MINUTE;
  await expect(look()).rejects.toThrow('forbidden');
  await expect(look()).rejects.toThrow('forbidden');
  expect([evictions(), room.told('ReleasedPodStays')]).toEqual([
    0,
    [expect.stringContaining('its ReplicaSet may not be read (apply manifests/scheduler/descheduler.yaml)')],
  ]);
});

test('one that the host fails to end says so after a minute, and why, once while it lasts', async () => {
  await release('True');
  room.undeploy('web');
  const down = (what: string) => `Internal error occurred: failed calling webhook "guard.example.com": ${what}`;
  const failing = (message: string) => {
    room.api.fault = ({ path }) =>
      path.endsWith('/eviction') ? { code: 500, reason: 'InternalError', message } : undefined;
  };
  failing(down('connection refused'));
  await wanted(undefined);
  await expect(look()).rejects.toThrow('failed calling webhook');
  room.now += MINUTE - 1_000;
  await expect(look()).rejects.toThrow('failed calling webhook');
  expect(room.events).toEqual([]);
  room.now += 1_000;
  await expect(look()).rejects.toThrow('failed calling webhook');
  failing(down('context deadline exceeded'));
  await expect(look()).rejects.toThrow('failed calling webhook');
  expect(room.told('ReleasedPodStays')).toEqual([
    expect.stringMatching(
      /its ReplicaSet is gone, .* cannot be ended: the host fails to let it go \(.*"guard\.example\.com": connection refused/,
    ),
  ]);
  room.api.fault = undefined;
  await look();
  expect(evictions()).toBe(5);
});

test.each([
  [
    'a policy that denies it',
    DENIED_BY_POLICY,
    /: the host does not let it go \(cluster memory: .* denied request: it is kept/,
  ],
  ['its budget', AGAINST_BUDGET, /: its disruption budget allows no eviction now/],
])('one that is not ended says what is against it: %s', async (_, refusal, words) => {
  await release('True');
  room.undeploy('web');
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? refusal : undefined);
  await wanted(undefined);
  await look();
  expect(room.told('ReleasedPodStays')).toEqual([expect.stringMatching(words)]);
});

test('what is no budget is not told as one: a server with too much to do may have less in a minute', async () => {
  await release('True');
  room.undeploy('web');
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? TOO_BUSY : undefined);
  await wanted(undefined);
  await expect(look()).rejects.toThrow('Too many requests');
  expect(room.events).toEqual([]);
  room.now += MINUTE;
  await expect(look()).rejects.toThrow('Too many requests');
  expect(room.told('ReleasedPodStays')).toEqual([
    expect.stringContaining('Too many requests, please try again later.'),
  ]);
});

test("one that was given back, is nobody's, and that the host fails to end keeps no other one of its ReplicaSet", async () => {
  await release('True');
  room.now += 11 * MINUTE;
  releases.countAnew(room.process.view.pods.get(`shop/${name}`) as Pod);
  room.now += 11 * MINUTE;
  await look();
  const cached = (): Pod => room.process.view.pods.get(`shop/${name}`) as Pod;
  await room.seen('it is given back', () => cached().metadata.labels?.['pod-template-hash'] !== undefined);
  releases.seen(cached());
  const unadopted = name;
  [name = ''] = await room.run(set, { east: 1 });
  await release('True');
  room.undeploy('web');
  await wanted(undefined);
  room.now += CAUGHT_UP_MS;
  room.api.fault = ({ path }) => (path.endsWith(`/${unadopted}/eviction`) ? WEBHOOK_DOWN : undefined);
  await expect(look()).rejects.toThrow('failed calling webhook');
  const asked = room.api.requests('POST', '/eviction').map(({ path }) => path.split('/').at(-2));
  expect(asked).toEqual([unadopted, name]);
});

test('one whose ReplicaSet is gone says so while its budget allows no eviction', async () => {
  await release('True');
  room.undeploy('web');
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  await wanted(undefined);
  await look();
  await look();
  expect(room.events).toMatchObject([{ about: `Pod ${name}`, reason: 'ReleasedPodStays' }]);
  expect(room.events[0]?.message).toMatch(
    /^its ReplicaSet is gone, .* cannot be ended: its disruption budget allows no eviction now, .*; delete the pod, or the budget/,
  );
  room.now += 19 * MINUTE;
  await look();
  expect(room.events).toHaveLength(1);
  room.now += MINUTE;
  await look();
  expect(room.events).toHaveLength(2);
});
