import { beforeEach, describe, expect, test } from 'vitest';
import { EndTries, type Judgement, type Turn } from '../../src/descheduler/end-tries.ts';
import { RoomForOthers } from '../../src/descheduler/room-for-others.ts';
import type { EndStep } from '../../src/descheduler/release-step.ts';
import { TransportError } from '../../src/kube/errors.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const SET = 'shop/set';
const { signal } = new AbortController();
let now = 0;
let tries: EndTries;
let done: string[] = [];

beforeEach(() => {
  now = 1_000_000;
  done = [];
  tries = new EndTries({ report: { stays: () => undefined }, monotonic: () => now });
});

const pod = (name: string): Pod => ({ metadata: { name, uid: name }, spec: { containers: [] } });
const turn = (names: string[], tookMs: number, more: Partial<Turn> = {}): Turn => ({
  pods: names.map(pod),
  take: async () => {
    done.push(names.join('+'));
    now += tookMs;
    await Promise.resolve();
  },
  ...more,
});

test('that of several pods together comes after all others, also where these had no turn at the look before', async () => {
  const together = (): Turn => turn(['a', 'b'], 0, { isLast: true });
  expect(await tries.take(SET, [turn(['c'], 2_000), together()], signal)).toBe(true);
  expect(await tries.take(SET, [together(), turn(['d'], 0)], signal)).toBe(false);
  expect(done).toEqual(['c', 'd', 'a+b']);
});

test('that of several pods together has its turn before any other one has a second one, however long each takes', async () => {
  const due = (): Turn[] => [turn(['a'], 2_000), turn(['b'], 2_000), turn(['c', 'd'], 2_000, { isLast: true })];
  for (let look = 0; look < 6; look += 1) {
    await tries.take(SET, due(), signal);
    // As long as pods rest that the host was slow about.
    now += 40_000;
  }
  expect(done).toEqual(['a', 'b', 'c+d', 'a', 'b', 'c+d']);
});

test('nothing is to be judged anew at once when all had their turns, however long that took', async () => {
  expect(await tries.take(SET, [turn(['a'], 60_000)], signal)).toBe(false);
});

describe('what takes long', () => {
  const step: EndStep = { pod: pod('a'), kind: 'evict', why: 'Replaced' };
  const judgement: Judgement = { goesOn: () => true, counts: () => true };
  const hangs = (): never => {
    now += 10_000;
    throw new TransportError({ cluster: 'host', kind: 'timeout', method: 'GET', path: '/', detail: 'no answer' });
  };

  test('before anything is written says nothing of the pods like it', async () => {
    const write = async (_: Pod, begins: () => void): Promise<void> => {
      await Promise.resolve(hangs());
      begins();
    };
    const tried = tries.attempt({ setKey: SET, step, judgement }, async () => await Promise.resolve(step.pod), write);
    await expect(tried).rejects.toThrow('no answer');
    expect(tries.restMs(SET)).toBe(0);
  });

  test('when it is written lets them rest', async () => {
    const write = async (_: Pod, begins: () => void): Promise<void> => {
      begins();
      await Promise.resolve(hangs());
    };
    const tried = tries.attempt({ setKey: SET, step, judgement }, async () => await Promise.resolve(step.pod), write);
    await expect(tried).rejects.toThrow('no answer');
    expect(tries.restMs(SET)).toBe(200_000);
  });
});

test('of many that are to make room ten are tried in vain, in however many looks, and then none for 15 seconds', async () => {
  const others = new RoomForOthers({ monotonic: () => now, clock: () => now });
  const steps = Array.from({ length: 30 }, (_, index) => ({ pod: pod(String(index)) }));
  const began = now;
  let tried = 0;
  const tryOne = async (): Promise<undefined> => {
    tried += 1;
    now += 300;
    await Promise.resolve();
  };
  while (now - began < 60_000) {
    const room = others.look(SET, { released: [], owned: [], missing: 3 });
    const judgedAt = now;
    const goesOn = (): boolean => now - judgedAt < 1_000;
    await others.make(SET, steps, room, tryOne, () => undefined, goesOn);
    now += 100;
  }
  expect(tried).toBe(40);
});
