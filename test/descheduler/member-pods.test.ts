import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CLUSTER_DEFAULTS } from '../../src/api/failover.ts';
import { GANG_LABEL } from '../../src/api/marks.ts';
import { releasedFrom } from '../../src/api/released.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { AGAINST_BUDGET, MANY_BUDGETS } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of Deployment shop/web in member east, which is lost; members west and north have room. */

let room: SchedulerRoom;
let set: TypedObject;
let deployment: TypedObject;
let names: string[];
/** When east was lost. */
const SINCE = Date.parse('2026-01-01T00:00:00Z');
/** Reasons for which a member that is not reachable may be lost: literally, as no other place says it of code. */
const LOST = [
  'Timeout',
  'Refused',
  'ConnectionReset',
  'NameNotFound',
  'ProxyFailed',
  'TLSVerifyFailed',
  'NotAKubernetesAPI',
  'Unauthorized',
  'Forbidden',
];

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ set, deployment } = await room.deploy('web', 4));
  room.setRoom('west', 100);
  room.setRoom('north', 0);
  room.setRoom('local', 0);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  for (const name of ['east', 'west', 'north']) await say(name, 'True');
  names = await room.run(set, { east: 4 });
});
afterEach(async () => {
  await room.close();
});

async function say(member: string, reachable: 'True' | 'False', reason = 'Timeout'): Promise<void> {
  const since = { lastTransitionTime: '2026-01-01T00:00:00Z' };
  const conditions = [
    { type: 'Ready', status: reachable, reason: 'Ready', message: '', ...since },
    { type: 'Reachable', status: reachable, reason, message: '', ...since },
  ];
  room.editMember(member, { status: { conditions } });
  await room.seen(`${member} is known as it is`, () =>
    room.process.placed
      .members()
      .some(
        (one) =>
          one.name === member && one.reachable === (reachable === 'True') && one.mayBeLost === LOST.includes(reason),
      ),
  );
}

/** The policy of the Deployment says so of lost members. */
async function onMemberLost(rules: object): Promise<void> {
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  room.api.edit(path, {
    spec: { ...(room.api.objects.get(path)?.['spec'] as object), failover: { onMemberLost: rules } },
  });
  await room.seen('the policy is known', () =>
    room.pods().every((pod) => jsonEqual(room.process.placed.rulesOf(pod).failover?.onMemberLost, rules)),
  );
}

const reads = (): unknown[] =>
  room.api.requests('GET').filter(({ path }) => path.startsWith('/api/v1/namespaces/shop/pods/'));
const resync = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

test('nothing is moved out of a member that answers', async () => {
  room.now = SINCE + 9e9;
  expect(await resync()).toBeUndefined();
  expect(room.evictions()).toEqual([]);
});

