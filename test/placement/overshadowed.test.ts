import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePlacementPolicy, type PlacementPolicy } from '../../src/api/placement-policy.ts';
import { whyOvershadowed } from '../../src/placement/overshadowed.ts';
import { compilePolicy, selectPolicy } from '../../src/placement/policy-selection.ts';

const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment' };

function policy(
  name: string,
  selectors: readonly object[],
  more: { priority?: number; namespace?: string } = {},
): PlacementPolicy {
  const { priority = 0, namespace = 'shop' } = more;
  const resourceSelectors = selectors.map((one) => ({ ...DEPLOYMENT, ...one }));
  const spec = { resourceSelectors, priority, placement: {} };
  const raw = { metadata: { name, namespace }, spec };
  const parsed = parsePlacementPolicy(raw);
  if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
  return parsed.policy;
}

const byLabel = { labelSelector: { matchLabels: { tier: 'front' } } };

test.each([
  ['the same kind', policy('a', [{}]), policy('b', [{}])],
  ['the same name', policy('a', [{ name: 'web' }]), policy('b', [{ name: 'web' }])],
  ['the same labels', policy('a', [byLabel]), policy('b', [byLabel])],
  [
    'the whole kind, with a higher priority',
    policy('z', [{}], { priority: 1 }),
    policy('b', [{ name: 'web' }, byLabel]),
  ],
])('another one comes first by %s', (_what, before, after) => {
  expect(whyOvershadowed(after, [before, after])).toMatch(/^[az] comes before it and selects all that it does/);
  expect(whyOvershadowed(before, [before, after])).toBeUndefined();
});

test.each([
  ['selects more', policy('a', [{ name: 'web' }]), policy('b', [{ name: 'web' }, { name: 'api' }])],
  ['speaks more closely', policy('a', [{}]), policy('b', [{ name: 'web' }])],
  ['is more important', policy('a', [{}]), policy('b', [{}], { priority: 1 })],
  ['is in another namespace', policy('a', [{}]), policy('b', [{}], { namespace: 'bank' })],
])('a policy that %s decides', (_what, before, after) => {
  expect(whyOvershadowed(after, [before, after])).toBeUndefined();
});

describe('what is told is true', () => {
  const names = ['web', 'api'];
  const labels = [{ tier: 'front' }, { tier: 'back' }];
  const selector = fc.oneof(
    fc.constant({}),
    fc.constantFrom(...names).map((name) => ({ name })),
    fc.constantFrom(...labels).map((matchLabels) => ({ labelSelector: { matchLabels } })),
  );
  const policies = fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      selectors: fc.array(selector, { minLength: 1, maxLength: 3 }),
      priority: fc.integer({ min: 0, max: 1 }),
    }),
    { minLength: 1, maxLength: 4, selector: ({ name }) => name },
  );

  test('of no workload such a policy is chosen', () => {
    fc.assert(
      fc.property(policies, (drawn) => {
        const all = drawn.map(({ name, selectors, priority }) => policy(name, selectors, { priority }));
        const compiled = all.map((one) => compilePolicy(one)).filter((one) => 'rankOf' in one);
        expect(compiled).toHaveLength(all.length);
        for (const name of names)
          for (const own of labels) {
            const object = { ...DEPLOYMENT, metadata: { name, namespace: 'shop', labels: own } };
            const { chosen } = selectPolicy([object], compiled, undefined);
            const winner = all.find(({ metadata }) => metadata.name === chosen?.source.name);
            if (winner !== undefined) expect(whyOvershadowed(winner, all)).toBeUndefined();
          }
      }),
      { numRuns: 500 },
    );
  });
});
