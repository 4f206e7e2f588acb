import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson, RawNumber, stringifyJson } from '../../src/kube/json.ts';
import { heapBytes } from '../fixtures/heap.ts';

/** JSON text with integers of any size in any place, written without spaces as the API server does. */
const wireJson: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n }).map(String),
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
    fc.string({ unit: 'binary' }).map((s) => JSON.stringify(s)),
    fc.stringMatching(/^[0-9"\\]{0,40}$/).map((s) => JSON.stringify(s)),
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('value'), { maxLength: 5 }).map((items) => `[${items.join(',')}]`),
    fc
      .uniqueArray(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toJSON')), { maxLength: 5 })
      .chain((keys) => fc.tuple(...keys.map((key) => tie('value').map((value) => `${JSON.stringify(key)}:${value}`))))
      // JavaScript moves integer-like keys to the front; order is not part of what JSON means.
      .map((fields) => `{${fields.filter((field) => !/^"\d+"/.test(field)).join(',')}}`),
  ),
})).value;

describe('lossless JSON', () => {
  it('gives back what it read, byte for byte', () => {
    fc.assert(
      fc.property(wireJson, (text) => {
        expect(stringifyJson(parseJson(text))).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('is JSON.parse and JSON.stringify for everything that they can carry', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseJson(text)).toEqual(JSON.parse(text));
        expect(stringifyJson(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it.each([
    '9223372036854775807',
    '-9223372036854775808',
    '9007199254740993',
    '18446744073709551615',
    '100000000000000000000',
  ])('keeps the integer %s wherever it stands', (integer) => {
    for (const text of [integer, `[1,${integer}]`, `{"a":{"b":[{"c":${integer}}]},"d":"x"}`]) {
      expect(stringifyJson(parseJson(text))).toBe(text);
    }
    const value = (parseJson(`[ ${integer} ]`) as unknown[])[0];
    expect(String(value)).toBe(integer);
    expect(value instanceof RawNumber).toBe(integer !== '100000000000000000000'); // a double carries that one
  });

  it.each(['9007199254740991', '0.1234567890123456', '1e21', '-0.5', '1234567890123456'])(
    'uses an ordinary number for %s',
    (token) => {
      expect(parseJson(`[${token}]`)).toEqual([Number(token)]);
    },
  );

  it('finds a long number at every offset', () => {
    for (let pad = 0; pad < 64; pad++) {
      const text = `{"${'x'.repeat(pad)}":9007199254740993}`;
      expect(stringifyJson(parseJson(text))).toBe(text);
    }
  });

  it('keeps strings full of digits, quotes and escapes apart from numbers', () => {
    const value = { a: '12345678901234567890', b: '"12345678901234567890', c: '\\"]12345678901234567890', 'd"': 'ü\n' };
    const text = `{"n":9007199254740993,${JSON.stringify(value).slice(1)}`;
    expect(stringifyJson(parseJson(text))).toBe(text);
  });

  it('makes __proto__ an own property on both paths', () => {
    for (const extra of ['', ',"n":9007199254740993']) {
      const text = `{"__proto__":{"admin":true}${extra}}`;
      const parsed = parseJson(text) as Record<string, unknown>;
      expect(Object.hasOwn(parsed, '__proto__')).toBe(true);
      expect(parsed['admin']).toBeUndefined();
      expect(stringifyJson(parsed)).toBe(text);
    }
  });

  it('follows JSON.stringify beside raw numbers: undefined, dates, holes', () => {
    const raw = new RawNumber('9007199254740993');
    const value = { a: undefined, b: [undefined, raw], c: new Date(0), d: Number.NaN, e: raw };
    expect(stringifyJson(value)).toBe(
      '{"b":[null,9007199254740993],"c":"1970-01-01T00:00:00.000Z","d":null,"e":9007199254740993}',
    );
    expect(JSON.stringify({ e: raw })).toBe('{"e":9007199254740992}');
  });

  it.each(['', '{', '[1,]', '{"a":9007199254740993', '01', '<html>', '9007199254740993x'])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  it('does not fall off the stack', () => {
    const deep = `[9007199254740993,${'[{"]":'.repeat(50_000)}"\\"]"${'}]'.repeat(50_000)},9007199254740993]`;
    const read = parseJson(deep) as unknown[];
    expect([String(read[0]), String(read[2])]).toEqual(['9007199254740993', '9007199254740993']);
    expect(() => stringifyJson(read)).toThrow(new TypeError('the value is nested too deeply'));
    expect(() => stringifyJson(parseJson('['.repeat(50_000) + ']'.repeat(50_000)))).toThrow(TypeError);
  });

  it('holds nothing of a text but the values that were kept of it', () => {
    const part = (i: number): string => `"s${i}":"${'kept by itself '.repeat(2)}${i}","n${i}":9007199254740993${i}`;
    const before = heapBytes();
    const kept = Array.from({ length: 20 }, (_, i) => {
      const { [`s${i}`]: text, [`n${i}`]: number } = parseJson(
        `{${part(i)},"padding":"${'x'.repeat(1024 * 1024)}"}`,
      ) as Record<string, unknown>;
      return [text, number];
    });
    expect(heapBytes() - before).toBeLessThan(1024 * 1024);
    expect(kept).toHaveLength(20);
  });

  it('reads a long text with an escape in it', () => {
    const text = `{"n":9007199254740993,"s":"\\n${'x'.repeat(24_000_000)}"}`;
    expect(stringifyJson(parseJson(text)) === text).toBe(true);
  });
});