test('what a former process said of the member is no reason for a moment: it may have been asked again', async () => {
  await onMemberLost({ after: '1s' });
  await say('east', 'False');
  room.now += 14_000;
  expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
  expect(room.evictions()).toEqual([]);
  room.now += 1_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

test('only what this process has seen itself counts, whatever the clocks on walls say', async () => {
  room.wallAheadMs = 600_000;
  room.now = SINCE + 9e9;
  await say('east', 'False');
  room.now += 299_000;
  expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
  expect(room.evictions()).toEqual([]);
  room.wallAheadMs = -9e9;
  room.now += 1_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

test.each(LOST)('a member that is not reachable for %s is lost: its pods go after five minutes', async (reason) => {
  await say('east', 'False', reason);
  room.now += 299_000;
  expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
  expect(room.evictions()).toEqual([]);
  room.now += 1_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

test('there is one clock for all reasons of a loss: that one takes the place of another begins nothing anew', async () => {
  // The line is cut, then somebody else answers at the address, and then a member that does not know us any more.
  for (const reason of ['Timeout', 'TLSVerifyFailed', 'Unauthorized']) {
    await say('east', 'False', reason);
    room.now += 99_000;
    await resync();
  }
  room.now += 2_000;
  await say('east', 'False', 'Forbidden');
  expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
  expect(room.evictions()).toEqual([]);
  room.now += 1_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

test.each(['ServerError', 'TooManyRequests', 'WatchStale', 'ProbeFailed', 'CredentialPluginFailed', 'Aborted'])(
  'a member that is not reachable for %s is not lost, and an answer of that kind begins the time anew',
  async (reason) => {
    await say('east', 'False', reason);
    room.now += 9e9;
    expect(await resync()).toBeUndefined();
    await say('east', 'False', 'Timeout');
    room.now += 299_000;
    await resync();
    await say('east', 'False', reason);
    await say('east', 'False', 'Timeout');
    room.now += 299_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 1_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
  },
);

describe('a pause for too many lost members', () => {
  const paused = async (): Promise<number | undefined> => (await room.process.moves.paused.get()).values[0]?.value;
  const toldTo = (): (string | undefined)[] => room.told('MovesPaused').map((one) => one.split(':')[0]);

  test('is counted and told while it lasts, to each member that is lost meanwhile, too', async () => {
    await say('east', 'False');
    await say('north', 'False');
    room.letWrite();
    await vi.waitFor(async () => expect(await paused()).toBe(1), { timeout: 10_000 });
    expect(toldTo()).toEqual(['MemberCluster east', 'MemberCluster north']);
    await say('west', 'False');
    await vi.waitFor(() => expect(toldTo().slice(2)).toEqual(['MemberCluster west']), { timeout: 10_000 });
    // Again after twenty minutes, whatever made it look.
    room.now += 20 * 60_000;
    room.editMember('east', { metadata: { labels: { a: 'b' } } });
    await vi.waitFor(() => expect(toldTo()).toHaveLength(6), { timeout: 10_000 });
    await say('north', 'True');
    await say('west', 'True');
    await vi.waitFor(async () => expect(await paused()).toBe(0), { timeout: 10_000 });
    expect(toldTo()).toHaveLength(6);
  });

  test('gives all members that are still lost when it ends their time anew', async () => {
    for (const name of ['east', 'west', 'north']) await say(name, 'False');
    room.now += 1_800_000;
    await resync();
    await say('north', 'True');
    await say('west', 'True');
    // East would be asked, too, within a moment.
    room.now += 100;
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 299_800;
    expect(await resync()).toEqual({ requeueAfterMs: 100 });
    expect(room.evictions()).toEqual([]);
    room.now += 100;
    await resync();
    expect(room.evictions()).toHaveLength(4);
  });

  test('is told anew by the replica that takes over, and counted by that one alone', async () => {
    await say('east', 'False');
    await say('north', 'False');
    const { descheduler } = room.process;
    for (const times of [1, 2]) {
      const held = new AbortController();
      const running = descheduler.run(held.signal);
      await vi.waitFor(async () => expect(await paused()).toBe(1), { timeout: 10_000 });
      expect(toldTo()).toHaveLength(2 * times);
      room.process.moves.released.set(3);
      held.abort();
      await running;
      expect(await paused()).toBe(0);
      expect((await room.process.moves.released.get()).values[0]?.value).toBe(0);
    }
  });
});

const DRAIN = { key: 'spillway.dev/drain', effect: 'NoSchedule' };
const taintNode = async (name: string, ...taints: object[]): Promise<void> => {
  room.api.edit(`/api/v1/nodes/${name}`, { spec: { taints } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has(name)));
};

test('a virtual node is emptied while somebody wants that, and no longer', async () => {
  room.setRoom('west', 2);
  await taintNode('east', DRAIN);
  await resync();
  expect(room.evictions()).toHaveLength(2);
  expect(room.told('DrainedPodMoved')[0]).toMatch(
    /^Pod web-1-\d: virtual node east is to be emptied \(taint spillway.dev\/drain\); it was evicted, so that ReplicaSet web-1 /,
  );
  expect(room.told('DrainedPodHeld')).toHaveLength(1);
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [] } });
  await room.seen('it is known', () => room.process.placed.members().every(({ drained }) => drained.size === 0));
  room.setRoom('west', 100);
  room.now += 60_000;
  expect(await resync()).toBeUndefined();
  expect(room.evictions()).toHaveLength(2);
});

test('another virtual node of the same member is a place for pods of one that is to be emptied, not for those of a member that is lost', async () => {
  room.setRoom('west', 0);
  room.endPods(names);
  room.editMember('east', { spec: { virtualNodes: [{ name: 'a' }, { name: 'b' }] } });
  for (const name of ['east-a', 'east-b']) {
    const labels = { 'spillway.dev/member': 'east', type: 'virtual-kubelet', 'kubernetes.io/hostname': name };
    room.make('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} });
    room.setRoom(name, 100);
  }
  await room.seen('it is known', () => room.process.view.nodes.virtualNodesOf('east').length === 2);
  await room.run(set, { 'east-a': 4 });
  await taintNode('east-a', DRAIN);
  await resync();
  expect(room.evictions()).toHaveLength(4);
  await room.run(set, { 'east-a': 1 });
  room.api.edit('/api/v1/nodes/east-a', { spec: { taints: [] } });
  room.editMember('east', { spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] } });
  await room.seen('it is known', () =>
    room.process.placed.members().some(({ clusterTaints, drained }) => clusterTaints.length > 0 && drained.size === 0),
  );
  room.now += 60_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

/** What stands against pods of the member's virtual node, on its MemberCluster and, as the keeper of the Node has it, there. */
async function taintMember(member: string, taint: { key: string; effect: 'NoExecute' }): Promise<void> {
  room.editMember(member, { spec: { taints: [taint] } });
  room.api.edit(`/api/v1/nodes/${member}`, { spec: { taints: [{ ...taint, effect: 'NoSchedule' }] } });
  const isKnown = (): boolean =>
    room.process.placed.members().some(({ name, nodeTaints }) => name === member && nodeTaints.size > 0) &&
    room.process.view.nodes.nodes.get(member)?.spec?.taints?.length === 1;
  await room.seen('it is known', isKnown);
}

async function tolerate(...tolerations: object[]): Promise<void> {
  const path = (name: string): string => `/api/v1/namespaces/shop/pods/${name}`;
  for (const name of names) room.api.edit(path(name), { spec: { tolerations } });
  const version = (name: string): string | undefined => room.api.objects.get(path(name))?.metadata.resourceVersion;
  await room.seen('it is known', () =>
    room.process.view.podsOn('east').every(({ metadata }) => metadata.resourceVersion === version(metadata.name)),
  );
}

describe('with a taint of effect NoExecute, pods that tolerate NoSchedule,', () => {
  const LENT = { key: 'lent', effect: 'NoExecute' } as const;
  const OPEN = { operator: 'Exists', effect: 'NoSchedule' };

  test('leave, also where the policy would have the member first', async () => {
    room.place('p', {
      clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] },
    });
    room.setRoom('east', 100);
    await tolerate(OPEN);
    await taintMember('east', LENT);
    await resync();
    expect(room.told('TaintedPodHeld')).toEqual([]);
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('leave for no other member with such a one', async () => {
    await tolerate(OPEN, { ...LENT, operator: 'Exists', tolerationSeconds: 1 });
    await taintMember('west', LENT);
    await taintMember('east', LENT);
    room.process.ages.observe(room.process.placed.members());
    room.now += 60_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('TaintedPodHeld')[0]).toMatch(/west: the pod does not tolerate taint lent:NoExecute for good/);
  });

  test('leave for none with a taint that only policies tolerate, if no policy speaks about them', async () => {
    room.unplace('p');
    room.editMember('west', { spec: { clusterTaints: [LENT] } });
    await tolerate(OPEN);
    await taintMember('east', LENT);
    await room.seen('it is known', () => room.process.view.nodes.whyTainted('west', []) !== undefined);
    await room.seen('no policy is known', () => room.process.view.policies.get('shop/p') === undefined);
    room.now += 60_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('TaintedPodHeld')[0]).toMatch(/west: it has cluster taint lent:NoExecute/);
  });
});

test('another virtual node of the same member is a place for pods of one with a taint of effect NoExecute', async () => {
  room.setRoom('west', 0);
  room.endPods(names);
  const taints = [{ key: 'lent', effect: 'NoExecute' }];
  room.editMember('east', { spec: { virtualNodes: [{ name: 'a', taints }, { name: 'b' }] } });
  for (const name of ['east-a', 'east-b']) {
    const labels = { 'spillway.dev/member': 'east', type: 'virtual-kubelet', 'kubernetes.io/hostname': name };
    room.make('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} });
    room.setRoom(name, name === 'east-a' ? 100 : 3);
  }
  await room.seen('it is known', () => room.process.view.nodes.virtualNodesOf('east').length === 2);
  await room.run(set, { 'east-a': 4 });
  await resync();
  expect(room.evictions()).toHaveLength(3);
});

test('a pod that comes to a member that has long had a taint stays for its tolerationSeconds from then on', async () => {
  room.endPods(names);
  room.editSet('web-1', { spec: { replicas: 2 } });
  room.letWrite();
  room.editMember('east', { spec: { taints: [{ key: 'spot', effect: 'NoExecute' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ nodeTaints }) => nodeTaints.has('east')));
  room.now += 3_600_000;
  const [name = ''] = await room.run(set, { local: 1 });
  const { metadata, spec } = room.pods().find((pod) => pod.metadata.name === name) as Pod;
  const tolerations = [{ key: 'spot', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 600 }];
  const late = { ...metadata, name: 'late', uid: undefined, resourceVersion: undefined };
  // Nothing else makes it look: the member has been emptied.
  await room.quiet();
  room.make('/api/v1/namespaces/shop/pods', {
    kind: 'Pod',
    metadata: late,
    spec: { ...spec, nodeName: 'east', tolerations },
  });
  await room.seen('it is known', () => room.process.view.pods.get('shop/late') !== undefined);
  await room.seen('it is held', () => room.told('TaintedPodHeld').length > 0);
  expect(room.told('TaintedPodHeld')).toEqual([expect.stringMatching(/^Pod late: .* it tolerates spot:NoExecute for/)]);
  expect(room.evictions()).toEqual([]);
  room.now += 600_000;
  room.editMember('east', { metadata: { labels: { looked: 'again' } } });
  await room.seen('it is moved', () => room.evictions().length > 0);
  expect(room.evictions()).toEqual(['late']);
});

describe('on a virtual node that the member does not want any more, as its pools were renamed', () => {
  beforeEach(async () => {
    room.editMember('east', { spec: { virtualNodes: [{ name: 'a' }] } });
    await room.seen('it is known', () => room.process.view.nodes.virtualNodesOf('east').includes('east-a'));
  });

  test('pods are replaced when the member is lost', async () => {
    await say('east', 'False');
    room.now += 300_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('pods are moved for taints of the member as a whole, and not for those of its pools', async () => {
    const evicting = { key: 'gone', effect: 'NoExecute' };
    const isKnown = async (nodes: string[]): Promise<void> =>
      await room.seen('it is known', () =>
        jsonEqual([...(room.process.placed.members()[0]?.nodeTaints.keys() ?? [])], nodes),
      );
    room.editMember('east', { spec: { virtualNodes: [{ name: 'a', taints: [evicting] }] } });
    await isKnown(['east-a']);
    await resync();
    expect(room.evictions()).toEqual([]);
    room.editMember('east', { spec: { taints: [evicting] } });
    await isKnown(['east-a', 'east']);
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('pods are moved when it is to be emptied', async () => {
    await taintNode('east', DRAIN);
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('pods are replaced when it is out of service', async () => {
    await say('east', 'False');
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoSchedule' }];
    room.api.edit('/api/v1/nodes/east', { spec: { taints } });
    room.editMember('east', { status: { fencing: { nodes: { east: 'Fenced' } } } });
    await room.seen('it is known', () =>
      room.process.placed.members().some(({ outOfService }) => outOfService.has('east')),
    );
    room.now += 30_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });
});

describe('lost', () => {
  beforeEach(async () => {
    await say('east', 'False');
    room.now = SINCE;
    await resync();
  });

  test('nothing is moved before its time, and all then, as the version that was looked at', async () => {
    room.now = SINCE + 299_000;
    expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
    expect(room.evictions()).toEqual([]);
    room.now = SINCE + 300_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
    for (const { body } of room.api.requests('POST', '/eviction')) {
      const version = expect.stringMatching(/^\d+$/) as string;
      expect(body).toMatchObject({
        deleteOptions: { preconditions: { uid: expect.anything() as string, resourceVersion: version } },
      });
    }
    expect(room.told('PodOfLostMemberReplaced')).toHaveLength(8);
    expect(room.told('PodOfLostMemberReplaced')).toContainEqual(
      expect.stringMatching(
        /^Deployment web: pod web-1-1: member east has not answered since 2026-01-01T00:00:00Z; it was evicted, so that ReplicaSet web-1 /,
      ),
    );
    await resync();
    expect(room.evictions()).toHaveLength(4);
  });

  test('no more are moved than have room elsewhere, those on their way counted in', async () => {
    room.setRoom('west', 2);
    room.now = SINCE + 300_000;
    await resync();
    expect(room.evictions()).toHaveLength(2);
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringContaining('the room elsewhere is for pods that come before it'),
    ]);
    // One of those that come instead has its place, and so has less room left.
    room.setRoom('west', 2);
    const [next] = await room.run(set, { west: 1 });
    for (const one of room.pods()) if (one.metadata.name === next) room.process.mover.underWay.came(one);
    room.now += 15_000;
    await resync();
    expect(room.evictions()).toHaveLength(3);
  });

  test('a place is kept for one whose eviction has no answer yet', async () => {
    room.setRoom('west', 1);
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? 'hang' : undefined);
    const ended = new AbortController();
    const first = room.process.members.bringUpToDate('east', ended.signal).catch(() => undefined);
    await room.seen('it is sent', () => room.evictions().length === 1);
    room.api.fault = undefined;
    await resync();
    expect(new Set(room.evictions()).size).toBe(1);
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringContaining('the room elsewhere is for pods that come before it'),
    ]);
    ended.abort();
    await first;
  });

  test('a place is kept for one whose eviction was carried out without an answer', async () => {
    room.setRoom('west', 1);
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) =>
      path.endsWith('/eviction') && room.evictions().length === 1 ? 'reset-after' : undefined;
    await resync();
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringMatching(/the host fails to let it go .*the connection broke/),
    ]);
    await resync();
    expect(room.evictions()).toHaveLength(1);
    // Nor after the time in which the answer was awaited: the pod ends, and no other one has come.
    room.now += 60_000;
    await resync();
    expect(room.evictions()).toHaveLength(1);
    await room.run(set, { west: 1 });
    room.now += 15_000;
    await resync();
    expect(room.evictions()).toHaveLength(2);
  });

  test('a place is not kept for one that the host refused to evict', async () => {
    room.setRoom('west', 1);
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) =>
      path.endsWith('/eviction') && room.evictions().length === 1 ? { code: 409, reason: 'Conflict' } : undefined;
    await resync();
    expect(room.evictions()).toHaveLength(2);
  });

  /** The member answers again as soon as that is so. */
  function answersOnce(isSo: () => boolean): void {
    const { placed } = room.process;
    const real = placed.members.bind(placed);
    vi.spyOn(placed, 'members').mockImplementation(() =>
      real().map((one) => (isSo() ? { ...one, reachable: true, mayBeLost: false } : one)),
    );
  }

  test('a member that answers again in the middle keeps the others', async () => {
    room.now = SINCE + 300_000;
    answersOnce(() => room.evictions().length === 2);
    await resync();
    expect(await resync()).toBeUndefined();
    expect(room.evictions()).toHaveLength(2);
    // Nobody is asked about the others.
    expect(reads()).toHaveLength(2);
  });

  test('a member that answers again at the last moment keeps the pod', async () => {
    room.now = SINCE + 300_000;
    answersOnce(() => reads().length > 0);
    await resync();
    expect(room.evictions()).toEqual([]);
  });

  test('nothing is moved while what the host says may be of yesterday', async () => {
    room.now = SINCE + 300_000;
    const outdated = vi.spyOn(room.process.placed, 'problem', 'get').mockReturnValue('no answer (transient)');
    await resync();
    expect([room.evictions(), reads().length]).toEqual([[], 1]);
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringContaining('the host cannot be followed now (no answer (transient))'),
    ]);
    outdated.mockRestore();
    room.now += 2_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
  });

  test('a member that answers again while a pod waits for its turn keeps it', async () => {
    room.now = SINCE + 300_000;
    room.rates.total = 5;
    // The first goes at once; the second is read, and waits when it is to be read again.
    answersOnce(() => reads().length > 2);
    await resync();
    expect(room.evictions()).toHaveLength(1);
    expect(reads().length).toBeGreaterThan(2);
  });

  test('a policy that says purgeMode Never while a pod waits for its turn keeps it', async () => {
    room.now = SINCE + 300_000;
    room.rates.total = 5;
    const { placed } = room.process;
    const real = placed.rulesOf.bind(placed);
    vi.spyOn(placed, 'rulesOf').mockImplementation((pod) =>
      reads().length > 2
        ? { ...real(pod), failover: { cluster: { ...CLUSTER_DEFAULTS, purgeMode: 'Never' } } }
        : real(pod),
    );
    await resync();
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('PodOfLostMemberHeld')).toContainEqual(
      expect.stringMatching(/^Pod web-1-2: .*its policy says purgeMode: Never/),
    );
  });

  test('a pod that is held is read once, and once more when it has changed', async () => {
    await onMemberLost({ action: 'Hold' });
    room.now = SINCE + 9e9;
    for (let times = 0; times < 3; times += 1) {
      await resync();
      room.now += 10_000;
    }
    expect(reads()).toHaveLength(4);
    const path = `/api/v1/namespaces/shop/pods/${names[0] ?? ''}`;
    room.api.edit(path, { metadata: { labels: { other: 'yes' } } });
    await room.seen('it is known', () =>
      room.process.placed.inMember('east').some(({ metadata }) => metadata.labels?.['other'] === 'yes'),
    );
    await resync();
    expect(reads()).toHaveLength(5);
    expect(room.evictions()).toEqual([]);
  });

  test('what its policy says holds as long as it says so, and no longer', async () => {
    await onMemberLost({ action: 'Hold' });
    room.now = SINCE + 9e9;
    await resync();
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('PodOfLostMemberHeld')).toHaveLength(4);
    await onMemberLost({ action: 'Replace' });
    room.now += 2_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('with onHeal those that ran are released, all of them, and wait; those that did not are evicted', async () => {
    await onMemberLost({ onHeal: 'KeepOriginal' });
    room.editSet('web-1', { spec: { replicas: 4, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
    const [lone = '', ...ran] = names;
    for (const name of ran) {
      const conditions = [{ type: 'spillway.dev/Mirrored', status: 'True' }];
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: 'Running', conditions } });
    }
    await room.seen('it is known', () => room.process.placed.surgingSetOf(room.pods()[0] as Pod)?.replicas === 4);
    room.now = SINCE + 300_000;
    await resync();
    expect(room.evictions()).toEqual([lone]);
    const waiting = room.pods().filter((pod) => releasedFrom(pod)?.lost === true);
    expect(waiting.map(({ metadata }) => metadata.name)).toEqual(ran);
    expect(room.told('PodOfLostMemberReplaced')).toContainEqual(
      expect.stringMatching(
        /^Pod web-1-2: member east has not answered since .*; it was released, so that ReplicaSet web-1 makes another one, which goes elsewhere\. It waits for its member: onHeal says which of them stays then$/,
      ),
    );
    await resync();
    expect([room.evictions().length, reads().length]).toEqual([1, 4]);
  });

  describe('and its virtual node is out of service', () => {
    const OUT = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoSchedule' };
    /** What whoever acts for the member has found that word to be worth. */
    async function worth(state: 'Fenced' | 'Refused', taints: object[] = [OUT]): Promise<void> {
      room.api.edit('/api/v1/nodes/east', { spec: { taints } });
      room.editMember('east', { status: { fencing: { nodes: { east: state }, pods: { u: 'east/shop/x' } } } });
      await room.seen('it is known', () => {
        const { status } = room.process.view.nodes.member('east') ?? {};
        const known = room.process.view.nodes.nodes.get('east')?.spec?.taints ?? [];
        return status?.fencing?.nodes?.['east'] === state && known.length === taints.length;
      });
    }

    test('its pods are replaced at once, also while most members are lost, and what was ended is not kept in mind', async () => {
      await onMemberLost({ after: '24h', action: 'ReplaceWhenFenced' });
      await say('north', 'False');
      room.now = SINCE + 60_000;
      await resync();
      expect(room.evictions()).toEqual([]);
      await worth('Fenced');
      await resync();
      expect(room.evictions().toSorted()).toEqual(names.toSorted());
      // On each pod, and on its workload.
      expect(room.told('OutOfServicePodReplaced')).toHaveLength(8);
      expect(room.process.view.nodes.member('east')?.status?.fencing?.pods).toBeUndefined();
    });

    test('by that word they go, too, that have been lost for long and that their ReplicaSet makes no others for', async () => {
      // Its next pods are refused, and one that went before ends in the member.
      room.editSet('web-1', { spec: { replicas: 6 } });
      const [ends = '', ...others] = names;
      const deletionTimestamp = new Date(room.now).toISOString();
      room.api.edit(`/api/v1/namespaces/shop/pods/${ends}`, { metadata: { deletionTimestamp } });
      const { pods } = room.process.view;
      await room.seen('it ends', () => pods.get(`shop/${ends}`)?.metadata.deletionTimestamp !== undefined);
      for (let rounds = 0; rounds < 30; rounds += 1) {
        room.now += 15_000;
        await resync();
      }
      expect(room.evictions()).toEqual([]);
      expect(room.told('PodOfLostMemberHeld')[0]).toContain('ReplicaSet web-1 has fewer pods than it asks for');
      await worth('Fenced');
      room.now += 15_000;
      await resync();
      expect(room.evictions().toSorted()).toEqual(others.toSorted());
    });

    test('nothing is replaced for that while the member answers now and then, be it with an error, and all is once it has been silent for 30 s', async () => {
      await onMemberLost({ after: '24h', action: 'ReplaceWhenFenced' });
      await worth('Fenced');
      for (let times = 0; times < 6; times += 1) {
        await say('east', 'False', 'ServerError');
        room.now += 10_000;
        await resync();
        await say('east', 'False', 'Timeout');
        await resync();
        room.now += 10_000;
        await resync();
      }
      expect(room.evictions()).toEqual([]);
      room.now += 20_000;
      await resync();
      expect(room.evictions().toSorted()).toEqual(names.toSorted());
    });

    test('it is looked at again by itself when this process has just begun, also while most members are lost', async () => {
      await onMemberLost({ after: '24h', action: 'ReplaceWhenFenced' });
      await worth('Fenced');
      await say('north', 'False');
      // As if it were seen for the first time.
      await say('east', 'True');
      await say('east', 'False');
      expect(await resync()).toEqual({ requeueAfterMs: 5_000 });
      room.now += 28_000;
      expect(await resync()).toEqual({ requeueAfterMs: 2_000 });
      expect(room.evictions()).toEqual([]);
      room.now += 2_000;
      await resync();
      expect(room.evictions()).toHaveLength(4);
    });

    test('pods of a gang stay, too, while their rules are not known', async () => {
      await onMemberLost({ after: '24h', action: 'ReplaceWhenFenced' });
      const inGang = { metadata: { labels: { [GANG_LABEL]: 'train' } } };
      for (const name of names) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, inGang);
      await room.seen('they are known', () =>
        room.process.placed.inMember('east').every(({ metadata }) => metadata.labels?.[GANG_LABEL] === 'train'),
      );
      await worth('Fenced');
      const why = vi.spyOn(room.process.placed, 'whyRulesUnknown').mockReturnValue('nobody knows its rules');
      room.now = SINCE + 60_000;
      await resync();
      expect(room.evictions()).toEqual([]);
      why.mockReturnValue(undefined);
      room.now += 15_000;
      await resync();
      expect(room.evictions()).not.toEqual([]);
    });

    test.each<[string, () => Promise<void>]>([
      ['the word was refused', async () => await worth('Refused')],
      ['the taint is not there any more', async () => await worth('Fenced', [])],
      [
        'the member answers',
        async () => {
          await worth('Fenced');
          await say('east', 'True');
        },
      ],
      [
        'it answers with errors',
        async () => {
          await worth('Fenced');
          await say('east', 'False', 'ServerError');
        },
      ],
      [
        'its policy says Hold',
        async () => {
          await worth('Fenced');
          await onMemberLost({ after: '24h', action: 'Hold' });
        },
      ],
    ])('nothing is replaced for that when %s', async (_, so) => {
      await onMemberLost({ after: '24h' });
      await so();
      room.now = SINCE + 60_000;
      await resync();
      expect(room.evictions()).toEqual([]);
    });
  });

  test('what is held for what it is goes by a taint that lets it go', async () => {
    const forEver = [{ key: 'spillway.dev/member-unreachable', operator: 'Exists', effect: 'NoExecute' }];
    for (const name of names) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { tolerations: forEver } });
    room.now = SINCE + 300_000;
    await resync();
    expect(room.told('PodOfLostMemberHeld')).toContainEqual(expect.stringMatching(/^Pod .* it tolerates .* for ever$/));
    expect(room.evictions()).toEqual([]);
    room.editMember('east', { spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] } });
    await room.seen('it is known', () =>
      room.process.placed.members().some(({ clusterTaints }) => clusterTaints.length > 0),
    );
    room.now += 2_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('the more important a pod, the sooner it goes', async () => {
    const priorities = [5, -1, 1_000, 2];
    for (const [index, name] of names.entries()) {
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, {
        spec: { priority: priorities[index] },
      });
    }
    await room.seen('it is known', () =>
      room.process.placed.inMember('east').every(({ spec }) => spec.priority !== undefined),
    );
    room.now = SINCE + 300_000;
    await resync();
    expect(room.evictions()).toEqual([names[2], names[0], names[3], names[1]]);
  });

  test('what is moved and what is held is counted, by strategy and member', async () => {
    room.setRoom('west', 3);
    room.now = SINCE + 300_000;
    await resync();
    const { values } = await room.process.moves.moves.get();
    const counted = values.map(({ labels, value }) => [labels.strategy, labels.member, labels.outcome, value]);
    expect(counted).toEqual([
      ['MemberLost', 'east', 'moved', 3],
      ['MemberLost', 'east', 'held', 1],
    ]);
  });

  test('what is held is told and counted anew every twenty minutes while its cause lasts', async () => {
    room.setRoom('west', 0);
    room.now = SINCE + 300_000;
    const held = async (): Promise<(number | undefined)[]> => {
      const { values } = await room.process.moves.moves.get();
      const count = values.find(({ labels }) => labels.outcome === 'held')?.value;
      return [room.told('PodOfLostMemberHeld').length, count];
    };
    const looks = async (minutes: number): Promise<void> => {
      for (let minute = 0; minute < minutes; minute += 1) {
        room.now += 60_000;
        await resync();
      }
    };
    await resync();
    await looks(19);
    expect(await held()).toEqual([1, 1]);
    await looks(1);
    expect(await held()).toEqual([2, 2]);
    // Whatever wall clocks say, and for causes that are known without asking, too.
    room.wallAheadMs = 9e9;
    await onMemberLost({ action: 'Hold' });
    await looks(19);
    expect(await held()).toEqual([6, 6]);
    await looks(2);
    expect(await held()).toEqual([10, 10]);
  });

  test('what was moved stands in the WorkloadPlacement, and is left there by who writes the rest', async () => {
    const { placements } = room.process;
    const { signal } = new AbortController();
    await placements.bringUpToDate(deployment.metadata.uid ?? '', signal);
    await room.seen('it is stored', () => room.process.store.get(deployment) !== undefined);
    room.setRoom('west', 2);
    room.now = SINCE + 300_000;
    await resync();
    await room.process.records.bringUpToDate(ownerKeyOf(deployment), signal);
    const moved = {
      strategy: 'MemberLost',
      from: 'east',
      count: 2,
      since: '2026-01-01T00:05:00Z',
      last: '2026-01-01T00:05:00Z',
      pod: room.evictions()[1],
      message: 'member east has not answered since 2026-01-01T00:00:00Z',
    };
    expect(room.placementOf('web')?.status?.moves).toEqual([moved]);
    room.now += 20_000;
    const [other = ''] = names.filter((name) => !room.evictions().includes(name));
    room.endPods([other]);
    await room.seen('it is known', () => room.pods().length === room.process.view.pods.size);
    await placements.bringUpToDate(deployment.metadata.uid ?? '', signal);
    expect(room.placementOf('web')?.status).toMatchObject({ updatedAt: '2026-01-01T00:05:20Z', moves: [moved] });
  });

  test('pods of a workload are moved so many times within an hour, and no more, over a restart', async () => {
    room.perPodPerHour = 1;
    const { signal } = new AbortController();
    await room.process.placements.bringUpToDate(deployment.metadata.uid ?? '', signal);
    await room.seen('it is stored', () => room.process.store.get(deployment) !== undefined);
    await room.restart();
    await resync();
    room.now = SINCE + 300_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
    await room.process.records.bringUpToDate(ownerKeyOf(deployment), signal);
    await room.restart();
    await room.run(set, { east: 4 });
    await resync();
    room.now += 300_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringMatching(
        /pods of its workload were moved too often \(4 times within an hour; descheduler\.movesPerPodPerHour is 1\)$/,
      ),
    ]);
    room.now += 3_300_000;
    await resync();
    expect(room.evictions()).toHaveLength(8);
  });

  test('moves that were written down by a clock that was a day ahead hold others up for an hour, not for a day', async () => {
    room.perPodPerHour = 1;
    const { signal } = new AbortController();
    const uid = deployment.metadata.uid ?? '';
    await room.process.placements.bringUpToDate(uid, signal);
    await room.seen('it is stored', () => room.process.store.get(deployment) !== undefined);
    await room.restart();
    await resync();
    room.now = SINCE + 300_000;
    room.wallAheadMs = 86_400_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
    await room.process.records.bringUpToDate(`shop/${uid}`, signal);
    // The clock is set right; both the process that wrote it, and the next one, count from now on.
    room.wallAheadMs = 0;
    const { records } = room.process;
    const count = (of = records): number => of.withinAnHour(deployment);
    expect([count(), [...records.leftLately(deployment, 'MemberLost')]]).toEqual([4, ['east']]);
    room.now += 3_599_000;
    expect(count()).toBe(4);
    room.now += 1_000;
    expect([count(), records.leftLately(deployment, 'MemberLost').size]).toEqual([0, 0]);
    await room.restart();
    const next = room.process.records;
    expect([count(next), next.fewEnoughInMs(deployment, 3)]).toEqual([4, 3_600_000]);
    room.now += 3_600_000;
    expect(count(next)).toBe(0);
    // Nor when the time has come that was written down.
    room.now = SINCE + 300_000 + 86_400_000 + 1_000;
    expect([count(next), next.leftLately(deployment, 'MemberLost').size]).toEqual([0, 0]);
    next.add(deployment, { strategy: 'MemberLost', from: 'east', pod: 'p', message: '' });
    expect(count(next)).toBe(1);
  });

  test('moves that were written down by a clock that was ahead keep none of those after them from being known', () => {
    const { records } = room.process;
    const move = (from: string): void =>
      records.add(deployment, { strategy: 'MemberLost', from, pod: 'p', message: '' });
    room.wallAheadMs = 86_400_000;
    for (let index = 0; index < 20; index += 1) move(`wrong-${String(index)}`);
    room.wallAheadMs = 0;
    move('east');
    move('west');
    expect([...records.leftLately(deployment, 'MemberLost')].slice(0, 2)).toEqual(['west', 'east']);
  });

  test('moves that were told together, for want of room, name no cluster that pods left', () => {
    const { records } = room.process;
    const moves = 65;
    for (let index = 0; index < moves; index += 1)
      records.add(deployment, { strategy: 'MemberLost', from: `east-${String(index)}`, pod: 'p', message: '' });
    expect(records.withinAnHour(deployment)).toBe(moves);
    expect([...records.leftLately(deployment, 'MemberLost')]).toEqual([]);
  });

  test('a dry run moves nothing, and tells what would be, again after twenty minutes', async () => {
    room.dryRun = true;
    await room.restart();
    await resync();
    room.now = SINCE + 300_000;
    for (let times = 0; times < 3; times += 1) {
      await resync();
      room.now += 60_000;
    }
    expect(room.evictions()).toEqual([]);
    expect(room.told('MoveWanted')).toHaveLength(4);
    expect(room.told('MoveWanted')[0]).toMatch(
      /^Pod web-1-\d: MemberLost: member east has not answered since .*; it would be moved now, but descheduler.dryRun is set$/,
    );
    room.now += 18 * 60_000;
    await resync();
    expect(room.told('MoveWanted')).toHaveLength(8);
    room.now += 60_000;
    // What keeps a pod where it is it says as ever.
    await onMemberLost({ action: 'Hold' });
    await resync();
    expect(room.told('PodOfLostMemberHeld')).toHaveLength(4);
  });

  test('a disruption budget holds, and is asked again', async () => {
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    await resync();
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringMatching(
        /its disruption budget allows no eviction now \(the pod is not Ready, so .* unhealthyPodEvictionPolicy: AlwaysAllow/,
      ),
    ]);
    await resync();
    room.api.fault = undefined;
    room.now += 5_000;
    await resync();
    expect(room.evictions().length).toBeGreaterThanOrEqual(5);
  });

  test('many workloads that are held by disruption budgets leave those after them their turn', async () => {
    for (let index = 0; index < 120; index += 1) {
      const one = await room.deploy(`held-${String(index)}`, 1);
      await room.run(one.set, { east: 1 });
    }
    await room.seen('all are known', () => room.process.placed.inMember('east').length === 124);
    room.now = SINCE + 300_000;
    // As at two evictions a second: those that were asked for first may be again when a round ends.
    room.api.fault = ({ path }) => {
      if (!path.endsWith('/eviction')) return undefined;
      room.now += 500;
      return AGAINST_BUDGET;
    };
    expect(await resync()).toEqual({ requeueAfterMs: 0 });
    expect(await resync()).toEqual({ requeueAfterMs: 0 });
    expect(await resync()).toMatchObject({ requeueAfterMs: expect.any(Number) as number });
    expect(new Set(room.evictions()).size).toBe(121);
    // Then all are asked for again, the first ones first.
    const asked = room.evictions();
    await resync();
    expect(room.evictions().slice(asked.length)[0]).toBe(asked[0]);
  }, 60_000);

  test('a pod that several disruption budgets choose is held with its workload, for a minute', async () => {
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) => (path.endsWith(`/${names[0] ?? ''}/eviction`) ? MANY_BUDGETS : undefined);
    await resync();
    expect(room.evictions()).toEqual([names[0]]);
    // It holds for the whole workload, as budgets choose by labels, but not for ever.
    room.api.fault = undefined;
    room.now += 60_000;
    await resync();
    expect(room.told('PodOfLostMemberHeld')).toEqual([
      expect.stringMatching(
        /more than one disruption budget chooses it, and Kubernetes evicts no such pod: leave it one/,
      ),
    ]);
    expect(new Set(room.evictions())).toEqual(new Set(names));
  });

  test('nothing is moved while most members are lost; a taint of the administrator moves them all the same', async () => {
    await say('north', 'False');
    room.now = SINCE + 9e9;
    expect(await resync()).toBeUndefined();
    expect(room.evictions()).toEqual([]);
    room.editMember('east', { spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] } });
    await room.seen('it is known', () =>
      room.process.placed.members().some(({ clusterTaints }) => clusterTaints.length > 0),
    );
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
    expect(room.told('TaintedPodMoved')[0]).toMatch(
      /member east has taints that it does not tolerate \(gone:NoExecute\)/,
    );
  });
});

