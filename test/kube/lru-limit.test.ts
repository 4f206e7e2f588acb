import { LRUCache } from 'lru-cache';
import { expect, it } from 'vitest';
import { atMost } from '../../src/kube/lru-limit.ts';

it('keeps as many entries as it says, those that were used last', () => {
  const cache = new LRUCache<string, number>(atMost(3));
  for (const [value, key] of ['a', 'b', 'c'].entries()) cache.set(key, value);
  cache.get('a');
  cache.set('d', 3);
  expect([...cache.keys()].toSorted()).toEqual(['a', 'c', 'd']);
});

it('forgets with time, too, when it is told to', () => {
  let now = 1;
  const cache = new LRUCache<string, number>({ ...atMost(3), ttl: 10, ttlResolution: 0, perf: { now: () => now } });
  cache.set('a', 1);
  now = 11;
  expect(cache.get('a')).toBe(1);
  now = 12;
  expect(cache.get('a')).toBeUndefined();
});
