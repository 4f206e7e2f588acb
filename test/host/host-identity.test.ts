import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { HostIdentity } from '../../src/host/host-identity.ts';
import type { Timers } from '../../src/kube/timers.ts';
import { Violations } from '../fixtures/violations.ts';

describe('the identity of the host', () => {
  let answers: (() => Promise<string>)[];
  let reads: number;
  let told: (string | undefined)[];
  let violations: Violations;
  let now: number;
  let identity: HostIdentity;
  let wake: { at: number; callback: () => void } | undefined;

  beforeEach(() => {
    answers = [];
    reads = 0;
    told = [];
    violations = new Violations();
    now = 0;
    wake = undefined;
    const timers: Timers = {
      start(callback, ms) {
        wake = { at: now + ms, callback };
        return () => undefined;
      },
    };
    identity = new HostIdentity({
      pinned: 'ours',
      read: async () => {
        reads += 1;
        return await (answers.shift()?.() ?? Promise.resolve('ours'));
      },
      invariants: violations,
      logger: pino({ level: 'silent' }),
      monotonic: () => now,
      timers,
    });
    identity.on(() => told.push(identity.problem));
  });
  const says =
    (uid: string): (() => Promise<string>) =>
    () =>
      Promise.resolve(uid);

  it('I3: another cluster stops everything, once, in words; the former one lets it go on by itself', async () => {
    expect(identity.problem).toBeUndefined();
    expect(await identity.confirm()).toBe(true);
    answers.push(says('theirs'), says('theirs'), says('theirs'));
    expect(await identity.confirm()).toBe(false);
    expect(identity.problem).toMatch(/another cluster answers in the place of the host .*theirs, not ours/);
    await expect(identity.expect()).rejects.toThrow(/another cluster answers/);
    expect(await identity.confirm()).toBe(false);
    expect(violations.seen).toEqual(['I3']);
    expect(await identity.confirm()).toBe(true);
    await identity.expect();
    expect(identity.problem).toBeUndefined();
    expect(told).toHaveLength(2);
    expect(told[1]).toBeUndefined();
  });

  it('a host that does not answer, or without a UID, is still what it was last', async () => {
    answers.push(says('theirs'), () => Promise.reject(new Error('cut off')), says(''));
    await identity.confirm();
    await expect(identity.confirm()).rejects.toThrow('cut off');
    await expect(identity.confirm()).rejects.toThrow('no UID');
    expect(identity.problem).toBeDefined();
    expect(await identity.confirm()).toBe(true);
  });

  it('an answer counts for those who asked before the question was sent', async () => {
    let answer: (uid: string) => void = () => undefined;
    answers.push(() => new Promise((resolve) => (answer = resolve)), says('theirs'));
    const first = identity.confirm();
    await Promise.resolve();
    await Promise.resolve();
    expect(reads).toBe(1);
    const later = [identity.confirm(), identity.confirm(), identity.confirm()];
    answer('ours');
    expect(await first).toBe(true);
    expect(await Promise.all(later)).toEqual([false, false, false]);
    expect(reads).toBe(2);
  });

  it('looks once a minute, not again where somebody else asked, and every 5 s while it is another', async () => {
    const stop = new AbortController();
    const running = identity.run(stop.signal);
    const next = async (): Promise<number> => {
      const due = wake;
      wake = undefined;
      now = due?.at ?? now;
      due?.callback();
      for (let i = 0; i < 20; i += 1) await Promise.resolve();
      return now;
    };
    expect([await next(), reads]).toEqual([60_000, 1]);
    now += 30_000;
    await identity.confirm();
    expect([await next(), reads]).toEqual([120_000, 2]);
    answers.push(says('theirs'), says('theirs'));
    expect([await next(), reads]).toEqual([150_000, 3]);
    expect([await next(), reads]).toEqual([155_000, 4]);
    expect([await next(), reads]).toEqual([160_000, 5]);
    expect(identity.problem).toBeUndefined();
    stop.abort();
    wake?.callback();
    await running;
  });
});
