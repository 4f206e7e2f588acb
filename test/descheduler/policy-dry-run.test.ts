import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { STRATEGIES, type Strategy } from '../../src/descheduler/strategies.ts';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of Deployments shop/web, whose policy may say dryRun, and shop/other, whose does not, in member east, which has a taint. */

let room: SchedulerRoom;
let set: TypedObject;
let deployment: TypedObject;
let web: string[];
let other: string[];
const TAINT = { key: 'drained', effect: 'NoExecute' };
const TOOK = { type: 'spillway.dev/Mirrored', status: 'True' };

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  ({ set, deployment } = await room.deploy('web', 2));
  const second = await room.deploy('other', 2);
  for (const name of ['east', 'west']) room.setRoom(name, 100);
  room.setRoom('local', 0);
  room.place('p', {}, { name: 'web' });
  room.place('q', {}, { name: 'other' });
  await say({ dryRun: true });
  web = await room.run(set, { east: 2 });
  other = await room.run(second.set, { east: 2 });
});
afterEach(async () => {
  await room.close();
});

/** The policy of shop/web says so. */
async function say(failover: object): Promise<void> {
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  const spec = { ...(room.api.objects.get(path)?.['spec'] as object), failover };
  room.api.handle({
    method: 'PUT',
    path,
    query: {},
    body: { ...room.api.objects.get(path), spec },
    contentType: 'application/json',
  });
  const { resourceVersion } = room.api.objects.get(path)?.metadata ?? {};
  await room.seen(
    'the policy is known',
    () => room.process.view.policies.get('shop/p')?.policy?.metadata.resourceVersion === resourceVersion,
  );
}

async function taint(...taints: object[]): Promise<void> {
  room.editMember('east', { spec: { credentials: {}, clusterTaints: taints } });
  await room.seen(
    'the taint is known',
    () => room.process.placed.member('east')?.clusterTaints.length === taints.length,
  );
}

const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const moves = async (outcome: string): Promise<number[]> =>
  (await room.process.moves.moves.get()).values
    .filter(({ labels }) => labels.outcome === outcome)
    .map(({ value }) => value);

test('what its policy only rehearses stays and says so, once in twenty minutes; others go', async () => {
  await taint(TAINT);
  for (let times = 0; times < 3; times += 1) {
    await look();
    room.now += 60_000;
  }
  expect(room.evictions().toSorted()).toEqual(other);
  expect(room.api.requests('PATCH').filter(({ path }) => path.includes('/pods/'))).toEqual([]);
  expect(room.told('MoveWanted').toSorted()).toEqual(
    web.map((name) =>
      expect.stringMatching(
        `^Pod ${name}: TaintNoExecute: member east has taints .*; it would be moved now, but its policy says failover.dryRun: true$`,
      ),
    ),
  );
  expect([await moves('wanted'), await moves('moved')]).toEqual([[2], [2]]);
  room.now += 18 * 60_000;
  await look();
  expect(room.told('MoveWanted')).toHaveLength(4);
});

test('it goes at once when its policy says otherwise, and stays again', async () => {
  await taint(TAINT);
  await look();
  expect(room.evictions()).not.toContain(web[0]);
  await say({});
  room.api.fault = ({ path }) =>
    path.includes(web[1] ?? '') && path.endsWith('/eviction') ? { code: 503 } : undefined;
  await look();
  expect(room.evictions()).toContain(web[0]);
  room.api.fault = undefined;
  await say({ dryRun: true });
  const asked = room.evictions().length;
  room.now += 120_000;
  await look();
  expect(room.evictions()).toHaveLength(asked);
  expect(room.told('MoveWanted').filter((one) => one.startsWith(`Pod ${web[1] ?? ''}:`))).not.toEqual([]);
});

/** A move of that pod. */
const wanted = (strategy: Strategy, [name] = web): WantedMove => {
  const [pod] = room.pods().filter(({ metadata }) => metadata.name === name);
  if (pod === undefined) throw new Error('there is no pod');
  const words = {
    cause: 'it is to go',
    outcome: 'which comes',
    stays: 'it stays',
  };
  return { strategy, pod, from: 'east', recheck: () => undefined, ...words };
};
const move = async (one: WantedMove): Promise<string> =>
  await room.process.mover.move(one, new AbortController().signal);

