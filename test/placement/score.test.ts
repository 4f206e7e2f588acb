import { describe, expect, it } from 'vitest';
import { placement } from '../../src/api/placement.ts';
import type { Candidate, Room } from '../../src/placement/candidates.ts';
import { scoreCandidates } from '../../src/placement/score.ts';
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
    weights: placement.parse({ scoreWeights: { ...zero, ...weights } }).scoreWeights,
    hysteresis: more.hysteresis ?? 0,
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
    expect(placement.parse({}).scoreWeights).toEqual({ locality: 40, freeRoom: 30, price: 20, images: 10 });
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

  it('counts images', () => {
    expect(score([candidate('a'), candidate('b')], { images: 1 }, { rooms: { a: { fits: 1, images: 75 } } })).toEqual({
      a: 75,
      b: 0,
    });
  });

  it('counts scores from outside, stretched and cut to their range', () => {
    const signals = { green: { a: 100, b: -100, c: 500 } };
    const weights = {
      signals: [
        { name: 'green', weight: 5 },
        { name: 'unknown', weight: 5 },
      ],
    };
    expect(score([candidate('a'), candidate('b'), candidate('c'), candidate('d')], weights, { signals })).toEqual({
      a: 50,
      b: 0,
      c: 50,
      d: 0,
    });
  });

  it('is a weighted mean, with a lead for what is in use, and never above 100', () => {
    const all = [
      candidate('local', {}, true),
      candidate('near', { region: 'eu', price: 0 }),
      candidate('far', { price: 1 }, true),
    ];
    expect(score(all, { locality: 3, price: 1 }, { hysteresis: 10 })).toEqual({ local: 100, near: 62.5, far: 10 });
    expect(score(all, {})).toEqual({ local: 0, near: 0, far: 0 });
  });
});
