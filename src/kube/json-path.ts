import { RawNumber } from './json.ts';
import { isJsonObject } from './json-equal.ts';

/** One step of a path, from values to parts of them. */
type Step =
  | { readonly kind: 'field'; readonly name: string }
  /** Negative: counted from the end. */
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'each' }
  /** Those items of a list in which the field, of a field, has the value. */
  | { readonly kind: 'where'; readonly fields: readonly string[]; readonly value: string };

export type JsonPath = readonly Step[];

const NAME = '[A-Za-z_][A-Za-z0-9_-]*';
const FIELD = `[.]${NAME}`;
const QUOTED = "\\['[^'\\]]+'\\]";
const INDEX = '\\[-?[0-9]{1,4}\\]';
const EACH = '\\[[*]\\]';
const VALUE = `"[^"\\\\]*"|'[^'\\\\]*'|-?[0-9]+|true|false`;
const WHERE = `\\[[?]\\(@(?:${FIELD})+ ?== ?(?:${VALUE})\\)\\]`;

/**
 * That part of kubectl's JSONPath in which a path leads to values by itself: `{.a.b}`, `{.a['b.c']}`, `{.a[0]}`, `{.a[-1]}`, `{.a[*].b}` and
 * `{.a[?(@.b=="c")].d}`. In words that Go and JavaScript read alike, as a CRD says it too.
 */
export const JSON_PATH = new RegExp(`^\\{${FIELD}(?:${FIELD}|${QUOTED}|${INDEX}|${EACH}|${WHERE})*\\}$`);

const STEP = new RegExp(
  `[.](?<name>${NAME})|\\['(?<quoted>[^'\\]]+)'\\]|\\[(?<index>-?[0-9]{1,4})\\]|(?<each>${EACH})|` +
    `\\[[?]\\(@(?<fields>(?:${FIELD})+) ?== ?(?<value>${VALUE})\\)\\]`,
  'g',
);

/** Undefined for what is no path, or one that uses another part of JSONPath. */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (!JSON_PATH.test(text)) return undefined;
  return [...text.matchAll(STEP)].map(({ groups = {} }): Step => {
    const { name, quoted, index, fields, value = '' } = groups;
    const field = name ?? quoted;
    if (field !== undefined) return { kind: 'field', name: field };
    if (index !== undefined) return { kind: 'index', index: Number(index) };
    if (fields === undefined) return { kind: 'each' };
    return { kind: 'where', fields: fields.split('.').slice(1), value: unquoted(value) };
  });
}

function unquoted(value: string): string {
  return /^["']/.test(value) ? value.slice(1, -1) : value;
}

/** All that the path leads to; what is not there is left out. */
export function valuesAt(path: JsonPath, root: unknown): unknown[] {
  let found: unknown[] = [root];
  for (const step of path) found = found.flatMap((value) => after(step, value));
  return found.filter((value) => value !== undefined && value !== null);
}

function after(step: Step, value: unknown): readonly unknown[] {
  if (step.kind === 'field') return fieldOf(value, step.name);
  if (!Array.isArray(value)) return [];
  const items: readonly unknown[] = value;
  if (step.kind === 'index') return [items.at(step.index)];
  if (step.kind === 'each') return items;
  const { fields, value: wanted } = step;
  return items.filter((item) =>
    valuesAt(
      fields.map((name) => ({ kind: 'field', name })),
      item,
    ).some((one) => scalarText(one) === wanted),
  );
}

function fieldOf(value: unknown, name: string): readonly unknown[] {
  return isJsonObject(value) && Object.hasOwn(value, name) ? [value[name]] : [];
}

/** What is neither an object nor a list, as JSON writes it, and texts as they are; else undefined. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value instanceof RawNumber ? value.text : undefined;
}
