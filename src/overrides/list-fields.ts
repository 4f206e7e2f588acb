import type { OverrideOperator } from '../api/overriders.ts';
import { jsonEqual, setOwnField } from '../kube/json-equal.ts';
import { entryOf, type JsonRecord, listOf, recordOf, without } from '../kube/json-fields.ts';

/**
 * The record with entries of the map in one of its fields changed: add sets them whatever was there, replace only where
 * there is one, remove takes them out (values do not count). The same record when nothing changed; a map that has become
 * empty goes.
 */
export function withEntries(
  record: JsonRecord,
  field: string,
  operator: OverrideOperator,
  entries: JsonRecord,
): JsonRecord {
  const before = recordOf(record[field]) ?? {};
  const keys = Object.keys(entries).filter((key) => operator === 'add' || Object.hasOwn(before, key));
  if (operator === 'remove') {
    if (keys.length === 0) return record;
    const rest = without(before, keys);
    return Object.keys(rest).length === 0 ? without(record, [field]) : { ...record, [field]: rest };
  }
  const changed = keys.filter((key) => entryOf(before, key) !== entries[key]);
  if (changed.length === 0) return record;
  const after = { ...before };
  for (const key of changed) setOwnField(after, key, entries[key]);
  return { ...record, [field]: after };
}

/** The record with a list in one of its fields; the same record if the list says nothing new, without the field if it is empty. */
export function withList(record: JsonRecord, field: string, list: readonly unknown[]): JsonRecord {
  if (jsonEqual(list, listOf(record[field]))) return record;
  return list.length === 0 ? without(record, [field]) : { ...record, [field]: list };
}