describe('pods about which nothing speaks any more', () => {
  /** The policy is deleted, and the namespace asks for policies: pods have their toleration only from that. */
  beforeEach(async () => {
    room.unplace('p');
    room.api.edit('/api/v1/namespaces/shop', { metadata: { labels: { 'spillway.dev/burst': 'policies' } } });
    const key = 'spillway.dev/virtual-node';
    for (const name of ['east', 'west', 'north']) {
      room.api.edit(`/api/v1/nodes/${name}`, { spec: { taints: [{ key, effect: 'NoSchedule' }] } });
    }
    const tolerations = [{ key, operator: 'Exists', effect: 'NoSchedule' }];
    for (const { metadata, spec } of room.pods()) {
      room.api.edit(`/api/v1/namespaces/shop/pods/${metadata.name}`, { spec: { ...spec, tolerations } });
    }
    const { view } = room.process;
    await room.seen('all of it is known', () => {
      const isTainted = view.nodes.nodes.get('west')?.spec?.taints?.length === 1;
      const isLabelled = view.namespaceLabels('shop')?.['spillway.dev/burst'] === 'policies';
      const areTolerating = room.pods().every(({ spec }) => spec.tolerations?.length === 1);
      return view.policies.get('shop/p') === undefined && isTainted && isLabelled && areTolerating;
    });
  });

  test('stay in a lost member: schedulers would let no other pod leave the host', async () => {
    await say('east', 'False');
    room.now += 301_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('PodOfLostMemberHeld')).toContainEqual(
      expect.stringContaining('west: nothing says that the pod may leave the host'),
    );
  });

  test('go where the host itself has room', async () => {
    room.setRoom('local', 100);
    await say('east', 'False');
    room.now += 301_000;
    await resync();
    expect(room.evictions()).toHaveLength(4);
  });
});
