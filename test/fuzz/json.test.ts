import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { canonicalJson } from '../../src/kube/canonical-json.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import { mergePatch } from '../../src/kube/merge-patch.ts';
import { applyMergePatch } from '../fixtures/apply-merge-patch.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed, fieldsOf, json, text } from './inputs.ts';

const jsonText = fc.oneof(
  text,
  fc.tuple(json.map(stringifyJson), fc.array(fc.tuple(fc.nat(), text), { maxLength: 2 })).map(([whole, inserts]) => {
    let result = whole;
    for (const [at, piece] of inserts) {
      const place = at % (result.length + 1);
      result = result.slice(0, place) + piece.slice(0, 9) + result.slice(place + 1);
    }
    return result;
  }),
);

describe('JSON', () => {
  fuzz('reads what JSON.parse reads, and nothing else', jsonText, { share: 2_000 }, (input) => {
    let plain: unknown;
    const valid = throwsOnly([SyntaxError], () => ((plain = JSON.parse(input) as unknown), true)) === true;
    const read = throwsOnly([SyntaxError], () => ({ value: parseJson(input) }));
    expect(read !== undefined).toBe(valid);
    if (read !== undefined) expect(JSON.stringify(read.value)).toBe(JSON.stringify(plain));
  });

  fuzz('comes back as it went', json, { share: 2_000 }, (value) => {
    const written = stringifyJson(value);
    const again = parseJson(written);
    expect(stringifyJson(again)).toBe(written);
    expect(jsonEqual(again, value)).toBe(true);
    expect(canonicalJson(again)).toBe(canonicalJson(value));
  });

  const two = fc
    .tuple(json, json, fc.boolean())
    .chain(([a, b, alike]) => fc.tuple(changed({ root: a }), alike ? changed({ root: a }) : fc.constant({ root: b })));
  fuzz('a merge patch makes the one of the other', two, { share: 2_000 }, ([from, to]) => {
    if (typeof from !== 'object' || typeof to !== 'object' || from === null || to === null) return;
    const [a, b] = [fieldsOf(Object.entries(from)), fieldsOf(Object.entries(to))];
    const patch = mergePatch(a, b);
    const patched = patch === undefined ? a : applyMergePatch(a, patch);
    expect(mergePatch(patched as object, b)).toBeUndefined();
  });
});
