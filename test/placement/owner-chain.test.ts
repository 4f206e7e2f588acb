import { expect, it } from 'vitest';
import { rolloutOf } from '../../src/placement/owner-chain.ts';

const set = (revision: string) => ({
  metadata: { name: 's', annotations: { 'deployment.kubernetes.io/revision': revision } },
});

it('the number of a roll-out is a whole number, whatever people write', () => {
  expect(rolloutOf(set('7'))).toBe(7);
  for (const text of ['1e999', 'Infinity', 'NaN', '-1', '', '1.5', '9007199254740993'])
    expect(rolloutOf(set(text))).toBe(0);
});
