import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import { mergePatch } from '../../src/kube/merge-patch.ts';
import { applyMergePatch } from '../fixtures/apply-merge-patch.ts';

describe('merge patch', () => {
  // The examples of RFC 7386, appendix A: target, patch, result.
  const rfc: [unknown, unknown, unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  it.each(rfc)('applies %j + %j', (target, patch, result) => {
    expect(applyMergePatch(target, patch)).toEqual(result);
  });

  it('holds only what differs, nulls for what is gone, and nothing when all is equal', () => {
    const from = { keep: { x: 1 }, gone: 'a', list: [1, 2], deep: { a: 1, b: { c: 2 } }, nil: null };
    const to = { keep: { x: 1 }, list: [2, 1], deep: { b: { c: 3 } }, fresh: {} };
    expect(mergePatch(from, to)).toEqual({ gone: null, list: [2, 1], deep: { a: null, b: { c: 3 } }, fresh: {} });
    expect(mergePatch(to, structuredClone(to))).toBeUndefined();
    expect(mergePatch({ a: null }, {})).toBeUndefined();
    expect(mergePatch({ a: 1 }, { a: undefined })).toEqual({ a: null });
  });

  it('treats every key as data', () => {
    const from = parseJson('{"labels":{"constructor":"x","toString":"y"}}') as object;
    const to = parseJson('{"labels":{"__proto__":"p","toString":"z","hasOwnProperty":"h"}}') as object;
    const patch = mergePatch(from, to);
    expect(parseJson(stringifyJson(patch))).toEqual(
      parseJson('{"labels":{"constructor":null,"__proto__":"p","toString":"z","hasOwnProperty":"h"}}'),
    );
    expect(stringifyJson(patch)).toContain('"__proto__":"p"');
    const result = applyMergePatch(from, patch);
    expect(jsonEqual(result, to)).toBe(true);
    expect(mergePatch({ labels: {} }, from)).toEqual({ labels: { constructor: 'x', toString: 'y' } });

    const deep = parseJson('{"__proto__":{"polluted":"yes"}}');
    const merged = applyMergePatch({}, deep) as Record<string, unknown>;
    expect(Object.hasOwn(merged, '__proto__')).toBe(true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
  });

  it('compares numbers beyond doubles by their text', () => {
    const one = parseJson('{"n":9007199254740993}') as object;
    expect(mergePatch(one, parseJson('{"n":9007199254740993}') as object)).toBeUndefined();
    expect(stringifyJson(mergePatch(one, parseJson('{"n":9007199254740992}') as object))).toBe(
      '{"n":9007199254740992}',
    );
    expect(stringifyJson(mergePatch({ n: 1 }, one))).toBe('{"n":9007199254740993}');
  });

  it('does not change its arguments', () => {
    const target = Object.freeze({ a: Object.freeze({ b: 1 }) });
    expect(applyMergePatch(target, { a: { b: null, c: 2 } })).toEqual({ a: { c: 2 } });
    expect(target).toEqual({ a: { b: 1 } });
  });

  const keys = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString');
  const leaf = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('x', 'y'), fc.boolean());
  const { object } = fc.letrec<{ object: unknown; value: unknown }>((tie) => ({
    object: fc
      .array(fc.tuple(keys, tie('value')), { maxLength: 4 })
      .map((entries) => parseJson(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${stringifyJson(v)}`).join()}}`)),
    value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(leaf, { maxLength: 3 }), tie('object')),
  }));

  it('leads from any object to any other', () => {
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = mergePatch(from as object, to as object);
        expect(jsonEqual(applyMergePatch(from, patch ?? {}), to)).toBe(true);
        expect(patch === undefined).toBe(jsonEqual(from, to));
      }),
      { numRuns: 500 },
    );
  });
});

describe('jsonEqual', () => {
  it('compares as JSON', () => {
    expect(jsonEqual({ a: 1, b: undefined }, { a: 1 })).toBe(true);
    expect(jsonEqual({ a: 1 }, { a: 1, b: undefined })).toBe(true);
    expect(jsonEqual({ a: 1 }, { a: 1, b: null })).toBe(false);
    expect(jsonEqual({ a: undefined, b: 1 }, { c: 1, b: 1 })).toBe(false);
    expect(jsonEqual([1, [2]], [1, [2]])).toBe(true);
    expect(jsonEqual([1], { 0: 1 })).toBe(false);
    expect(jsonEqual({}, [])).toBe(false);
    expect(jsonEqual(null, {})).toBe(false);
    expect(jsonEqual('1', 1)).toBe(false);
  });
});