describe.each(Object.keys(STRATEGIES) as Strategy[])('a move by %s', (strategy) => {
  const told = (by: string): unknown =>
    expect.stringMatching(
      new RegExp(`^Pod ${web[0] ?? ''}: ${strategy}: it is to go; it would be moved now, but ${by}`),
    );
  const isNever = strategy === 'GangTimedOut';

  test('is told and not made, as its policy says, where nobody ordered it', async () => {
    const isMade = isNever || STRATEGIES[strategy].isOrdered === true;
    expect(await move(wanted(strategy))).toBe(isMade ? 'moved' : 'held');
    expect(room.evictions()).toHaveLength(isMade ? 1 : 0);
    expect(room.told('MoveWanted')).toEqual(isMade ? [] : [told('its policy says failover.dryRun: true$')]);
    expect(await moves('wanted')).toEqual(isMade ? [] : [1]);
  });

  test('is told and not made, as the configuration says', async () => {
    await say({});
    room.dryRun = true;
    await room.restart();
    expect(await move(wanted(strategy))).toBe(isNever ? 'moved' : 'held');
    expect(room.evictions()).toHaveLength(isNever ? 1 : 0);
    expect(room.told('MoveWanted')).toEqual(isNever ? [] : [told('descheduler.dryRun is set$')]);
  });
});

test('a rehearsal takes nothing that others need: no turn, no place, no move of the hour, no rest', async () => {
  room.rates.perMember = 0.001;
  await room.restart();
  const drain = wanted('Drain');
  const { mover, records } = room.process;
  for (let times = 0; times < 3; times += 1) expect(await move(drain)).toBe('held');
  expect([mover.keeps(drain), mover.keeps(wanted('MemberLost'))]).toEqual([true, false]);
  expect([mover.restMs(drain.pod), mover.wasSent(drain.pod), mover.underWay.sent()]).toEqual([0, false, []]);
  expect(records.withinAnHour(deployment)).toBe(0);
  // The one turn in a quarter of an hour is still there.
  expect(await move(wanted('Migrate'))).toBe('moved');
  expect([room.evictions(), room.told('MoveWanted').length]).toEqual([[web[0]], 1]);
});

test('a move that waits for its turn does not begin when its policy says so meanwhile', async () => {
  await say({});
  room.rates.perMember = 1;
  await room.restart();
  await move(wanted('Drain'));
  const outcome = move(wanted('Drain', web.slice(1)));
  await say({ dryRun: true });
  expect([await outcome, room.evictions()]).toEqual(['held', [web[0]]]);
});

test('no member is avoided for pods that are not well, until their policy is in earnest', async () => {
  const application = { decisionConditions: { tolerationSeconds: 20 } };
  await say({ dryRun: true, application });
  room.now = Date.now();
  web.push(...(await room.run(set, { west: 2 })));
  const [sick = ''] = web;
  const avoided = (): string[] => room.process.workloads.avoided(deployment).map(({ cluster }) => cluster);
  const pass = async (seconds: number): Promise<void> => {
    for (let rest = seconds; rest > 0; rest -= 10) {
      await room.process.unhealthy.bringUpToDate(ownerKeyOf(deployment), new AbortController().signal);
      room.now += 10_000;
    }
  };
  const tell = async (names: readonly string[], status: 'True' | 'False'): Promise<void> => {
    for (const name of names) {
      const conditions = [TOOK, { type: 'Ready', status }];
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: 'Running', conditions } });
    }
    const versions = room.pods().map(({ metadata }) => metadata);
    await room.seen('the caches show it', () =>
      versions.every(
        ({ name, resourceVersion }) =>
          room.process.view.pods.get(`shop/${name}`)?.metadata.resourceVersion === resourceVersion,
      ),
    );
  };
  await tell(web, 'True');
  await pass(120);
  await tell([sick], 'False');
  await pass(60);
  expect([avoided(), room.evictions()]).toEqual([[], []]);
  expect(room.told('MoveWanted')).toEqual([expect.stringMatching(`^Pod ${sick}: UnhealthyInMember: `)]);
  await say({ application });
  await pass(10);
  expect([avoided(), room.evictions()]).toEqual([['east'], []]);
  await pass(20);
  expect(room.evictions()).toEqual([sick]);
});
