import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson } from '../../src/kube/json.ts';
import { applyPatchOperation, type PatchOperation } from '../../src/overrides/json-patch.ts';
import { formatPointer, parsePointer, valueAt } from '../../src/overrides/json-pointer.ts';
import { OverrideError } from '../../src/overrides/override-error.ts';

const apply = (document: unknown, operator: PatchOperation['operator'], path: string, value?: unknown): unknown =>
  applyPatchOperation(document, { operator, path, ...(value === undefined ? {} : { value }) });

describe('applyPatchOperation', () => {
  it.each<[string, unknown, PatchOperation['operator'], string, unknown, unknown]>([
    // RFC 6902, appendix A.
    ['A.1 adds a member', { foo: 'bar' }, 'add', '/baz', 'qux', { baz: 'qux', foo: 'bar' }],
    ['A.2 adds an element', { foo: ['bar', 'baz'] }, 'add', '/foo/1', 'qux', { foo: ['bar', 'qux', 'baz'] }],
    ['A.3 removes a member', { baz: 'qux', foo: 'bar' }, 'remove', '/baz', undefined, { foo: 'bar' }],
    ['A.4 removes an element', { foo: ['bar', 'qux', 'baz'] }, 'remove', '/foo/1', undefined, { foo: ['bar', 'baz'] }],
    ['A.5 replaces a value', { baz: 'qux', foo: 'bar' }, 'replace', '/baz', 'boo', { baz: 'boo', foo: 'bar' }],
    ['A.10 adds a nested object', { foo: 'bar' }, 'add', '/child', { g: {} }, { foo: 'bar', child: { g: {} } }],
    ['A.14 knows escapes', { '/': 9, '~1': 10 }, 'replace', '/~01', 11, { '/': 9, '~1': 11 }],
    ['A.16 adds an array', { foo: ['bar'] }, 'add', '/foo/-', ['abc', 'def'], { foo: ['bar', ['abc', 'def']] }],
    // RFC 6901.
    ['the empty name', { '': 1 }, 'replace', '/', 2, { '': 2 }],
    ['a name with a slash', { 'a/b': 1 }, 'remove', '/a~1b', undefined, {}],
    ['a number as a name', { 1: 'a' }, 'replace', '/1', 'b', { 1: 'b' }],
    ['a dash as a name', {}, 'add', '/-', 1, { '-': 1 }],
    // The rest.
    ['add replaces a member', { a: 1 }, 'add', '/a', 2, { a: 2 }],
    ['add at the end by its index', { a: [1] }, 'add', '/a/1', 2, { a: [1, 2] }],
    ['add at the front', { a: [1] }, 'add', '/a/0', 0, { a: [0, 1] }],
    ['null is a value', { a: 1 }, 'replace', '/a', null, { a: null }],
    ['false is a value', { a: 1 }, 'add', '/b', false, { a: 1, b: false }],
    ['replaces an element', { a: [1, 2] }, 'replace', '/a/1', 3, { a: [1, 3] }],
    ['goes through lists', { a: [{ b: 1 }] }, 'replace', '/a/0/b', 2, { a: [{ b: 2 }] }],
    ['the whole document', { a: 1 }, 'replace', '', [1], [1]],
  ])('%s', (_what, document, operator, path, value, expected) => {
    const copy = structuredClone(document);
    expect(apply(document, operator, path, value)).toEqual(expected);
    expect(document).toEqual(copy);
  });

  it.each<[string, unknown, PatchOperation['operator'], string, unknown, string]>([
    ['A.12 adding below nothing', { foo: 'bar' }, 'add', '/baz/bat', 'qux', '/baz'],
    ['removing what is not there', { a: 1 }, 'remove', '/b', undefined, '/b'],
    ['replacing what is not there', { a: 1 }, 'replace', '/b', 1, '/b'],
    ['going through a scalar', { a: 'text' }, 'add', '/a/length', 1, '/a/length'],
    ['going through null', { a: null }, 'add', '/a/b', 1, '/a/b'],
    ['an index beyond the end', { a: [1] }, 'add', '/a/2', 1, '/a/2'],
    ['replacing the element after the last', { a: [1] }, 'replace', '/a/1', 1, '/a/1'],
    ['removing the element after the last', { a: [1] }, 'remove', '/a/-', undefined, '/a/-'],
    ['a leading zero', { a: [1, 2] }, 'replace', '/a/01', 1, '/a/01'],
    ['a negative index', { a: [1, 2] }, 'replace', '/a/-1', 1, '/a/-1'],
    ['an exponent', { a: [1, 2] }, 'replace', '/a/1e0', 1, '/a/1e0'],
    ['a name in a list', { a: [1] }, 'add', '/a/length', 9, '/a/length'],
    ['a huge index', { a: [1] }, 'add', '/a/99999999999', 9, '/a/99999999999'],
    ['a path that is no pointer', {}, 'add', 'a', 1, 'a'],
    ['a bad escape', {}, 'add', '/a~2', 1, '/a~2'],
    ['adding nothing', {}, 'add', '/a', undefined, '/a'],
    ['removing everything', {}, 'remove', '', undefined, ''],
  ])('refuses %s and says where', (_what, document, operator, path, value, where) => {
    let error: unknown;
    try {
      apply(document, operator, path, value);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(OverrideError);
    expect((error as OverrideError).path).toBe(where);
  });

  it('never reaches a prototype', () => {
    for (const path of ['/__proto__/polluted', '/constructor/prototype/polluted', '/a/__proto__/polluted']) {
      expect(() => apply({ a: {} }, 'add', path, true)).toThrow('nothing at that path');
      expect(() => apply({ a: {} }, 'replace', path, true)).toThrow('nothing at that path');
    }
    expect(() => apply({}, 'remove', '/toString')).toThrow('nothing at that path');
    const after = apply({ a: 1 }, 'add', '/__proto__', { polluted: true }) as Record<string, unknown>;
    expect(Object.getPrototypeOf(after)).toBe(Object.prototype);
    expect(Object.keys(after)).toEqual(['a', '__proto__']);
    expect(JSON.stringify(apply(after, 'add', '/__proto__/x', 1))).toBe('{"a":1,"__proto__":{"polluted":true,"x":1}}');
    expect('polluted' in {}).toBe(false);
  });

  it('shares every part that it does not change', () => {
    const document = { a: { b: [{ c: 1 }, { d: 2 }] }, e: { f: 3 } };
    const after = apply(document, 'replace', '/a/b/0/c', 9) as typeof document;
    expect(after.e).toBe(document.e);
    expect(after.a.b[1]).toBe(document.a.b[1]);
    expect(after.a.b[0]).toEqual({ c: 9 });
  });

  it('keeps numbers that no double can carry, and does not look inside them', () => {
    const document = parseJson('{"a":12345678901234567890,"b":1}');
    const after = apply(document, 'replace', '/b', 2) as { a: unknown };
    expect(String(after.a)).toBe('12345678901234567890');
    expect(() => apply(document, 'add', '/a/text', '1')).toThrow('nothing at that path');
  });

  it('reads back what it put anywhere', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.array(fc.string(), { minLength: 1, maxLength: 4 }),
        fc.jsonValue(),
        (base, names, value) => {
          const pointer = formatPointer(names);
          expect(parsePointer(pointer)).toEqual(names);
          let after: unknown;
          try {
            after = apply({ root: base }, 'add', pointer, value);
          } catch (error) {
            expect(error).toBeInstanceOf(OverrideError);
            return;
          }
          if (names.at(-1) !== '-') expect(valueAt(after, names)).toEqual(value);
        },
      ),
    );
  });
});
