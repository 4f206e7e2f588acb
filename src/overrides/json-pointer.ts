import { isJsonObject, ownField } from '../kube/json-equal.ts';

/**
 * The segments of a JSON Pointer (RFC 6901), unescaped; none for the whole document. Undefined: no pointer, because it
 * does not begin with a slash or has a `~` that is no escape.
 */
export function parsePointer(pointer: string): string[] | undefined {
  if (pointer === '') return [];
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) return undefined;
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function formatPointer(segments: readonly (string | number)[]): string {
  return segments.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** A segment as a place in a list: decimal without leading zeros, as RFC 6901 has it. */
export function listIndex(segment: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(segment) ? Number(segment) : undefined;
}

/** The value that the segments lead to, through own fields only; undefined when there is none. */
export function valueAt(document: unknown, segments: readonly string[]): unknown {
  let current = document;
  for (const segment of segments) {
    if (Array.isArray(current)) {
      const index = listIndex(segment);
      current = index === undefined ? undefined : (current as readonly unknown[])[index];
    } else if (isJsonObject(current)) {
      current = ownField(current, segment);
    } else {
      return undefined;
    }
  }
  return current;
}
