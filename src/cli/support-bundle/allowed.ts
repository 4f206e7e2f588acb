import { RawNumber } from '../../kube/json.ts';
import { harmlessText } from './harmless-text.ts';

/**
 * What of a JSON value may be shown. `'value'`: a text, number or truth value. `'all'`: all that is in it, for what has no place for
 * secrets by its schema. An object: these fields of one, or of each in a list; `*` stands for any field. All else is left out.
 */
export type Allowed = 'value' | 'all' | { readonly [field: string]: Allowed };

const DEEPEST = 16;
/** Of a list, and of the fields of an object. */
const MOST_ITEMS = 1_000;

/** A copy with what is allowed, in which every text is harmless; undefined where nothing is. */
export function allowedPart(value: unknown, allowed: Allowed, depth = 0): unknown {
  if (value instanceof RawNumber) return Number(value.text);
  if (typeof value === 'string') return typeof allowed === 'string' ? harmlessText(value) : undefined;
  if (typeof value !== 'object' || value === null) return typeof allowed === 'string' ? value : undefined;
  if (depth >= DEEPEST) return undefined;
  if (Array.isArray(value)) {
    return value.slice(0, MOST_ITEMS).map((item) => allowedPart(item, allowed, depth + 1) ?? null);
  }
  if (allowed === 'value') return undefined;
  const fields = Object.entries(value)
    .slice(0, MOST_ITEMS)
    .flatMap(([field, inner]) => {
      const may = allowed === 'all' ? allowed : mayShow(allowed, field);
      const part = may === undefined ? undefined : allowedPart(inner, may, depth + 1);
      return part === undefined ? [] : [[harmlessText(field), part] as const];
    });
  return Object.fromEntries(fields);
}

function mayShow(allowed: { readonly [field: string]: Allowed }, field: string): Allowed | undefined {
  return Object.hasOwn(allowed, field) ? allowed[field] : allowed['*'];
}
