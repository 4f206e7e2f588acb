import { expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { LossAges } from '../../src/descheduler/loss-ages.ts';
import { MovesUnderWay } from '../../src/descheduler/moves-under-way.ts';
import { membersAtOnce, Pacer } from '../../src/descheduler/pacer.ts';
import { TaintAges } from '../../src/descheduler/taint-ages.ts';
import type { PlacedMember } from '../../src/placement/placed-pods.ts';
import { placedMember } from '../fixtures/placed-member.ts';

const { signal } = new AbortController();
const over = AbortSignal.abort();

test('moves are spaced out of each member, and in total; nothing is saved up', async () => {
  let now = 0;
  const pacer = new Pacer({ total: 10, perMember: 2 }, () => now);
  expect(await pacer.turn('east', signal)).toBe(false);
  expect(await pacer.turn('west', over)).toBe(true);
  now = 99;
  expect(await pacer.turn('north', over)).toBe(true);
  now = 10_000;
  expect(await pacer.turn('east', signal)).toBe(false);
  now = 10_499;
  expect(await pacer.turn('east', over)).toBe(true);
  now = 11_000;
  expect(await pacer.turn('east', signal)).toBe(false);
});

test('a member with many waiting moves holds up no other one', async () => {
  let now = 0;
  const pacer = new Pacer({ total: 10, perMember: 1 }, () => now);
  await pacer.turn('east', signal);
  for (let count = 0; count < 4; count += 1) await pacer.turn('east', over);
  now = 500;
  expect(await pacer.turn('west', signal)).toBe(false);
});

test.each([
  [{ total: 10, perMember: 2 }, 8],
  [{ total: 50, perMember: 2 }, 25],
  [{ total: 100, perMember: 1 }, 32],
  [{ total: Infinity, perMember: Infinity }, 8],
  [{ total: Infinity, perMember: 1 }, 32],
])('with %j so many members are emptied at the same time: %i', (rates, count) => {
  expect(membersAtOnce(rates)).toBe(count);
});

test('it waits as long as it takes', async () => {
  const pacer = new Pacer({ total: 1_000, perMember: 20 }, () => performance.now());
  const began = performance.now();
  for (let count = 0; count < 5; count += 1) await pacer.turn('east', signal);
  expect(performance.now() - began).toBeGreaterThanOrEqual(195);
});

const pod = (uid: string, controller: string, nodeName?: string): Pod => ({
  metadata: {
    name: uid,
    uid,
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: controller, uid: controller, controller: true },
    ],
  },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
});

test('pods that were moved are awaited until others come, and these have a minute to find their nodes', () => {
  let now = 0;
  const underWay = new MovesUnderWay(() => now);
  const sent = (): string[] => underWay.sent().map(({ metadata }) => metadata.name);
  for (const [uid, controller] of [
    ['a', 'one'],
    ['b', 'one'],
    ['c', 'two'],
  ] as const)
    underWay.moving(pod(uid, controller, 'east'));
  expect(sent()).toEqual(['a', 'b', 'c']);
  // Pods that were there before say nothing.
  underWay.seen(pod('z', 'one', 'east'));
  expect(sent()).toEqual(['a', 'b', 'c']);
  const d = pod('d', 'one');
  underWay.came(d);
  expect([sent(), underWay.isPlacing(d)]).toEqual([['b', 'c'], true]);
  underWay.seen(pod('d', 'one', 'west'));
  expect(underWay.isPlacing(d)).toBe(false);
  const e = pod('e', 'two', 'west');
  underWay.came(e);
  expect([sent(), underWay.isPlacing(e)]).toEqual([['b'], false]);
  const f = pod('f', 'one');
  underWay.came(f);
  underWay.gone(f);
  expect([sent(), underWay.isPlacing(f)]).toEqual([[], false]);
  underWay.moving(pod('g', 'three', 'east'));
  const h = pod('h', 'three');
  underWay.came(h);
  underWay.moving(pod('i', 'three', 'east'));
  now = 60_000;
  expect([sent(), underWay.isPlacing(h)]).toEqual([[], false]);
});

test('a pod is awaited from before it is evicted, and no more only when that is refused', () => {
  let now = 0;
  const underWay = new MovesUnderWay(() => now);
  const sent = (but?: Pod): string[] => underWay.sent(but).map(({ metadata }) => metadata.name);
  const [a, b] = [pod('a', 'one', 'east'), pod('b', 'one', 'east')];
  const takeBack = underWay.moving(a);
  // Not against the pod itself, should it be tried again.
  expect([sent(), sent(a), sent(b)]).toEqual([['a'], [], ['a']]);
  takeBack();
  takeBack();
  expect(sent()).toEqual([]);
  // The first try was not answered, the second one is refused.
  underWay.moving(a);
  now = 30_000;
  const again = underWay.moving(a);
  expect(sent()).toEqual(['a']);
  again();
  expect(sent()).toEqual(['a']);
  now = 60_000;
  expect([sent(), sent(a)]).toEqual([[], []]);
  // The one that comes instead is seen before the answer.
  const late = underWay.moving(a);
  underWay.came(pod('c', 'one'));
  expect(sent()).toEqual([]);
  underWay.moving(b);
  late();
  expect(sent()).toEqual(['b']);
});

