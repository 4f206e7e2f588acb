import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Candidate, Room } from '../../src/placement/candidates.ts';
import { scoreCandidates, scoringOf } from '../../src/placement/score.ts';
import { cluster } from './fleet.ts';

const candidate = (name: string, more: Parameters<typeof cluster>[1] = {}, inUse = false): Candidate => ({
  cluster: cluster(name, more),
  name,
  tier: 0,
  room: 1,
  whyNoRoom: '',
  here: 0,
  inUse,
});
const score = (
  candidates: Candidate[],
  weights: object,
  more: { rooms?: Record<string, Room>; signals?: Record<string, Record<string, number>>; hysteresis?: number } = {},
): Record<string, number> => {
  const zero = { locality: 0, freeRoom: 0, price: 0, images: 0 };
  const scores = scoreCandidates(candidates, {
    scoring: scoringConfig.parse({ weights: { ...zero, ...weights }, hysteresis: more.hysteresis ?? 0 }),
    rooms: new Map(Object.entries(more.rooms ?? {})),
    signals: new Map(
      Object.entries(more.signals ?? {}).map(([name, values]) => [name, new Map(Object.entries(values))]),
    ),
    homeRegion: 'eu',
  });
  return Object.fromEntries(scores);
};

describe('score', () => {
  it('has defaults', () => {
    const weights = { locality: 40, freeRoom: 30, price: 20, images: 10, signals: [] };
    expect(scoringConfig.parse({})).toEqual({ weights, hysteresis: 10 });
  });

  it('follows the configuration where a policy says nothing else', () => {
    const green = { signals: [{ name: 'green', weight: 5 }] };
    const configured = scoringConfig.parse({ weights: { price: 70, ...green }, hysteresis: 3 });
    expect(scoringOf(configured, undefined)).toEqual(configured);
    expect(scoringOf(configured, { weights: { locality: 1 }, hysteresis: 0 })).toEqual({
      weights: { locality: 1, freeRoom: 30, price: 70, images: 10, ...green },
      hysteresis: 0,
    });
  });

  it('counts nearness', () => {
    const all = [candidate('local'), candidate('near', { region: 'eu' }), candidate('far', { region: 'us' })];
    expect(score(all, { locality: 1 })).toEqual({ local: 100, near: 50, far: 0 });
  });

  it('counts room in proportion, the unknown in the middle', () => {
    const rooms = { a: { fits: 50 }, b: { fits: 10 }, c: { fits: undefined } };
    expect(score([candidate('a'), candidate('b'), candidate('c'), candidate('d')], { freeRoom: 1 }, { rooms })).toEqual(
      {
        a: 100,
        b: 20,
        c: 50,
        d: 50,
      },
    );
  });

  it('counts price from the cheapest to the dearest; local is paid for already', () => {
    const all = [
      candidate('a', { price: 1 }),
      candidate('b', { price: 3 }),
      candidate('c', { price: 5 }),
      candidate('d'),
    ];
    expect(score(all, { price: 1 })).toEqual({ a: 100, b: 50, c: 0, d: 0 });
    expect(score([candidate('local'), candidate('a', { price: 4 })], { price: 1 })).toEqual({ local: 100, a: 0 });
    expect(score([candidate('a'), candidate('b')], { price: 1 })).toEqual({ a: 0, b: 0 });
    expect(score([candidate('a', { price: 2 }), candidate('b', { price: 2 })], { price: 1 })).toEqual({
      a: 100,
      b: 100,
    });
  });

  it('counts images, the unknown in the middle', () => {
    expect(score([candidate('a'), candidate('b')], { images: 1 }, { rooms: { a: { fits: 1, images: 75 } } })).toEqual({
      a: 75,
      b: 50,
    });
  });

  it('counts scores from outside, stretched and cut to their range; without one as 0 of -100 to 100', () => {
    const signals = { green: { a: 100, b: -100, c: 500 } };
    const weights = {
      signals: [
        { name: 'green', weight: 5 },
        { name: 'unknown', weight: 5 },
      ],
    };
    expect(score([candidate('a'), candidate('b'), candidate('c'), candidate('d')], weights, { signals })).toEqual({
      a: 75,
      b: 25,
      c: 75,
      d: 50,
    });
  });

  it('is a weighted mean, with a lead for what is in use', () => {
    const all = [
      candidate('local', {}, true),
      candidate('near', { region: 'eu', price: 0 }),
      candidate('far', { price: 1 }, true),
    ];
    expect(score(all, { locality: 3, price: 1 }, { hysteresis: 10 })).toEqual({ local: 110, near: 62.5, far: 10 });
    expect(score(all, {})).toEqual({ local: 0, near: 0, far: 0 });
  });

  const part = fc.record({
    fits: fc.nat(100),
    images: fc.integer({ min: 0, max: 100 }),
    price: fc.nat(50),
    green: fc.integer({ min: -100, max: 100 }),
    near: fc.boolean(),
  });
  type Part = typeof part extends fc.Arbitrary<infer T> ? T : never;
  const weights = fc.record({
    locality: fc.nat(100),
    freeRoom: fc.nat(100),
    price: fc.nat(100),
    images: fc.nat(100),
    signals: fc.constant([{ name: 'green', weight: 7 }]),
  });
  const scores = (parts: readonly Part[], used: number | undefined, w: object, hysteresis: number): number[] => {
    const name = (index: number): string => `m${String(index)}`;
    const all = parts.map(({ price, near }, index) =>
      candidate(name(index), { price, ...(near ? { region: 'eu' } : {}) }, index === used),
    );
    const rooms = Object.fromEntries(parts.map(({ fits, images }, index) => [name(index), { fits, images }]));
    const green = Object.fromEntries(parts.map((one, index) => [name(index), one.green]));
    const found = score(all, w, { rooms, signals: { green }, hysteresis });
    return parts.map((_, index) => found[name(index)] ?? Number.NaN);
  };
  const parts = fc.array(part, { minLength: 2, maxLength: 6 });

  it('is from 0 to 100 without the lead', () => {
    fc.assert(
      fc.property(parts, weights, (all, w) => {
        for (const one of scores(all, undefined, w, 0)) expect(one >= 0 && one <= 100).toBe(true);
      }),
    );
  });

  it('keeps the cluster in use ahead through every change that makes no other one better by more than the hysteresis', () => {
    fc.assert(
      fc.property(parts, fc.nat(5), fc.integer({ min: 1, max: 100 }), weights, (all, index, hysteresis, w) => {
        const used = index % all.length;
        const plain = scores(all, undefined, w, 0);
        const lead = scores(all, used, w, hysteresis);
        const own = plain[used] ?? 0;
        const others = plain.filter((_, at) => at !== used);
        const best = Math.max(...others);
        const stays = lead.every((one, at) => at === used || one < (lead[used] ?? 0));
        // Two decimals are told.
        if (best - own < hysteresis - 0.02) expect(stays).toBe(true);
        if (best - own > hysteresis + 0.02) expect(stays).toBe(false);
      }),
    );
  });

  it('never falls when something of the cluster becomes better, and no other gains by it', () => {
    fc.assert(
      fc.property(parts, weights, fc.nat(5), part, (all, w, at, better) => {
        const index = at % all.length;
        const before = all[index];
        if (before === undefined) return;
        const after = all.map((one, place) =>
          place === index
            ? { ...one, green: Math.max(one.green, better.green), images: Math.max(one.images, better.images) }
            : one,
        );
        const [old, now] = [scores(all, undefined, w, 0), scores(after, undefined, w, 0)];
        expect((now[index] ?? 0) >= (old[index] ?? 0)).toBe(true);
        for (const place of all.keys()) if (place !== index) expect(now[place]).toBe(old[place]);
      }),
    );
  });
});
