import { isJsonObject, jsonEqual, ownField, setOwnField } from './json-equal.ts';
import type { JsonObject } from './json-equal.ts';

/** A JSON merge patch (RFC 7386): a null removes the field, an object goes deeper, anything else replaces. */
export type MergePatch = JsonObject;

/**
 * The smallest merge patch that turns `from` into `to`, or undefined when nothing differs. Null fields of either count as
 * absent, as they do in the Kubernetes API (a merge patch cannot set a null). Lists are replaced whole.
 */
export function mergePatch(from: object, to: object): MergePatch | undefined {
  const patch = difference(from as JsonObject, to as JsonObject);
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function difference(from: JsonObject, to: JsonObject): MergePatch {
  const patch: MergePatch = {};
  for (const key of Object.keys(from)) {
    if (present(from[key]) && !present(ownField(to, key))) setOwnField(patch, key, null);
  }
  for (const key of Object.keys(to)) {
    const wanted = to[key];
    if (!present(wanted)) continue;
    const had = ownField(from, key);
    if (isJsonObject(wanted)) {
      const inner = difference(isJsonObject(had) ? had : {}, wanted);
      if (!isJsonObject(had) || Object.keys(inner).length > 0) setOwnField(patch, key, inner);
    } else if (!jsonEqual(had, wanted)) {
      setOwnField(patch, key, wanted);
    }
  }
  return patch;
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}
