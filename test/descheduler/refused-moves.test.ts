import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';
import {
  AGAINST_BUDGET,
  BUDGET_BEHIND,
  DENIED_BY_POLICY,
  DENIED_BY_WEBHOOK,
  NO_RIGHT,
  TOO_BUSY,
  WEBHOOK_DOWN,
} from '../fixtures/eviction-refusals.ts';
import type { Fault, MemoryRequest } from '../fixtures/memory-api.ts';

/** Deployments web, of three pods, and api, of two, are in member east, which is drained; west has room. */
let room: SchedulerRoom;
let [web, api]: [string[], string[]] = [[], []];

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('west', 100);
  room.setRoom('local', 0);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  web = await room.run((await room.deploy('web', 3)).set, { east: 3 });
  api = await room.run((await room.deploy('api', 2)).set, { east: 2 });
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
});
afterEach(async () => {
  await room.close();
});

const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const [first, others] = [(): string => web[0] ?? '', (): string[] => web.slice(1)];

type About = (request: MemoryRequest) => boolean;
const itsEviction: About = ({ path }) => path.endsWith(`/${first()}/eviction`);
const itself: About = ({ method, path }) => method === 'GET' && path.endsWith(`/pods/${first()}`);

function fault(about: About, answer: Fault): void {
  room.api.fault = (request) => (about(request) ? answer : undefined);
}

const failed = 'the host fails to let it go (cluster host: ';
const denied = 'the host does not let it go (cluster host: ';
const BROKEN: Fault = 'reset';
const NOT_SAID = { code: 500, reason: 'InternalError', message: 'rpc error: cannot decrypt' };
const MALFORMED = { code: 400, reason: 'BadRequest', message: 'the webhook makes no sense' };

describe.each([
  ['a webhook is down for', itsEviction, WEBHOOK_DOWN, `${failed}Internal error occurred: failed calling webhook`],
  ['a webhook answers nonsense about', itsEviction, MALFORMED, `${denied}the webhook makes no sense (400 BadRequest)`],
  [
    'a policy denies',
    itsEviction,
    DENIED_BY_POLICY,
    `${denied}pods "web-1" is forbidden: ValidatingAdmissionPolicy 'keep'`,
  ],
  [
    'a webhook denies',
    itsEviction,
    DENIED_BY_WEBHOOK,
    `${denied}admission webhook "guard.example.com" denied the request`,
  ],
  ['the host has no time for', itsEviction, TOO_BUSY, `${failed}Too many requests, please try again later.`],
  ['the host cannot read', itself, NOT_SAID, 'the host does not say what it is now (cluster host: rpc error'],
  ['the host breaks off the read of', itself, BROKEN, 'the host does not say what it is now (cluster host: the conn'],
])('one pod that %s', (_, about, answer, words) => {
  beforeEach(() => fault(about, answer));

  test('keeps no other pods in the member, those of its workload a little later, and says why', async () => {
    expect(await look()).toEqual({ requeueAfterMs: 5_000 });
    expect(room.evictions().filter((name) => name !== first())).toEqual(api);
    expect(room.told('DrainedPodHeld')).toEqual([expect.stringContaining(words)]);
    room.now += 5_000;
    await look();
    expect(room.evictions().filter((name) => name !== first())).toEqual([...api, ...others()]);
  });

  test('is tried again after 15 seconds, and told of once', async () => {
    await look();
    const tries = (): number => room.api.seen.filter(about).length;
    const before = tries();
    room.now += 14_999;
    await look();
    expect(tries()).toBe(before);
    room.now += 1;
    await look();
    expect(tries()).toBeGreaterThan(before);
    expect(room.told('DrainedPodHeld')).toHaveLength(1);
    room.api.fault = undefined;
    room.now += 15_000;
    await look();
    expect(room.evictions().at(-1)).toBe(first());
  }, 15_000);
});

test('a right that is missing holds all pods of the namespace, as ever, and no other answer is taken for a budget', async () => {
  fault(itsEviction, NO_RIGHT);
  await look();
  expect(room.evictions()).toEqual([first()]);
  expect(room.told('DrainedPodHeld')).toEqual([
    expect.stringContaining('(apply manifests/scheduler/descheduler.yaml)'),
    expect.stringContaining('(apply manifests/scheduler/descheduler.yaml)'),
  ]);
  room.now += 60_000;
  fault(itsEviction, AGAINST_BUDGET);
  await look();
  expect(room.told('DrainedPodHeld')[2]).toContain('its disruption budget allows no eviction now');
});

