import { KnownLayouts, type Layout } from './known-layouts.ts';

/* Bytes, as the engine takes them on 64 bits. */
const OBJECT = 32;
const EMPTY_OBJECT = 64;
const LIST = 48;
/** The place of a value in its object or list. */
const PLACE = 8;
/** A number that is no short integer. */
const NUMBER = 16;
const TEXT = 24;
/** Up to this length a text may be taken for one of two bytes a character without a look. */
const SHORT_TEXT = 20;
/** Objects with more fields are kept as tables, of which each has names of its own. */
const MOST_FIELDS = 64;
const TABLE_FIELD = 160;
/** A field whose name is a number is kept in a table, or in a list with holes. */
const INDEX = 240;
const INDEX_NAME = /^\d+$/;
/** No object that passes the shapes is as deep, and nothing here may end the stack. */
const DEEPEST = 500;
/** Whether a text takes two bytes a character: of others the engine knows without reading them that nothing is found. */
const WIDE = /[\u0100-\uffff]/;

/**
 * Estimates what parsed JSON takes of memory: at least nine tenths of what it does, whatever it is, and not much more for
 * what clusters have. Text costs by its characters, and unusual objects by their names, so one scale serves one cluster.
 */
export class Scale {
  readonly #layouts = new KnownLayouts();

  /** Of the scale itself, for what it has learned; never less than before. */
  get bytes(): number {
    return this.#layouts.bytes;
  }

  /** In bytes; Infinity for what is nested without end. */
  weigh(value: unknown): number {
    return weigh(value, this.#layouts, 0);
  }
}

function weigh(value: unknown, layouts: KnownLayouts, depth: number): number {
  if (typeof value === 'string') {
    const { length } = value;
    return TEXT + (length <= SHORT_TEXT || WIDE.test(value) ? 2 * length : length);
  }
  if (typeof value === 'number') return Object.is(value | 0, value) ? 0 : NUMBER;
  if (typeof value !== 'object' || value === null) return 0;
  if (depth > DEEPEST) return Infinity;
  if (Array.isArray(value)) {
    let bytes = LIST;
    for (let i = 0; i < value.length; i++) bytes += PLACE + weigh(value[i], layouts, depth + 1);
    return bytes;
  }
  return weighObject(value as Record<string, unknown>, layouts, depth);
}

function weighObject(object: Record<string, unknown>, layouts: KnownLayouts, depth: number): number {
  let bytes = OBJECT;
  let layout: Layout | undefined = layouts.start;
  for (const name in object) {
    const field = object[name];
    const isShort = typeof field === 'string' && field.length <= SHORT_TEXT;
    bytes += PLACE + (isShort ? TEXT + 2 * field.length : weigh(field, layouts, depth + 1));
    layout = layout?.after(name);
  }
  if (layout?.known === true) return bytes;
  return layout === layouts.start ? EMPTY_OBJECT : bytes + weighNames(object, layouts);
}

/** What an object takes for its names, or what they are remembered for. */
function weighNames(object: Record<string, unknown>, layouts: KnownLayouts): number {
  const names: string[] = [];
  let bytes = 0;
  for (const name in object) {
    if (INDEX_NAME.test(name)) bytes += INDEX;
    else names.push(name);
  }
  if (names.length <= MOST_FIELDS) return bytes + layouts.learn(names);
  for (const name of names) bytes += TABLE_FIELD + 2 * name.length;
  return bytes;
}
