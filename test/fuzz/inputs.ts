import fc from 'fast-check';
import { RawNumber } from '../../src/kube/json.ts';

/** Names that every object inherits, or that mean something to somebody. */
export const key: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '__proto__',
      'constructor',
      'prototype',
      'toString',
      'valueOf',
      'toJSON',
      'then',
      'length',
      'name',
      'metadata',
      'a/b',
      'a~1b',
      '-',
      '0',
      '',
      '$ref',
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
);

/** One text many times: what takes time by the square of its length shows with these. */
const long: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(
      'a',
      ' ',
      '/',
      '\\',
      '"',
      '\\"',
      '{',
      '[',
      '1',
      'a.',
      'a=',
      ',',
      '\n',
      '%2f',
      '${',
      '🙂',
      '-',
      '(',
      '~',
    ),
    fc.constantFrom(100, 3_000, 60_000),
    fc.constantFrom('', '!', '"', '\n', 'x'),
  )
  .map(([piece, times, end]) => piece.repeat(times) + end);

export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  { weight: 3, arbitrary: fc.string({ maxLength: 20 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom('', 'null', '2026-01-01T00:00:00Z', '1Gi', '500m', 'True', 'Running', '\ud800'),
  },
  { weight: 1, arbitrary: long },
);

const rawNumber = fc.constantFrom('9223372036854775807', '-0.10000000000000000001').map((n) => new RawNumber(n));

const scalar: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(0, -1, 1.5, 2 ** 53, 1e308, -1e308),
  fc.integer(),
  rawNumber,
);

/** Lists or objects within each other, many times. */
const deep: fc.Arbitrary<unknown> = fc.tuple(fc.constantFrom(10, 400), fc.boolean()).map(([depth, list]) => {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = list ? [value] : { a: value };
  return value;
});

/** Anything that JSON can say, keys like `__proto__` included: as parseJson gives it. */
export const json: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  object: fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map(fieldsOf),
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    { weight: 5, arbitrary: scalar },
    { weight: 2, arbitrary: tie('object') },
    { weight: 2, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    { weight: 1, arbitrary: deep },
  ),
})).value;

/** An object with these own fields, whatever their names. */
export function fieldsOf(pairs: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [name, value] of pairs) setOwn(object, name, value);
  return object;
}

function setOwn(object: object, name: string | number, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

interface Change {
  at: number;
  how: 'replace' | 'remove' | 'add' | 'repeat';
  name: string;
  value: unknown;
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'replace', 'remove', 'add', 'repeat'),
  name: key,
  value: json,
});

/**
 * The samples, each with a few changes anywhere in it: a field that is something else, is missing, is there too often or
 * unknown. Few changes get past what looks at an object first.
 */
export function changed<T = unknown>(...samples: readonly unknown[]): fc.Arbitrary<T> {
  return fc.tuple(fc.constantFrom(...samples), fc.array(change, { maxLength: 3 })).map(([sample, changes]) => {
    let document: unknown = copyOf(sample);
    for (const one of changes) document = apply(document, one);
    return document as T;
  });
}

function apply(document: unknown, { at, how, name, value }: Change): unknown {
  const places = placesIn(document);
  const place = places[at % (places.length + 1)];
  if (place === undefined) return how === 'replace' ? value : document;
  const { parent, field } = place;
  if (how === 'remove' && Array.isArray(parent)) parent.splice(Number(field), 1);
  else if (how === 'remove') Reflect.deleteProperty(parent, field);
  else if (how === 'replace') setOwn(parent, field, value);
  else if (how === 'repeat' && Array.isArray(parent)) parent.push(...(parent as unknown[]).slice(0, 50));
  else setOwn(parent, Array.isArray(parent) ? parent.length : name, value);
  return document;
}

interface Place {
  parent: object;
  field: string;
}

function placesIn(value: unknown, found: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null || value instanceof RawNumber || found.length > 2_000) return found;
  for (const [field, inner] of Object.entries(value)) {
    found.push({ parent: value, field });
    placesIn(inner, found);
  }
  return found;
}

function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (typeof value !== 'object' || value === null || value instanceof RawNumber) return value;
  return fieldsOf(Object.entries(value).map(([name, field]) => [name, copyOf(field)]));
}

/** A body cut into pieces at any places. */
export const pieces = (body: Buffer): fc.Arbitrary<Buffer[]> =>
  fc.array(fc.nat(body.length), { maxLength: 6 }).map((cuts) => {
    const ends = [...cuts.sort((a, b) => a - b), body.length];
    return ends.map((end, index) => body.subarray(ends[index - 1] ?? 0, end));
  });
