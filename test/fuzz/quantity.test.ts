import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { compare, formatQuantity, parseQuantity, QuantityError } from '../../src/kube/quantity.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { text } from './inputs.ts';

const digits = fc.oneof(fc.stringMatching(/^\d{0,5}$/), fc.stringMatching(/^\d{60,70}$/));
const almost = fc
  .tuple(
    fc.constantFrom('', '+', '-', ' ', '--'),
    digits,
    fc.constantFrom('', '.', '..', ','),
    digits,
    fc.constantFrom('', 'n', 'u', 'm', 'k', 'Ki', 'Ei', 'E', 'e3', 'e-9', 'E+64', 'e999999999', 'Ki ', 'mi', 'e', 'e+'),
  )
  .map((parts) => parts.join(''));

describe('quantities', () => {
  fuzz(
    'are read or refused, and say the same when they are written',
    fc.oneof(almost, text),
    { share: 3_000 },
    (input) => {
      const read = throwsOnly([QuantityError], () => parseQuantity(input));
      if (read === undefined) return;
      const again = parseQuantity(formatQuantity(read));
      // A BinarySI amount is capped at int64 whenever it is read.
      expect(compare(again, read)).toBe(0);
      expect(formatQuantity(again)).toBe(formatQuantity(read));
    },
  );
});
