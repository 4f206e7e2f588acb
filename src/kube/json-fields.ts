import { isJsonObject } from './json-equal.ts';

/**
 * Reading and changing JSON of which only some fields are known. Values are never changed in place: a rewrite answers
 * the same object when nothing changed, and else a copy that shares every part that stayed. Keys come from users, so
 * copies are made by spreading, which takes `__proto__` as an ordinary key.
 */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** The value as an object, or undefined when it is anything else (a list, a scalar, null, nothing). */
export function recordOf(value: unknown): JsonRecord | undefined {
  return isJsonObject(value) ? value : undefined;
}

/** An object of a known type, to be looked at or rewritten field by field. */
export function fieldsOf(object: object): JsonRecord {
  return object as JsonRecord;
}

/** An object of a known type rewritten field by field, by what leaves it one of that type. */
export function rewriteObject<T extends object>(object: T, rewrite: (fields: JsonRecord) => JsonRecord): T {
  return rewrite(fieldsOf(object)) as T;
}

/** The value as a list; anything else counts as empty. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value as a text, or undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The own field of a map whose keys users choose. */
export function entryOf(map: JsonRecord | undefined, key: string): unknown {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** The object without some of its fields. */
export function without(record: JsonRecord, keys: readonly string[]): JsonRecord {
  if (!keys.some((key) => Object.hasOwn(record, key))) return record;
  const copy: Record<string, unknown> = { ...record };
  for (const key of keys) delete copy[key];
  return copy;
}

/** The object with a field rewritten. `rewrite` is not asked for a missing field; undefined takes the field out. */
export function rewriteField(record: JsonRecord, key: string, rewrite: (value: unknown) => unknown): JsonRecord {
  if (!Object.hasOwn(record, key)) return record;
  const before = record[key];
  const after = rewrite(before);
  if (after === before) return record;
  return after === undefined ? without(record, [key]) : { ...record, [key]: after };
}

/** The list with each object in it rewritten; undefined takes it out. What is not a list, or not an object in it, stays. */
export function rewriteItems(value: unknown, rewrite: (item: JsonRecord) => unknown): unknown {
  if (!Array.isArray(value)) return value;
  const list: readonly unknown[] = value;
  let changed = false;
  const after: unknown[] = [];
  for (const item of list) {
    const record = recordOf(item);
    const next = record === undefined ? item : rewrite(record);
    if (next !== item) changed = true;
    if (next !== undefined || record === undefined) after.push(next);
  }
  return changed ? after : list;
}

/** A rewritten list, or undefined when the rewriting left nothing of it: then the field goes, as if never written. */
export function keepSome(after: unknown, before: unknown): unknown {
  return Array.isArray(after) && after.length === 0 && after !== before ? undefined : after;
}
