import { isJsonObject, jsonEqual, ownField, type JsonObject } from '../kube/json-equal.ts';
import type { KubeObject } from '../kube/object.ts';
import { compare, isQuantity, parseQuantity } from '../kube/quantity.ts';
import { FIELD_MANAGER } from './apply.ts';

/** A field that somebody else has set: where, and to what. */
export interface FieldOfOther {
  /** `spec.hard.pods` */
  path: string;
  value: unknown;
}

/**
 * Fields of the spec that others have set (metadata.managedFields) and that would get another value when `wanted` is applied by force.
 * What others have set besides stays as it is, by the rules of server-side apply, and is not named.
 */
export function fieldsOfOthers(found: KubeObject, wanted: object): FieldOfOther[] {
  const { managedFields } = found.metadata as { managedFields?: unknown };
  const others = (Array.isArray(managedFields) ? managedFields : []).filter(
    (entry): entry is JsonObject =>
      isJsonObject(entry) && !(entry['manager'] === FIELD_MANAGER && entry['operation'] === 'Apply'),
  );
  const fields = others.flatMap(({ fieldsV1 }) => {
    const spec = isJsonObject(fieldsV1) ? fieldsV1['f:spec'] : undefined;
    return isJsonObject(spec) ? changed(spec, specOf(found), specOf(wanted), 'spec') : [];
  });
  return [...new Map(fields.map((field) => [field.path, field])).values()];
}

function changed(owned: JsonObject, found: JsonObject, wanted: JsonObject, path: string): FieldOfOther[] {
  return Object.entries(wanted).flatMap(([key, value]): FieldOfOther[] => {
    const below = ownField(owned, `f:${key}`);
    const there = ownField(found, key);
    if (!isJsonObject(below) || there === undefined) return [];
    const at = `${path}.${key}`;
    // What is owned as a whole has nothing below it.
    if (Object.keys(below).length > 0 && isJsonObject(value) && isJsonObject(there))
      return changed(below, there, value, at);
    return isSame(there, value) ? [] : [{ path: at, value: there }];
  });
}

/** An API server writes quantities in its own way. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' && typeof other === 'string' && isQuantity(one) && isQuantity(other))
    return compare(parseQuantity(one), parseQuantity(other)) === 0;
  return jsonEqual(one, other);
}

function specOf(object: object): JsonObject {
  const { spec } = object as { spec?: unknown };
  return isJsonObject(spec) ? spec : {};
}
