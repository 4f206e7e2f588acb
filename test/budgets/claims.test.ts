import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  allowanceOf,
  claimed,
  type ClaimFacts,
  type Claims,
  formatClaims,
  nextClaims,
  parseClaims,
} from '../../src/budgets/claims.ts';

/** `east:2,west:0!`: the exclamation mark says that a node there is being drained. */
function claimsOf(text: string): Claims {
  const parts = text === '' ? [] : text.split(',');
  return new Map(
    parts.map((part) => {
      const [, name = '', allowed = '', draining = ''] = /^(\w+):(\d+)(!?)$/.exec(part) ?? [];
      return [name, { allowed: Number(allowed), draining: draining === '!' }];
    }),
  );
}

function inWords(claims: Claims): string {
  return [...claims].map(([name, { allowed, draining }]) => `${name}:${allowed}${draining ? '!' : ''}`).join(',');
}

const calm: Omit<ClaimFacts, 'claims'> = {
  member: 'east',
  allowed: 2,
  pods: 4,
  expected: 8,
  draining: false,
  used: 0,
  waitedMs: 0,
  overMs: 0,
};

describe('what a member claims of the evictions that the host allows', () => {
  it.each<[string, string, Partial<ClaimFacts>, string]>([
    ['its part', '', {}, 'east:1'],
    ['one at least', '', { allowed: 1, pods: 1 }, 'east:1'],
    ['no more than it has pods', '', { allowed: 8, pods: 1, expected: 1 }, 'east:1'],
    ['nothing when there is nothing', '', { allowed: 0 }, ''],
    ['nothing when others have all', 'west:2', {}, 'west:2'],
    ['what it has, when there is less for a while', 'east:2,west:1', { allowed: 0, overMs: 29_999 }, 'east:2,west:1'],
    [
      'less, when it is the last and there is less for long',
      'west:1,east:2',
      { allowed: 2, overMs: 30_000 },
      'west:1,east:1',
    ],
    ['what it has, when the last one gives way', 'east:2,west:1', { allowed: 2, overMs: 30_000 }, 'east:2,west:1'],
    ['nothing when its pods are gone', 'east:1,west:1', { pods: 0 }, 'west:1'],
    ['all when it is drained', '', { draining: true }, 'east:2!'],
    ['what is left when it is drained', 'west:1', { draining: true }, 'west:1,east:1!'],
    ['its turn when it is drained and nothing is left', 'west:2', { draining: true }, 'west:2,east:0!'],
    ['what it has, without hurry, when the drain is over', 'east:2!', {}, 'east:2'],
    ['no turn when the drain is over', 'west:2,east:0!', {}, 'west:2'],
    ['nothing when a member that is drained waits', 'east:1,west:0!', { allowed: 1 }, 'west:0!'],
    ['the rest when a member that is drained waits', 'east:2,west:0!', { allowed: 2 }, 'east:1,west:0!'],
    [
      'what it has used and the host has not counted, whoever waits',
      'east:1,west:0!',
      { allowed: 1, used: 1 },
      'east:1,west:0!',
    ],
    ['no more than it has, for what it has used', 'east:1', { allowed: 1, pods: 0, used: 2 }, 'east:1'],
    ['nothing that is meant for one that waits', 'west:0!', { allowed: 1 }, 'west:0!'],
    ['one of several while another drain waits', 'east:2!,west:0!', { draining: true }, 'east:1!,west:0!'],
    [
      'the last one while another drain waits',
      'east:1!,west:0!',
      { draining: true, allowed: 1, waitedMs: 59_999 },
      'east:1!,west:0!',
    ],
    [
      'the last one, but not for ever',
      'east:1!,west:0!',
      { draining: true, allowed: 1, waitedMs: 60_000 },
      'west:0!,east:0!',
    ],
    ['nothing before its turn', 'west:0!,east:0!', { draining: true, allowed: 1 }, 'west:0!,east:0!'],
    ['one when it is its turn', 'east:0!,west:0!', { draining: true, allowed: 1 }, 'east:1!,west:0!'],
  ])('%s', (_what, before, facts, after) => {
    const claims = claimsOf(before);
    const next = nextClaims({ ...calm, claims, ...facts });
    expect(inWords(next)).toBe(after);
    // No write without a change.
    if (before === after) expect(next).toBe(claims);
  });
});