test('one whose eviction breaks the connection lets the others go, and is tried again when the caches must show what came of it', async () => {
  fault(itsEviction, 'reset');
  await look();
  expect(room.evictions()).toEqual([first(), ...api]);
  expect(room.told('DrainedPodHeld')).toEqual([expect.stringContaining(`${failed}the connection broke`)]);
  await look();
  expect(room.evictions().slice(3)).toEqual(others());
  room.api.fault = undefined;
  room.now += 59_999;
  await look();
  expect(room.evictions()).toHaveLength(5);
  room.now += 1;
  await look();
  expect(room.evictions().at(-1)).toBe(first());
});

test('pods whose evictions break the connection, after long, keep no others in the member, whatever their priority', async () => {
  const bad = [first(), api[0] ?? ''];
  const important = [...web, ...api];
  for (const name of important) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { priority: 9 } });
  const { pods } = room.process.view;
  await room.seen('it is known', () => important.every((name) => pods.get(`shop/${name}`)?.spec.priority === 9));
  const many = await room.run((await room.deploy('many', 9)).set, { east: 9 });
  room.api.fault = ({ path }) => {
    if (!bad.some((name) => path.endsWith(`/${name}/eviction`))) return undefined;
    // A webhook is slow, and a load balancer breaks the connection meanwhile.
    room.now += 20_000;
    return 'reset';
  };
  const good = (): string[] => room.evictions().filter((name) => !bad.includes(name));
  await look();
  expect(good()).toEqual(many);
  // Those of their own controllers have their turns when these may take up time again.
  const until = room.now + 1_000_000;
  while (room.now < until) {
    await look();
    room.now += 5_000;
  }
  expect(good().toSorted()).toEqual([...many, ...others(), ...api.slice(1)].toSorted());
});

test('one at whose look the host breaks the connection leaves the others their turns, whatever its priority', async () => {
  room.api.edit(`/api/v1/namespaces/shop/pods/${first()}`, { spec: { priority: 9 } });
  const { pods } = room.process.view;
  await room.seen('it is known', () => pods.get(`shop/${first()}`)?.spec.priority === 9);
  fault(itself, 'reset');
  await look();
  // Its own have their turns before it even when its own has come again.
  room.now += 60_000;
  await look();
  expect(room.evictions()).toEqual([...api, ...others()]);
});

test('no answer about the host as a whole is taken for one about a pod', async () => {
  fault(itself, { code: 503, reason: 'ServiceUnavailable', message: 'starting' });
  await expect(look()).rejects.toThrow('starting');
  expect(room.told('DrainedPodHeld')).toEqual([]);
});

test('many pods that a policy denies leave the others of their workload their turns, and are tried again after them', async () => {
  const { set } = await room.deploy('many', 9);
  const many = await room.run(set, { east: 9 });
  const denied = many.slice(0, 8);
  fault(({ path }) => denied.some((name) => path.endsWith(`/${name}/eviction`)), DENIED_BY_POLICY);
  const turns = (): string[] => room.evictions().filter((name) => many.includes(name));
  for (let s = 0; s < 50; s += 5) {
    await look();
    room.now += 5_000;
  }
  // One each round, until one goes.
  expect(turns()).toEqual([...many, ...many.slice(0, 2)]);
});

test('a pod by itself that the host takes long to refuse rests for twenty times as long', async () => {
  const { mover, view } = room.process;
  room.api.edit(`/api/v1/namespaces/shop/pods/${first()}`, { metadata: { ownerReferences: null } });
  const it = () => view.pods.get(`shop/${first()}`);
  await room.seen('it is by itself', () => it()?.metadata.ownerReferences === undefined);
  room.api.fault = (request) => {
    if (!itsEviction(request)) return undefined;
    room.now += 10_000;
    return WEBHOOK_DOWN;
  };
  const pod = it();
  if (pod === undefined) throw new Error('it is gone');
  const told = { cause: 'its gang waited', outcome: 'there', stays: 'it stays' };
  const wanted = { strategy: 'GangTimedOut', pod, from: 'east', recheck: () => undefined, leavesAnyway: true } as const;
  expect(await mover.move({ ...wanted, ...told }, new AbortController().signal)).toBe('workloadHeld');
  expect(mover.restMs(pod)).toBeGreaterThanOrEqual(200_000);
});