const EAST = placedMember();

test('members are lost for as long as this process has seen it, an outage that began anew from then on', () => {
  let now = 1_000;
  const losses = new LossAges(() => now);
  const lost = (since: number): PlacedMember[] => [
    { ...EAST, reachable: false, mayBeLost: true, answers: false, since },
  ];
  // Somebody wrote that it has been so for ever.
  losses.observe(lost(0));
  expect(losses.lostForMs('east')).toBe(0);
  now = 5_000;
  losses.observe(lost(0));
  expect(losses.lostForMs('east')).toBe(4_000);
  // It answered for a moment, which nobody here saw.
  losses.observe(lost(7));
  expect(losses.lostForMs('east')).toBe(0);
  now = 6_000;
  expect(losses.lostForMs('east')).toBe(1_000);
  losses.observe([{ ...EAST, reachable: false, mayBeLost: false, since: 7 }]);
  expect(losses.lostForMs('east')).toBe(0);
  losses.observe(lost(7));
  now = 9_000;
  expect(losses.lostForMs('east')).toBe(3_000);
  expect(losses.lostForMs('west')).toBe(0);
});

test('pods of lost members are moved by the time since so few are, however long these have been lost', () => {
  let now = 0;
  const losses = new LossAges(() => now);
  const fleet = (...lost: string[]): PlacedMember[] =>
    ['east', 'west', 'north', 'south'].map((name) =>
      lost.includes(name)
        ? { ...EAST, name, reachable: false, mayBeLost: true, answers: false, since: 7 }
        : { ...EAST, name },
    );
  losses.observe(fleet('east'));
  expect(losses.unpausedForMs()).toBe(Infinity);
  now = 1_000;
  losses.observe(fleet('east', 'west', 'north'));
  now = 5_000;
  // Nobody has looked since.
  expect([losses.lostForMs('east'), losses.unpausedForMs()]).toEqual([5_000, 0]);
  losses.observe(fleet('east', 'west'));
  expect([losses.lostForMs('east'), losses.unpausedForMs()]).toEqual([5_000, 0]);
  now = 7_000;
  losses.observe(fleet('east'));
  expect([losses.lostForMs('east'), losses.unpausedForMs()]).toEqual([7_000, 2_000]);
  expect(losses.countedMs('east')).toBe(2_000);
  losses.observe(fleet('east', 'west', 'north'));
  losses.observe(fleet('east'));
  expect(losses.unpausedForMs()).toBe(0);
  // A process that begins then knows no pause, and no loss that is older.
  const next = new LossAges(() => now);
  next.observe(fleet('east'));
  expect(next.countedMs('east')).toBe(0);
});

test('taints are as old as this process knows them, those of each virtual node and of the whole member by themselves', () => {
  let now = 0;
  const ages = new TaintAges(() => now);
  const taint = { key: 'k', effect: 'NoExecute' };
  const member = (...clusterTaints: (typeof taint)[]): PlacedMember[] => [{ ...EAST, clusterTaints }];
  ages.observe(member(taint));
  now = 5;
  ages.observe(member(taint));
  expect(ages.ageMs('east', undefined, taint)).toBe(5);
  ages.observe(member());
  now = 9;
  ages.observe(member(taint));
  expect(ages.ageMs('east', undefined, taint)).toBe(0);
  expect(ages.ageMs('west', undefined, taint)).toBe(0);
  const pools = (...names: string[]): PlacedMember[] => [
    { ...EAST, clusterTaints: [taint], nodeTaints: new Map(names.map((name) => [name, [taint]])) },
  ];
  ages.observe(pools('east-a'));
  now = 20;
  ages.observe(pools('east-a', 'east-b'));
  now = 22;
  expect(['east-a', 'east-b', undefined].map((node) => ages.ageMs('east', node, taint))).toEqual([13, 2, 13]);
});

test('a taint counts for a pod from the later of the two', () => {
  let now = 0;
  const ages = new TaintAges(() => now);
  const taint = { key: 'k', effect: 'NoExecute' };
  const member = (...nodes: string[]): PlacedMember[] => [
    { ...EAST, nodeTaints: new Map(nodes.map((name) => [name, [taint]])) },
  ];
  const [early, late] = [pod('a', 'one', 'east'), pod('b', 'one', 'east')];
  ages.podCame(early, 'east');
  ages.observe(member('east'));
  now = 3_600_000;
  ages.podCame(late, 'east');
  now += 5;
  // It is seen again, and bound to the same node all the time.
  ages.podCame(late, 'east');
  const against = (one: Pod): number => ages.againstMs(one, 'east', 'east', taint);
  expect([against(early), against(late)]).toEqual([3_600_005, 5]);
  // Another taint, later than both.
  ages.observe(member('east', 'east-b'));
  now += 1;
  expect([early, late].map((one) => ages.againstMs(one, 'east', 'east-b', taint))).toEqual([1, 1]);
  ages.podGone(late);
  expect(against(late)).toBe(3_600_006);
  // Taken away and put there anew.
  ages.podCame(late, 'east');
  ages.observe(member());
  ages.observe(member('east'));
  now += 2;
  expect([against(early), against(late)]).toEqual([2, 2]);
});