const names = ['east', 'west', 'north'];
const anyClaims = fc
  .uniqueArray(fc.record({ name: fc.constantFrom(...names), allowed: fc.nat(5), draining: fc.boolean() }), {
    selector: ({ name }) => name,
  })
  .map((all): Claims => new Map(all.map(({ name, ...claim }) => [name, claim])));

describe('what members may evict together', () => {
  it('is never more than the host allows, whatever they claim', () => {
    fc.assert(
      fc.property(anyClaims, fc.nat(8), (claims, allowed) => {
        const sum = names.reduce((all, name) => all + allowanceOf(claims, name, allowed), 0);
        expect(sum).toBeLessThanOrEqual(allowed);
      }),
    );
  });

  it('is all of it, when claims are not more', () => {
    fc.assert(
      fc.property(anyClaims, fc.nat(5), (claims, spare) => {
        const allowed = claimed(claims) + spare;
        for (const name of names) expect(allowanceOf(claims, name, allowed)).toBe(claims.get(name)?.allowed ?? 0);
      }),
    );
  });

  it('is claimed only as far as it is free', () => {
    const facts = fc.record({
      member: fc.constantFrom(...names),
      claims: anyClaims,
      allowed: fc.nat(6),
      pods: fc.nat(6),
      expected: fc.nat(12),
      draining: fc.boolean(),
      used: fc.nat(2),
      waitedMs: fc.constantFrom(0, 60_000),
      overMs: fc.constantFrom(0, 30_000),
    });
    fc.assert(
      fc.property(facts, (given) => {
        const next = nextClaims(given);
        const own = next.get(given.member)?.allowed ?? 0;
        if (own > (given.claims.get(given.member)?.allowed ?? 0))
          expect(claimed(next)).toBeLessThanOrEqual(given.allowed);
        // Nobody writes for others.
        for (const [name, claim] of given.claims) if (name !== given.member) expect(next.get(name)).toEqual(claim);
      }),
    );
  });

  it('comes to rest, with all that is allowed claimed where there are pods enough', () => {
    const facts = fc.record({
      claims: anyClaims,
      allowed: fc.nat(6),
      pods: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 3 }),
      order: fc.array(fc.nat(2), { minLength: 30, maxLength: 30 }),
    });
    fc.assert(
      fc.property(facts, ({ claims: before, allowed, pods, order }) => {
        const expected = pods.reduce((all, one) => all + one);
        const step = (claims: Claims, i: number): Claims =>
          nextClaims({
            member: names[i] ?? '',
            claims,
            allowed,
            pods: pods[i] ?? 0,
            expected,
            draining: false,
            used: 0,
            waitedMs: 0,
            overMs: claimed(claims) > allowed ? 30_000 : 0,
          });
        let claims = before;
        for (const i of [...order, 0, 1, 2, 0, 1, 2, 0, 1, 2]) claims = step(claims, i);
        expect(claimed(claims)).toBeLessThanOrEqual(allowed);
        if (allowed > 0) expect(claimed(claims)).toBeGreaterThan(0);
        for (const i of [0, 1, 2]) expect(step(claims, i)).toBe(claims);
      }),
    );
  });
});

describe('the annotation with claims', () => {
  it('reads what was written, in the same order', () => {
    fc.assert(
      fc.property(anyClaims, (claims) => {
        expect([...parseClaims(formatClaims(claims))]).toEqual([...claims]);
      }),
    );
    expect(formatClaims(new Map())).toBeUndefined();
  });

  it.each([
    undefined,
    '',
    '[',
    'null',
    '7',
    '"east"',
    '{"east":1}',
    '{"east":{"allowed":-1}}',
    '{"east":{"allowed":1.5}}',
    'x'.repeat(20_000),
  ])('takes nothing from %j', (text) => {
    expect(parseClaims(text).size).toBe(0);
  });
});
