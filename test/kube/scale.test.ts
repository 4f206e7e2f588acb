import { beforeAll, describe, expect, it } from 'vitest';
import { samplePod } from '../../bench/sample-pod.ts';
import { decodeText } from '../../src/kube/body-text.ts';
import { parseJson } from '../../src/kube/json.ts';
import { Scale } from '../../src/kube/scale.ts';
import { heapBytes } from '../fixtures/heap.ts';

const TEXT_BYTES = 512 * 1024;

let count = 0;
const unique = (): string => `z${(count++).toString(36)}`;
const repeated = (times: number, what: () => string): string => Array.from({ length: times }, what).join(',');
const object = (fields: number, name: (i: number) => string, value = '0'): string => {
  let i = 0;
  return `{${repeated(fields, () => `"${name(i++)}":${value}`)}}`;
};
const list = (length: number, element: () => string): string => `[${repeated(length, element)}]`;

/** The same names, in another order each time. */
function permuted(fields: number): string {
  let seed = count++;
  const names = Array.from({ length: fields }, (_, i) => String.fromCodePoint(97 + i));
  const order: string[] = [];
  while (names.length > 0) {
    order.push(...names.splice(seed % names.length, 1));
    seed = Math.floor(seed / 3) + 7 * order.length;
  }
  return object(fields, (i) => order[i] ?? '');
}

/** JSON that takes many times its text, or what a simple count of its parts would say. */
const HOSTILE: Record<string, () => string> = {
  'long text': () => `"${unique()}${'x'.repeat(1_000)}"`,
  'long text of two bytes a character': () => `"${unique()}${'\u4E16'.repeat(1_000)}"`,
  'the same, escaped': () => `"${unique()}${String.raw`\u4e16`.repeat(1_000)}"`,
  'texts of two bytes a character': () => list(50, () => `"${unique()}${'\u4E16'.repeat(12)}"`),
  'short texts of two bytes a character': () => list(50, () => `"${unique()}\u4E16"`),
  'short texts': () => list(50, () => `"${unique()}"`),
  'no text': () => list(50, () => '""'),
  'one unique name': () => object(1, unique),
  '3 unique names': () => object(3, unique),
  '20 unique names': () => object(20, unique),
  '60 unique names': () => object(60, unique),
  '65 unique names': () => object(65, unique),
  '100 unique names': () => object(100, unique),
  '127 unique names': () => object(127, unique),
  '128 unique names': () => object(128, unique),
  '200 unique names': () => object(200, unique),
  '1,100 unique names': () => object(1_100, unique),
  'long unique names': () => object(5, () => unique() + 'n'.repeat(200)),
  'unique names of two bytes a character': () => object(5, () => unique() + '\u4E16'.repeat(100)),
  '200 names': () => object(200, (i) => `n${i}`),
  '400 names': () => object(400, (i) => `n${i}`),
  '10 names in any order': () => permuted(10),
  '20 names in any order': () => permuted(20),
  'ever more of the same names': () => object(1 + (count++ % 60), (i) => `n${i}`),
  'one number as a name': () => list(20, () => '{"35":0}'),
  'one large number as a name': () => list(20, () => `{"${1_000_000 + count++}":0}`),
  'numbers as names': () => object(50, (i) => String(1_000_000 + i * 1_000)),
  'numbers far apart as names': () => object(10, (i) => String(i * 28)),
  'numbers and names': () => object(20, (i) => (i % 2 === 0 ? String(i * 28) : unique())),
  'empty objects': () => list(100, () => '{}'),
  'empty lists': () => list(100, () => '[]'),
  'objects with one field': () => list(100, () => '{"a":0}'),
  'lists of one': () => list(100, () => '[0]'),
  'short integers': () => list(1_000, () => '1'),
  'long integers': () => `["",${repeated(1_000, () => '3000000000')}]`,
  'integers that no double carries': () => list(100, () => '9007199254740993'),
  'negative zeros': () => `["",${repeated(1_000, () => '-0')}]`,
  fractions: () => list(1_000, () => '1.5'),
  'fields with fractions': () => list(100, () => '{"a":1.5}'),
  nulls: () => list(1_000, () => 'null'),
  'lists in lists': () => '['.repeat(80) + ']'.repeat(80),
  'objects in objects': () => `${'{"a":'.repeat(80)}0${'}'.repeat(80)}`,
};

/** What is on the heap, and what the scale says, for so much text. */
function weighed(make: () => string): { taken: number; said: number } {
  const texts: Buffer[] = [];
  for (let bytes = 0; bytes < TEXT_BYTES; bytes += texts.at(-1)?.length ?? 0) texts.push(Buffer.from(make()));
  const kept: unknown[] = Array.from({ length: texts.length }, () => null);
  const scale = new Scale();
  const before = heapBytes();
  let said = 0;
  for (const [i, text] of texts.entries()) {
    kept[i] = parseJson(decodeText(text));
    said += scale.weigh(kept[i]);
  }
  const taken = heapBytes() - before;
  expect(kept).toHaveLength(texts.length);
  return { taken, said: said + scale.bytes };
}

/**
 * What is said of what is taken. Once is not enough: the process has other things on its heap, too, which come and go, such as code
 * that becomes faster while it runs.
 */
function part(make: () => string): number {
  const parts = Array.from({ length: 5 }, () => {
    const { taken, said } = weighed(make);
    return said / taken;
  });
  return parts.toSorted((a, b) => a - b)[2] ?? 0;
}

// Code that runs for the first time is put on the heap, and again when it is made faster.
beforeAll(() => {
  for (const make of Object.values(HOSTILE)) weighed(make);
});

describe('the weight of parsed JSON', () => {
  it.each(Object.entries(HOSTILE))(
    'is what it takes, or more: %s',
    (_what, make) => {
      expect(part(make)).toBeGreaterThan(0.9);
    },
    30_000,
  );

  it('is not much more than it takes for pods as there are', () => {
    const pods = part(() => JSON.stringify(samplePod(count++)));
    expect(pods).toBeGreaterThan(0.9);
    expect(pods).toBeLessThan(2.2);
  });

  it('has no end where the nesting has none', () => {
    let deep: unknown = {};
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(new Scale().weigh(deep)).toBe(Infinity);
  });
});
