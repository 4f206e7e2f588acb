import { describe, expect, it } from 'vitest';
import { parsePlacementScore, type PlacementScore } from '../../src/api/placement-score.ts';
import { signalsAt } from '../../src/placement/signals.ts';
import { GOOD_SCORE, WRONG_SCORES } from './wrong-scores.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const scored = (
  name: string,
  clusterName: string,
  scores: Record<string, number>,
  validUntil?: string,
): PlacementScore => ({
  metadata: { name },
  spec: {
    clusterName,
    scores: Object.entries(scores).map(([score, value]) => ({ name: score, value })),
    ...(validUntil === undefined ? {} : { validUntil }),
  },
});
const plain = (objects: PlacementScore[], now = NOW): object => {
  const { signals, until } = signalsAt(objects, now);
  return {
    until,
    ...Object.fromEntries([...signals].map(([name, values]) => [name, Object.fromEntries(values)])),
  };
};

describe('scores from outside', () => {
  it('count by name and cluster', () => {
    const objects = [scored('a', 'east', { carbon: 40, latency: -5 }), scored('b', 'west', { carbon: -100 })];
    expect(plain(objects)).toEqual({
      until: Infinity,
      carbon: { east: 40, west: -100 },
      latency: { east: -5 },
    });
  });
  it('count until they end, and no longer', () => {
    const objects = [
      scored('a', 'east', { carbon: 40 }, '2026-01-01T01:00:10+01:00'),
      scored('b', 'west', { carbon: 1 }),
    ];
    expect(plain(objects)).toEqual({ until: NOW + 10_000, carbon: { east: 40, west: 1 } });
    expect(plain(objects, NOW + 10_000)).toEqual({ until: Infinity, carbon: { west: 1 } });
  });
  it('of two for one cluster the first in the alphabet counts, while it is valid', () => {
    const objects = [scored('b', 'east', { carbon: 1 }), scored('a', 'east', { carbon: 2 }, '2026-01-01T00:00:01Z')];
    expect(plain(objects)).toMatchObject({ carbon: { east: 2 } });
    expect(plain(objects, NOW + 1_000)).toMatchObject({ carbon: { east: 1 } });
  });
});

describe('a PlacementScore', () => {
  it('is read as it is written', () => {
    expect(parsePlacementScore({ metadata: { name: 'a' }, spec: GOOD_SCORE } as PlacementScore)).toEqual({
      score: { metadata: { name: 'a' }, spec: GOOD_SCORE },
    });
  });
  it.each(WRONG_SCORES)('with $what cannot be read', ({ wrong, field }) => {
    const parsed = parsePlacementScore({
      metadata: { name: 'a' },
      spec: { ...GOOD_SCORE, ...wrong },
    } as PlacementScore);
    expect('problems' in parsed ? parsed.problems.join() : '').toContain(field);
  });
});
