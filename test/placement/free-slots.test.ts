import { expect, it } from 'vitest';
import { parseAmounts } from '../../src/kube/amounts.ts';
import { durationInWords, parseDuration } from '../../src/placement/duration.ts';
import { shortageInWords } from '../../src/placement/free-slots.ts';
import { listInWords, refusalInWords } from '../../src/placement/placement-refusal.ts';

const wanted = parseAmounts({ cpu: '4', memory: '8Gi', pods: 1 });

it.each([
  [{ cpu: '2', memory: '16Gi', pods: 10 }, 'no node has 4 cpu free (largest free slot 2 cpu)'],
  [
    { cpu: '1500m', memory: '1Gi', pods: 10 },
    'no node has 4 cpu free (largest free slot 1500m cpu), no node has 8Gi memory free (largest free slot 1Gi memory)',
  ],
  [{ cpu: '8', memory: '16Gi' }, 'no node may run another pod'],
  [{ cpu: '8', memory: '16Gi', pods: 3 }, 'no single node has 4 cpu and 8Gi memory free'],
  [undefined, 'no node can be used'],
])('with the largest slot %j: %s', (slot, words) => {
  expect(shortageInWords(wanted, slot === undefined ? undefined : parseAmounts(slot))).toBe(words);
});

it('names resources that no node has at all', () => {
  expect(shortageInWords(parseAmounts({ 'nvidia.com/gpu': 2 }), parseAmounts({ cpu: 8 }))).toBe(
    'no node has 2 nvidia.com/gpu free (largest free slot 0 nvidia.com/gpu)',
  );
});

it('begins with the cluster', () => {
  const message = shortageInWords(wanted, parseAmounts({ cpu: '2', memory: '16Gi', pods: 1 }));
  expect(refusalInWords({ cluster: 'east', reason: 'NoRoom', message })).toBe(
    'member east: no node has 4 cpu free (largest free slot 2 cpu)',
  );
  expect(
    refusalInWords({ cluster: 'local', reason: 'AtMax', message: 'the policy allows at most 1 pod in local' }),
  ).toBe('local: the policy allows at most 1 pod in local');
});

it.each([
  [[], ''],
  [['a'], 'a'],
  [['a', 'b'], 'a and b'],
  [['a', 'b', 'c'], 'a, b and c'],
  [['a', 'b', 'c', 'd', 'e', 'f'], 'a, b, c, d, e and f'],
  [['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'a, b, c, d, e and 2 more'],
])('lists %j', (words, text) => {
  expect(listInWords(words)).toBe(text);
});

it.each([
  ['90s', 90_000, '90s'],
  ['2m', 120_000, '2m'],
  ['1h30m', 5_400_000, '90m'],
  ['2h', 7_200_000, '2h'],
  ['2h5m1s', 7_501_000, '2h 6m'],
])('reads %s', (text, milliseconds, words) => {
  expect(parseDuration(text)).toBe(milliseconds);
  expect(durationInWords(milliseconds)).toBe(words);
});
