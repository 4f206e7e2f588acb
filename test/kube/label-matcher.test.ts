import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { labelMatcher } from '../../src/kube/label-matcher.ts';
import { type LabelRequirement, labelSelectorOf, matchesLabels } from '../../src/kube/label-selector.ts';
import { countedLabels } from '../fixtures/counted-labels.ts';

const word = fc.constantFrom('a', 'b', 'c', 'constructor');
const values = fc.array(fc.constantFrom('x', 'y', 'z', ''), { minLength: 1, maxLength: 6 });
const requirement: fc.Arbitrary<LabelRequirement> = fc.oneof(
  fc.record({ key: word, operator: fc.constantFrom('In', 'NotIn'), values }),
  fc.record({ key: word, operator: fc.constantFrom('Exists', 'DoesNotExist'), values: fc.constant([]) }),
);

test('a compiled selector answers as one that is not', () => {
  const labels = fc.option(fc.dictionary(word, fc.constantFrom('x', 'y', '')), { nil: undefined });
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 12 }), labels, (selector, one) => {
      expect(labelMatcher(selector)(one)).toBe(matchesLabels(selector, one));
    }),
    { numRuns: 2_000 },
  );
  expect(labelMatcher(undefined)({})).toBe(false);
  expect(labelMatcher([])(undefined)).toBe(true);
});

test('how often it looks at labels depends on these, and not on the selector', () => {
  const matchExpressions = Array.from({ length: 20_000 }, (_, i) => ({ key: `a${i}`, operator: 'DoesNotExist' }));
  const covers = labelMatcher(labelSelectorOf({ matchExpressions }));
  const { labels, looks } = countedLabels({ app: 'x', tier: 'y' });
  expect(covers(labels)).toBe(true);
  expect(looks()).toBeLessThan(10);
  expect(covers({ app: 'x', a19999: '' })).toBe(false);
});
