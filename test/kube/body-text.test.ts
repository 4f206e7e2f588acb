import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { samplePod } from '../../bench/sample-pod.ts';
import { decodeText, jsonText } from '../../src/kube/body-text.ts';

const cut = (json: string): string => jsonText(Buffer.from(json), false);

/** What the function promises, said of values. */
function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([key, field]) => key !== 'managedFields' || !Array.isArray(field));
  return Object.fromEntries(kept.map(([key, field]) => [key, without(field)]));
}

describe('the text of a body without managed fields', () => {
  it('is that of a pod that was never written by anybody', () => {
    const pod = samplePod(1);
    const { managedFields: _, ...metadata } = pod.metadata as typeof pod.metadata & { managedFields: unknown };
    expect(cut(JSON.stringify({ type: 'ADDED', object: pod }))).toBe(
      JSON.stringify({ type: 'ADDED', object: { ...pod, metadata } }),
    );
  });

  it('lacks them in every item of a list, wherever they stand', () => {
    const items = [
      { metadata: { managedFields: [{ manager: 'a]"' }] } },
      { metadata: { managedFields: [], name: 'first' } },
      { metadata: { name: 'middle', managedFields: [[['{'], ']']], uid: '1' } },
      { metadata: { name: 'none' } },
    ];
    expect(JSON.parse(cut(JSON.stringify({ items })))).toEqual(without({ items }));
  });

  it.each([
    ['a text that speaks of them', { note: '{"managedFields":["a"],"b":1}', end: 'x,"managedFields":[' }],
    ['a name that ends like theirs', { 'a"managedFields': ['a'], 'b\\': ['"managedFields":['] }],
    ['no list', { metadata: { managedFields: null }, data: { managedFields: 'a' } }],
    ['other alphabets', { name: 'grün ☕', list: ['é'] }],
  ])('leaves %s as it is', (_what, value) => {
    const text = JSON.stringify(value);
    expect(cut(text)).toBe(text);
  });

  it.each(['{"managedFields":[', '{"a":1,"managedFields":[{"b":"', '{"managedFields":["\\', '', '"managedFields":[]'])(
    'leaves what is no JSON as it is: %s',
    (text) => expect(cut(text)).toBe(text),
  );

  it('is that of the value without them, whatever it is', () => {
    const key = fc.oneof(fc.constantFrom('managedFields', 'metadata', '"managedFields":['), fc.string());
    const text = fc.oneof(fc.constantFrom(',"managedFields":[', '\\', '"', '[', ']', '☕'), fc.string());
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        text,
        fc.integer(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4 }),
      ),
    }));
    const property = fc.property(value, (any) => {
      const json = JSON.stringify(any);
      expect(JSON.parse(cut(json))).toEqual(without(JSON.parse(json)));
      expect(decodeText(Buffer.from(json))).toBe(json);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});
