import { isJsonObject, jsonEqual } from '../../kube/json-equal.ts';

/**
 * Where two JSON values differ, as JSON Pointers (RFC 6901): the deepest fields of objects, and items of lists that have as many as
 * before. Parts that both share are not looked into.
 */
export function changedPaths(before: unknown, after: unknown, path = ''): string[] {
  if (before === after) return [];
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) => changedPaths(field(before, key), field(after, key), `${path}/${escaped(key)}`));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const items: readonly unknown[] = after;
    return before.flatMap((item: unknown, index) => changedPaths(item, items[index], `${path}/${String(index)}`));
  }
  return jsonEqual(before, after) ? [] : [path];
}

function field(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