test('pods of one workload that the host takes long to refuse take their time from no others', async () => {
  room.api.fault = ({ path }) => {
    if (!web.some((name) => path.endsWith(`/${name}/eviction`))) return undefined;
    room.now += 10_000;
    return WEBHOOK_DOWN;
  };
  await look();
  expect(room.evictions()).toEqual([first(), ...api]);
  room.now += 199_000;
  await look();
  expect(room.evictions()).toEqual([first(), ...api]);
  room.now += 1_000;
  await look();
  expect(room.evictions().slice(3)).toHaveLength(1);
});

describe('an eviction that the host wants to be asked for again in ten seconds', () => {
  beforeEach(() => fault(itsEviction, BUDGET_BEHIND));
  const tries = (): number => room.evictions().filter((name) => name === first()).length;

  test('is not sent again before, and keeps no pod of others waiting', async () => {
    await look();
    expect(room.evictions()).toEqual([first(), ...api]);
    room.now += 9_999;
    await look();
    expect(tries()).toBe(1);
    room.now += 1;
    await look();
    expect(tries()).toBe(2);
  });

  test('is not sent at all when people have stopped all moves by then', async () => {
    await look();
    room.stopMoves('INC-7');
    room.now += 10_000;
    await look();
    expect(tries()).toBe(1);
  });
});

test('a pod whose rules are not known stays until they are, and says why', async () => {
  const why = vi.spyOn(room.process.placed, 'whyRulesUnknown');
  why.mockImplementation(({ metadata }) => (web.includes(metadata.name) ? 'nobody knows its rules' : undefined));
  await look();
  expect(room.evictions()).toEqual(api);
  expect(room.told('DrainedPodHeld')).toEqual([expect.stringContaining('nobody knows its rules')]);
  why.mockReturnValue(undefined);
  room.now += 15_000;
  await look();
  expect(room.evictions().toSorted()).toEqual([...api, ...web].toSorted());
});

describe('a move that nobody answers counts, as it may have happened, and once', () => {
  const uid = (): string => room.process.view.pods.get(`shop/${first()}`)?.metadata.uid ?? '';
  const counted = (): number => {
    const { placed, records } = room.process;
    const pod = room.pods().find(({ metadata }) => metadata.name === web[2]);
    if (pod === undefined) throw new Error('there is no pod');
    return records.withinAnHour(placed.rulesOf(pod).workload);
  };
  /** Of Deployment web only the first one is asked for. */
  const tryIt = async (): Promise<unknown> => {
    for (const pod of room.process.view.podsOn('east'))
      if (pod.metadata.uid !== uid()) room.process.mover.letRest(pod, 1e9);
    return await look().catch(() => undefined);
  };

  test.each<[string, Fault]>([
    ['the connection broke', 'reset'],
    ['the store of the host was too slow', { code: 500, message: 'etcdserver: request timed out' }],
  ])('when it did not: %s', async (_, answer) => {
    fault(itsEviction, answer);
    await tryIt();
    expect(counted()).toBe(1);
    room.now += 60_000;
    await tryIt();
    expect([counted(), room.evictions().length]).toEqual([1, 2]);
    room.api.fault = undefined;
    room.now += 60_000;
    await tryIt();
    expect([counted(), room.told('DrainedPodMoved').length]).toEqual([1, 2]);
  });

  test('when it did', async () => {
    fault(itsEviction, 'reset-after');
    await tryIt();
    expect(room.pods().map(({ metadata }) => metadata.name)).not.toContain(first());
    room.now += 60_000;
    await tryIt();
    expect(counted()).toBe(1);
  });

  test('and what was surely refused does not', async () => {
    fault(itsEviction, WEBHOOK_DOWN);
    await tryIt();
    expect([counted(), room.evictions().length]).toEqual([0, 1]);
  });
});

test('pods that are gone while the watch says nothing, however many, keep no other from its turn, and are read once in a minute', async () => {
  const gone = await room.run((await room.deploy('gone', 60)).set, { east: 60 });
  for (const name of gone) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { priority: 9 } });
  const { pods } = room.process.view;
  await room.seen('it is known', () => gone.every((name) => pods.get(`shop/${name}`)?.spec.priority === 9));
  const itsRead: About = ({ method, path }) => method === 'GET' && gone.some((name) => path.endsWith(`/pods/${name}`));
  fault(itsRead, { code: 404, reason: 'NotFound', message: 'pods "gone" not found' });
  const reads = (): number => room.api.seen.filter(itsRead).length;
  await look();
  await look();
  expect(room.evictions()).toEqual([...web, ...api]);
  for (let s = 0; s < 55; s += 5) {
    room.now += 5_000;
    await look();
  }
  expect(reads()).toBe(gone.length);
});
