import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CacheRoom } from '../../src/kube/cache-room.ts';

describe('the room for caches', () => {
  it('leaves one cluster nearly all, and each newcomer its part', () => {
    const room = new CacheRoom(1_000);
    const first = room.share();
    expect([first.fits(1_000), first.fits(1_001)]).toEqual([true, false]);
    first.change(500);
    const others = Array.from({ length: 4 }, () => room.share());
    // Half of the room, in five parts.
    for (const other of others) {
      expect(other.fits(100)).toBe(true);
      other.change(100);
    }
    expect(first.fits(100)).toBe(true);
    expect(first.fits(101)).toBe(false);
    first.change(100);
    expect(others[0]?.fits(1)).toBe(false);
    others[1]?.end();
    expect(others[0]?.fits(25)).toBe(true);
  });

  it('is never exceeded by more than newcomers’ parts, and nobody’s part is ever taken', () => {
    const step = fc.record({ who: fc.nat(7), bytes: fc.integer({ min: 1, max: 400 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 200 }), (members, steps) => {
        const room = new CacheRoom(1_000);
        const shares = Array.from({ length: members }, () => room.share());
        for (const { who, bytes } of steps) {
          const share = shares[who % members];
          if (share?.fits(bytes) === true) share.change(bytes);
        }
        expect(shares.reduce((sum, { used }) => sum + used, 0)).toBeLessThanOrEqual(1_000);
        for (const share of shares)
          expect(share.used > 500 / members || share.fits(500 / members - share.used)).toBe(true);
      }),
    );
  });
});
