import { describe, expect, it } from 'vitest';
import { splitConstraints } from '../../src/admission/split-constraints.ts';
import { CONSTRAINT_CASES } from './constraint-cases.ts';

const ssd = { key: 'disk', operator: 'In', values: ['ssd'] };
const required = (...nodeSelectorTerms: object[]): object => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

describe('what a pod asks of nodes', () => {
  it.each(CONSTRAINT_CASES)('$what', ({ annotations = {}, spec, split }) => {
    const steps = splitConstraints({ annotations }, spec as Record<string, unknown>);
    expect(steps.length > 0).toBe(split !== undefined);
    const written = steps.find(({ path }) => path.startsWith('/metadata/annotations'))?.value;
    const text = typeof written === 'object' ? Object.values(written as Record<string, string>)[0] : written;
    if (split !== undefined) expect(text).toBe(JSON.stringify(split.constraints));
  });

  it.each([
    ['a value', { nodeSelector: { disk: 's"d' } }],
    ['a key', { nodeSelector: { 'di\\sk': 'ssd' } }],
    ['a value of a line', required({ matchExpressions: [{ ...ssd, values: ['"}]'] }] })],
    ['an operator', required({ matchExpressions: [{ ...ssd, operator: '"' }] })],
    ['a line that is none', required({ matchExpressions: [3, ssd] })],
  ])('stays as it is with %s that cannot be', (_what, spec) => {
    expect(splitConstraints({}, spec as Record<string, unknown>)).toEqual([]);
  });
});
