import { describe, expect, it } from 'vitest';
import {
  escapeFieldValue,
  formatFieldSelector,
  matchesFields,
  parseFieldSelector,
} from '../../src/kube/field-selector.ts';
import { SelectorError } from '../../src/kube/label-selector.ts';

const pod = {
  metadata: { name: 'web-0', namespace: 'shop' },
  spec: { nodeName: 'east', hostNetwork: true },
  status: { phase: 'Running', restarts: 3 },
};

describe('field selector', () => {
  it.each([
    ['', true],
    ['metadata.name=web-0', true],
    ['metadata.name==web-0,spec.nodeName=east', true],
    ['spec.nodeName!=west', true],
    ['spec.nodeName!=east', false],
    ['status.phase=Running,status.phase!=Failed', true],
    ['status.phase=Running,metadata.name=other', false],
    ['spec.hostNetwork=true', true],
    ['status.restarts=3', true],
    ['spec.missing=', true],
    ['spec.missing!=x', true],
    ['spec=x', false],
    ['metadata.constructor=', true],
    ['metadata.name.length=', true],
  ])('%j on a pod: %s', (text, expected) => {
    expect(matchesFields(parseFieldSelector(text), pod)).toBe(expected);
  });

  it('reads and writes escaped values', () => {
    const value = 'a,b=c\\d';
    const text = `metadata.name=${escapeFieldValue(value)},x!=1`;
    const selector = parseFieldSelector(text);
    expect(selector).toEqual([
      { path: 'metadata.name', equal: true, value },
      { path: 'x', equal: false, value: '1' },
    ]);
    expect(formatFieldSelector(selector)).toBe(text);
    expect(matchesFields(selector, { metadata: { name: value } })).toBe(true);
  });

  it.each(['a', 'a=b=c', 'a=b\\', 'a=b\\x', '=a', '!=a'])('refuses %j', (text) => {
    expect(() => parseFieldSelector(text)).toThrow(SelectorError);
  });
});
