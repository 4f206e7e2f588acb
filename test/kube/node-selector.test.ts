import { describe, expect, it } from 'vitest';
import { matchesNodeSelectorTerms, nodeIsChosenBy } from '../../src/kube/node-selector.ts';
import type { NodeSelectorRequirement } from '../../src/kube/node-selector.ts';

const node = { metadata: { name: 'n1', labels: { zone: 'a', gen: '7', empty: '' } } };
const line = (key: string, operator: string, ...values: string[]): NodeSelectorRequirement => ({
  key,
  operator,
  ...(values.length > 0 ? { values } : {}),
});

describe('node selector terms', () => {
  it.each([
    [line('zone', 'In', 'a', 'b'), true],
    [line('zone', 'In', 'b'), false],
    [line('zone', 'NotIn', 'b'), true],
    [line('none', 'NotIn', 'b'), true],
    [line('zone', 'Exists'), true],
    [line('none', 'Exists'), false],
    [line('none', 'DoesNotExist'), true],
    [line('gen', 'Gt', '6'), true],
    [line('gen', 'Gt', '7'), false],
    [line('gen', 'Lt', '8'), true],
    [line('zone', 'Gt', '1'), false],
    [line('none', 'Lt', '1'), false],
    [line('empty', 'In', ''), true],
    [line('gen', 'Gt'), false],
    [line('gen', 'Gt', 'x'), false],
    [line('gen', 'Gt', '6.5'), false],
    [line('gen', 'Gt', '0x6'), false],
    [line('gen', 'Gt', '6'.padStart(63, '0')), true],
    [line('zone', 'Resembles', 'a'), false],
    [line('zone', 'In'), false],
  ])('%j: %s', (expression, expected) => {
    expect(matchesNodeSelectorTerms([{ matchExpressions: [expression] }], node)).toBe(expected);
  });

  it.each([
    [line('metadata.name', 'In', 'n1'), true],
    [line('metadata.name', 'In', 'n2'), false],
    [line('metadata.name', 'NotIn', 'n2'), true],
    [line('metadata.name', 'NotIn', 'n1'), false],
    [line('metadata.name', 'In', 'n1', 'n2'), false],
    [line('metadata.name', 'Exists'), false],
    [line('metadata.uid', 'In', 'n1'), false],
  ])('field %j: %s', (field, expected) => {
    expect(matchesNodeSelectorTerms([{ matchFields: [field] }], node)).toBe(expected);
  });

  it('ORs terms, ANDs lines, and matches nothing with nothing', () => {
    const a = line('zone', 'In', 'a');
    const b = line('zone', 'In', 'b');
    expect(matchesNodeSelectorTerms([{ matchExpressions: [b] }, { matchExpressions: [a] }], node)).toBe(true);
    expect(matchesNodeSelectorTerms([{ matchExpressions: [a, b] }], node)).toBe(false);
    expect(
      matchesNodeSelectorTerms([{ matchExpressions: [a], matchFields: [line('metadata.name', 'In', 'n2')] }], node),
    ).toBe(false);
    expect(matchesNodeSelectorTerms([{}], node)).toBe(false);
    expect(matchesNodeSelectorTerms([], node)).toBe(false);
  });

  it('needs both nodeSelector and required affinity', () => {
    const affinity = (key: string, value: string) => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [line(key, 'In', value)] }],
        },
      },
    });
    expect(nodeIsChosenBy({}, node)).toBe(true);
    expect(nodeIsChosenBy({ nodeSelector: { zone: 'a' } }, node)).toBe(true);
    expect(nodeIsChosenBy({ nodeSelector: { zone: 'b' } }, node)).toBe(false);
    expect(nodeIsChosenBy({ nodeSelector: { zone: 'a' }, affinity: affinity('gen', '7') }, node)).toBe(true);
    expect(nodeIsChosenBy({ nodeSelector: { zone: 'a' }, affinity: affinity('gen', '8') }, node)).toBe(false);
    expect(nodeIsChosenBy({ nodeSelector: { constructor: 'x' } }, { metadata: { name: 'n' } })).toBe(false);
  });
});
