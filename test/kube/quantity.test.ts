import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compare, formatQuantity, parseQuantity, QuantityError } from '../../src/kube/quantity.ts';
// Made with k8s.io/apimachinery/pkg/api/resource v0.36.3: canonical text and Cmp.
import golden from '../fixtures/quantity.json' with { type: 'json' };

interface Vector {
  in: string;
  out?: string;
  error?: boolean;
}

describe('quantity', () => {
  it('reads, rounds and writes as Go does', () => {
    for (const vector of golden.parse as Vector[]) {
      if (vector.error === true) {
        expect(() => parseQuantity(vector.in), vector.in).toThrow(QuantityError);
        continue;
      }
      const quantity = parseQuantity(vector.in);
      expect(formatQuantity(quantity), vector.in).toBe(vector.out);
    }
  });

  it('compares as Go does', () => {
    for (const { a, b, cmp } of golden.sums) {
      const [x, y] = [parseQuantity(a), parseQuantity(b)];
      expect(compare(x, y), `${a} <=> ${b}`).toBe(cmp);
    }
  });

  it('refuses texts without digits and absurd sizes', () => {
    for (const text of ['m', '.', '-', 'Ki', 'e3', '1e999999999', '9'.repeat(10_000)]) {
      expect(() => parseQuantity(text), text.slice(0, 20)).toThrow(QuantityError);
    }
    expect(formatQuantity(parseQuantity('1e-999999999'))).toBe('1e-9');
    expect(formatQuantity(parseQuantity('0e999999999'))).toBe('0');
  });

  it('keeps amounts above the largest suffix whole', () => {
    expect(formatQuantity(parseQuantity('1000E'))).toBe('1000E');
    expect(formatQuantity({ nanos: 2n ** 70n * 1_000_000_000n, format: 'BinarySI' })).toBe('1024Ei');
  });

  it('takes numbers as manifests may write them', () => {
    expect(formatQuantity(parseQuantity(2))).toBe('2');
    expect(formatQuantity(parseQuantity(0.1))).toBe('100m');
    expect(formatQuantity(parseQuantity(1e21))).toBe('1e21');
    expect(formatQuantity(parseQuantity(9007199254740993n))).toBe('9007199254740993');
    expect(() => parseQuantity(Number.NaN)).toThrow(QuantityError);
  });

  const quantities = fc.record({
    nanos: fc.bigInt({ min: -(2n ** 100n), max: 2n ** 100n }),
    format: fc.constantFrom('DecimalSI' as const, 'BinarySI' as const, 'DecimalExponent' as const),
  });

  it('round-trips every amount that its format can hold', () => {
    fc.assert(
      fc.property(quantities, (quantity) => {
        const text = formatQuantity(quantity);
        fc.pre(!text.endsWith('i') || quantity.nanos < 2n ** 92n);
        expect(parseQuantity(text).nanos).toBe(quantity.nanos);
        expect(formatQuantity(parseQuantity(text))).toBe(text);
      }),
    );
  });
});
