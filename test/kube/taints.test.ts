import { describe, expect, it } from 'vitest';
import { firstUntolerated, toleratedMs, tolerates, toleratesForGood } from '../../src/kube/taints.ts';
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

  it.each(['Lt', 'Gt'])('knows no %s, as a cluster in which comparisons are off', (operator) => {
    const numeric: Taint = { key: 'sla', value: '5', effect: 'NoExecute' };
    for (const value of ['4', '5', '6']) expect(tolerates({ key: 'sla', operator, value }, numeric)).toBe(false);
  });
});

describe('of several tolerations of one taint the first counts, as for Kubernetes:', () => {
  const evicting: Taint = { key: 'down', effect: 'NoExecute' };
  const other = { key: 'up', operator: 'Exists', tolerationSeconds: 1 };
  const long = { key: 'down', operator: 'Exists', tolerationSeconds: 9 };
  const short = { operator: 'Exists', tolerationSeconds: 3 };
  const forGood = { operator: 'Exists' };
  it.each<[number, Toleration[]]>([
    [0, []],
    [0, [other]],
    [9, [other, long, short, forGood]],
    [3, [short, long]],
    [Infinity, [other, forGood, short]],
    [0, [{ ...short, tolerationSeconds: -1 }, forGood]],
  ])('%s s', (seconds, tolerations) => {
    expect(toleratedMs(tolerations, evicting)).toBe(seconds * 1_000);
    expect(toleratesForGood(tolerations, evicting)).toBe(seconds === Infinity);
  });
});

describe('firstUntolerated', () => {
  const soft: Taint = { key: 'slow', effect: 'PreferNoSchedule' };
  const evicting: Taint = { key: 'down', effect: 'NoExecute' };

  it('looks at the hard effects unless told otherwise', () => {
    const tolerations = [{ key: 'gpu', operator: 'Exists' }];
    expect(firstUntolerated(tolerations, [taint, soft])).toBeUndefined();
    expect(firstUntolerated(tolerations, [taint, soft, evicting])).toBe(evicting);
    expect(firstUntolerated([], [])).toBeUndefined();
    expect(firstUntolerated([], [soft])).toBeUndefined();
  });
});
