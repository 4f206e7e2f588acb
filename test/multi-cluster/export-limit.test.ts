import { expect, test } from 'vitest';
import { oldestExports } from '../../src/multi-cluster/export-limit.ts';

const made = (name: string, second: number, uid: string) => ({
  metadata: { namespace: 'shop', name, uid, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
});

test('of too many exports the oldest count, and of two of one second always the same', () => {
  const found = [made('new', 3, 'a'), made('b', 2, 'b'), made('c', 2, 'c'), made('old', 1, 'd')];
  for (const some of [found, found.toReversed()]) expect([...oldestExports(some, 2)]).toEqual(['shop/old', 'shop/b']);
});
