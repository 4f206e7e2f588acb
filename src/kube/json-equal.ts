import { RawNumber } from './json.ts';

/** A JSON object as a bag of fields. */
export type JsonObject = Record<string, unknown>;

/** An object that is neither an array nor a number kept as text. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawNumber);
}

/** The own field of that name; what a prototype offers under it (`constructor`, `__proto__`) does not count. */
export function ownField(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets an own field whatever its name: plain assignment to `__proto__` would change the prototype instead. */
export function setOwnField(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** Whether two JSON values are the same; the order of fields does not matter and an undefined field counts as absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a instanceof RawNumber || b instanceof RawNumber) {
    return a instanceof RawNumber && b instanceof RawNumber && a.text === b.text;
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  for (const key of Object.keys(a)) {
    if (!jsonEqual(a[key], ownField(b, key))) return false;
  }
  return Object.keys(b).every((key) => b[key] === undefined || ownField(a, key) !== undefined);
}
