import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatLabelSelector, parseLabelSelector } from '../fixtures/memory-api/label-selector-parser.ts';
import { labelSelectorOf, matchesLabels, SelectorError } from '../../src/kube/label-selector.ts';

const matches = (text: string, labels: Record<string, string>) => matchesLabels(parseLabelSelector(text), labels);

describe('label selector, string form', () => {
  it.each([
    ['', { x: 'y' }],
    ['x=y', { x: 'y' }],
    ['x==y', { x: 'y' }],
    ['x=y,z=w', { x: 'y', z: 'w' }],
    ['x!=y,z!=w', { x: 'z', z: 'a' }],
    ['x!=y', {}],
    ['notin=in', { notin: 'in' }],
    ['x', { x: 'z' }],
    ['!x', { y: 'z' }],
    ['x>1', { x: '2' }],
    ['x<1', { x: '0' }],
    ['x in (a, b)', { x: 'b' }],
    ['x notin (a,b)', { x: 'c' }],
    ['x notin (a,b)', {}],
    ['x in ()', { x: '' }],
    ['x in (,a)', { x: '' }],
    ['x=', { x: '' }],
    ['x= ,y', { x: '', y: '1' }],
    ['  a = b , c != d , e in (x,y) , f notin (z) , g , !h ', { a: 'b', e: 'y', g: '' }],
    ['example.com/role=a', { 'example.com/role': 'a' }],
    ['!constructor,toString!=x', {}],
  ])('%j matches %j', (text, labels) => {
    expect(matches(text, labels as Record<string, string>)).toBe(true);
  });

  it.each([
    ['x=z', {}],
    ['x=y', { x: 'z' }],
    ['x=y,z=w', { x: 'w', z: 'w' }],
    ['x!=y,z!=w', { x: 'z', z: 'w' }],
    ['x', { y: 'z' }],
    ['!x', { x: 'z' }],
    ['x>1', { x: '0' }],
    ['x>1', { x: 'many' }],
    ['x>1', {}],
    ['x<1', { x: '9223372036854775808' }],
    ['x in (a,b)', {}],
    ['x notin (a,b)', { x: 'a' }],
    ['constructor', {}],
  ])('%j does not match %j', (text, labels) => {
    expect(matches(text, labels as Record<string, string>)).toBe(false);
  });

  it.each([
    ['x=a||y=b', 'not a label value'],
    ['x==a==b', '"," expected, "==" found'],
    ['!x=a', '"," expected, "=" found'],
    ['x<a', 'integer'],
    ['=a', 'a label key expected, "=" found'],
    ['a,', 'a label key expected, the end found'],
    [',a', 'a label key'],
    ['a,,b', 'a label key'],
    ['a b', 'an operator expected, "b" found'],
    ['a in b', '"(" expected'],
    ['a in (b', '"," or ")" expected, the end found'],
    ['a in (b c)', '"," or ")" expected, "c" found'],
    ['!', 'a label key expected, the end found'],
    ['a!', 'an operator'],
    ['-a=b', 'not a label key'],
    ['a=-b', 'not a label value'],
    ['A.com/x/y=b', 'not a label key'],
    [`${'k'.repeat(64)}=b`, 'not a label key'],
    [`a=${'v'.repeat(64)}`, 'not a label value'],
  ])('refuses %j', (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(SelectorError);
    expect(() => parseLabelSelector(text)).toThrow(message);
  });

  it('writes what it read', () => {
    for (const text of ['a=b', 'a!=b', 'a in (b,c)', 'a notin (b,c)', 'a,!b', 'a>1,b<2', '', 'x=,y in (,a)']) {
      expect(formatLabelSelector(parseLabelSelector(text))).toBe(text);
    }
    expect(formatLabelSelector(parseLabelSelector('a in (x)'))).toBe('a=x');
  });

  it('keeps its meaning through writing and reading', () => {
    const word = fc.constantFrom('a', 'b', 'in', 'notin', 'c.d/e');
    const value = fc.constantFrom('', '1', 'v', 'in');
    const requirement = fc.oneof(
      fc.tuple(word, fc.constantFrom('In', 'NotIn'), fc.array(value, { minLength: 1, maxLength: 3 })),
      fc.tuple(word, fc.constantFrom('Exists', 'DoesNotExist'), fc.constant<string[]>([])),
    );
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), fc.dictionary(word, value), (parts, labels) => {
        const selector = labelSelectorOf({
          matchExpressions: parts.map(([key, operator, values]) => ({ key, operator, values })),
        });
        const again = parseLabelSelector(formatLabelSelector(selector));
        expect(matchesLabels(again, labels)).toBe(matchesLabels(selector, labels));
      }),
    );
  });
});

describe('label selector, object form', () => {
  it('ANDs matchLabels and matchExpressions', () => {
    const selector = labelSelectorOf({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['a', 'b'] },
        { key: 'old', operator: 'DoesNotExist' },
      ],
    });
    expect(matchesLabels(selector, { app: 'web', tier: 'a' })).toBe(true);
    expect(matchesLabels(selector, { app: 'web', tier: 'a', old: '' })).toBe(false);
    expect(matchesLabels(selector, { app: 'api', tier: 'a' })).toBe(false);
  });

  it('matches everything when empty and nothing when absent', () => {
    expect(matchesLabels(labelSelectorOf({}), undefined)).toBe(true);
    expect(matchesLabels(undefined, { a: 'b' })).toBe(false);
  });

  it.each([
    [{ key: 'a', operator: 'In', values: [] }, 'at least one value'],
    [{ key: 'a', operator: 'Exists', values: ['x'] }, 'no value'],
    [{ key: 'a', operator: 'Gt', values: ['1'] }, 'not an operator of labels'],
    [{ key: 'a', operator: 'Near', values: ['1'] }, '"Near"'],
    [{ key: 'a b', operator: 'Exists' }, 'not a label key'],
  ])('refuses %j', (expression, message) => {
    expect(() => labelSelectorOf({ matchExpressions: [expression] })).toThrow(message);
  });
});
