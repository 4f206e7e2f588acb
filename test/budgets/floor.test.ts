import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FloorFacts, wantedFloor } from '../../src/budgets/floor.ts';

describe('how many copies have to stay healthy in a member', () => {
  it.each<
    [string, [copies: number, healthy: number, evictable: number, current: number | undefined], string, boolean?]
  >([
    ['all at first, also those that are still to become healthy', [3, 0, 0, undefined], 'now 3'],
    ['all but those that may be evicted', [3, 3, 1, undefined], 'now 2'],
    ['as it is', [3, 3, 1, 2], 'never 2'],
    ['as it is after an eviction used the allowance up', [2, 2, 0, 2], 'never 2'],
    ['as it is when pods are gone: nothing can be evicted', [1, 1, 0, 2], 'never 2'],
    ['more at once when too many could be evicted', [3, 3, 0, 2], 'now 3'],
    ['more at once for those that are still to become healthy, while the budget is not met', [3, 1, 0, 1], 'now 3'],
    ['as it is for them when it is met without them', [3, 2, 0, 2], 'never 2', true],
    ['more at once when one more is healthy', [4, 4, 1, 2], 'now 3'],
    ['fewer after a while when more may be evicted', [3, 3, 1, 3], 'later 2'],
    ['no fewer when none is healthy that could be evicted', [3, 0, 1, 3], 'never 3'],
    ['so that unhealthy ones can be evicted from a budget that is met', [3, 2, 0, 3], 'later 2', true],
    ['as it is when a budget that is not met keeps unhealthy ones', [3, 2, 0, 3], 'never 3'],
  ])('%s', (_what, [copies, healthy, evictable, current], expected, isMet = false) => {
    const { when, minAvailable } = wantedFloor({ copies, healthy, evictable, isMet, current });
    expect(`${when} ${minAvailable}`).toBe(expected);
  });

  const facts: fc.Arbitrary<FloorFacts> = fc
    .record({
      copies: fc.nat(9),
      unhealthy: fc.nat(9),
      evictable: fc.nat(9),
      isMet: fc.boolean(),
      current: fc.option(fc.nat(12), { nil: undefined }),
    })
    .map(({ unhealthy, ...rest }) => ({ ...rest, healthy: Math.max(0, rest.copies - unhealthy) }));

  it('never lets more be evicted than may be, whether it is written at once, later or never', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const { minAvailable, when } = wantedFloor(given);
        expect(given.healthy - minAvailable).toBeLessThanOrEqual(given.evictable);
        if (when !== 'now') expect(given.healthy - (given.current ?? 0)).toBeLessThanOrEqual(given.evictable);
      }),
    );
  });

  it('is good for ever once it is written', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const { minAvailable } = wantedFloor(given);
        const again = wantedFloor({ ...given, current: minAvailable });
        expect(wantedFloor({ ...given, current: again.minAvailable }).when).toBe('never');
      }),
    );
  });
});
