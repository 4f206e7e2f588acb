import { afterEach, expect, it } from 'vitest';
import { UID_LABEL } from '../../src/api/marks.ts';
import { Random } from '../sim/random.ts';
import { BudgetWorld, podsIn, send } from './budget-world.ts';

let world: BudgetWorld;
afterEach(async () => {
  await world.close();
});

const MEMBERS = ['east', 'west', 'north'];
const NODES = ['1', '2'];
const LEAST = 4;
const STEPS = 120;

/** Pods that run and are not being deleted, in all members together. */
function up(): number {
  return MEMBERS.flatMap((name) => podsIn(world.member(name))).filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running',
  ).length;
}

it.each([1, 2, 3])(
  'whoever evicts what and when, members together leave as many pods as the budget of the host asks for (%i)',
  async (seed) => {
    const random = new Random(seed, 1);
    world = await BudgetWorld.start(...MEMBERS);
    let count = 0;
    const runOne = (): void => {
      count += 1;
      world.run(`pod-${count}`, random.pick(MEMBERS) ?? '', { node: random.pick(NODES) ?? '' });
    };
    for (let i = 0; i < LEAST + 2; i++) runOne();
    world.protect('web', LEAST);
    for (const member of MEMBERS) world.start(member);
    let evicted = 0;
    const acts: (() => void)[] = [
      () => {
        const member = random.pick(MEMBERS) ?? '';
        // Its own controller counts at once, that of the host when it likes.
        for (const { metadata } of podsIn(world.member(member))) {
          world.count(world.member(member));
          const uid = metadata.labels?.[UID_LABEL] ?? '';
          // One that was made a moment ago is not covered yet: such a pod has not even been started.
          const isCovered = world.mirror(member)?.spec.selector?.matchExpressions?.[0]?.values?.includes(uid) === true;
          const isThere = metadata.deletionTimestamp === undefined;
          if (isCovered && isThere && world.evict(member, metadata.name)) evicted += 1;
        }
      },
      () => world.cordon(random.pick(MEMBERS) ?? '', random.pick(NODES) ?? '', random.chance(0.5)),
      () => world.count(world.host),
      () => {
        // What was evicted has ended: the host hears of it, and another one comes.
        for (const member of MEMBERS) {
          for (const { metadata } of podsIn(world.member(member))) {
            if (metadata.deletionTimestamp === undefined || random.chance(0.5)) continue;
            const path = `/api/v1/namespaces/shop/pods/${metadata.name}`;
            world.report(world.host, metadata.name, false, 'Failed');
            send(world.member(member), 'DELETE', path, { gracePeriodSeconds: 0 });
            runOne();
          }
        }
      },
    ];
    for (let step = 0; step < STEPS; step++) {
      random.pick(acts)?.();
      expect(up(), `after step ${step}`).toBeGreaterThanOrEqual(LEAST);
      await new Promise((resolve) => setTimeout(resolve, random.between(0, 150)));
    }
    expect(evicted).toBeGreaterThan(1);
  },
  60_000,
);
