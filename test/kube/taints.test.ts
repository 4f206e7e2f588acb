import { describe, expect, it } from 'vitest';
import { firstUntolerated, tolerates, toleratesAll } from '../../src/kube/taints.ts';
import type { Taint, Toleration } from '../../src/kube/taints.ts';

const taint: Taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };

describe('tolerates', () => {
  it.each<[Toleration, boolean]>([
    [{ key: 'gpu', operator: 'Equal', value: 'yes', effect: 'NoSchedule' }, true],
    [{ key: 'gpu', value: 'yes' }, true],
    [{ key: 'gpu', value: 'no' }, false],
    [{ key: 'gpu' }, false],
    [{ key: 'gpu', operator: 'Exists' }, true],
    [{ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }, false],
    [{ key: 'cpu', operator: 'Exists' }, false],
    [{ operator: 'Exists' }, true],
    [{ operator: 'Exists', effect: 'NoSchedule' }, true],
    [{ operator: 'Exists', effect: 'PreferNoSchedule' }, false],
    [{ key: '', operator: 'Exists', effect: '' }, true],
    [{ key: 'gpu', operator: 'Near', value: 'yes' }, false],
    [{}, false],
  ])('%j on gpu=yes:NoSchedule: %s', (toleration, expected) => {
    expect(tolerates(toleration, taint)).toBe(expected);
  });

  it('takes a missing value as the empty one', () => {
    expect(tolerates({ key: 'a' }, { key: 'a', effect: 'NoSchedule' })).toBe(true);
    expect(tolerates({ key: 'a', value: '' }, { key: 'a', value: '', effect: 'NoSchedule' })).toBe(true);
  });

  it.each([
    ['Lt', '4', '5', true],
    ['Lt', '5', '5', false],
    ['Gt', '6', '5', true],
    ['Gt', '-6', '5', false],
    ['Gt', '06', '5', false],
    ['Gt', '6', '+5', false],
    ['Gt', '6', 'x', false],
    ['Lt', '9223372036854775808', '5', false],
    ['Gt', '9223372036854775807', '9223372036854775806', true],
  ])('compares with %s only when switched on: taint %s, toleration %s', (operator, taintValue, value, expected) => {
    const numeric: Taint = { key: 'sla', value: taintValue, effect: 'NoExecute' };
    expect(tolerates({ key: 'sla', operator, value }, numeric, { comparisonOperators: true })).toBe(expected);
    expect(tolerates({ key: 'sla', operator, value }, numeric)).toBe(false);
  });
});

describe('toleratesAll', () => {
  const soft: Taint = { key: 'slow', effect: 'PreferNoSchedule' };
  const evicting: Taint = { key: 'down', effect: 'NoExecute' };

  it('looks at the hard effects unless told otherwise', () => {
    const tolerations = [{ key: 'gpu', operator: 'Exists' }];
    expect(toleratesAll(tolerations, [taint, soft])).toBe(true);
    expect(toleratesAll(tolerations, [taint, soft, evicting])).toBe(false);
    expect(firstUntolerated(tolerations, [taint, soft, evicting])).toBe(evicting);
    expect(toleratesAll(tolerations, [taint, soft], ['PreferNoSchedule'])).toBe(false);
    expect(toleratesAll([], [])).toBe(true);
    expect(toleratesAll([], [soft])).toBe(true);
  });
});
