import type { OverrideOperator } from '../api/overriders.ts';
import { isJsonObject, type JsonObject, setOwnField } from '../kube/json-equal.ts';
import { formatPointer, listIndex, parsePointer } from './json-pointer.ts';
import { OverrideError } from './override-error.ts';

/** One operation of a JSON patch (RFC 6902), of the three that policies may use. */
export interface PatchOperation {
  readonly operator: OverrideOperator;
  /** JSON Pointer. */
  readonly path: string;
  /** Ignored by remove. */
  readonly value?: unknown;
}

/**
 * Applies one operation and returns the new document, which shares all that stayed; nothing is changed in place. Fields
 * are own fields only, so `__proto__` is a name like any other.
 *
 * @throws OverrideError when the path is no pointer or does not lead where the operator needs something.
 */
export function applyPatchOperation(document: unknown, operation: PatchOperation): unknown {
  const segments = parsePointer(operation.path);
  if (segments === undefined) throw new OverrideError(operation.path, 'the path is not a JSON Pointer');
  if (operation.operator !== 'remove' && operation.value === undefined) {
    throw new OverrideError(operation.path, 'the operation has no value');
  }
  return patched(document, segments, 0, operation);
}

function patched(node: unknown, segments: readonly string[], depth: number, operation: PatchOperation): unknown {
  const segment = segments[depth];
  if (segment === undefined) return wholeDocument(operation);
  const last = depth === segments.length - 1;
  if (Array.isArray(node)) {
    const list: readonly unknown[] = node;
    if (last) return changedList(list, segment, segments, operation);
    const index = listIndex(segment);
    if (index === undefined || index >= list.length) throw nothingAt(segments, depth);
    const inner = patched(list[index], segments, depth + 1, operation);
    return list.with(index, inner);
  }
  if (!isJsonObject(node)) throw nothingAt(segments, depth);
  if (last) return changedObject(node, segment, segments, operation);
  if (!Object.hasOwn(node, segment)) throw nothingAt(segments, depth);
  return withField(node, segment, patched(node[segment], segments, depth + 1, operation));
}

function wholeDocument(operation: PatchOperation): unknown {
  if (operation.operator === 'remove') throw new OverrideError(operation.path, 'the whole document cannot be removed');
  return operation.value;
}

function changedObject(
  object: JsonObject,
  name: string,
  segments: readonly string[],
  operation: PatchOperation,
): JsonObject {
  if (operation.operator !== 'add' && !Object.hasOwn(object, name)) throw nothingAt(segments, segments.length - 1);
  if (operation.operator !== 'remove') return withField(object, name, operation.value);
  const rest = { ...object };
  delete rest[name];
  return rest;
}

function changedList(
  list: readonly unknown[],
  segment: string,
  segments: readonly string[],
  operation: PatchOperation,
): unknown[] {
  const adding = operation.operator === 'add';
  const index = adding && segment === '-' ? list.length : listIndex(segment);
  if (index === undefined || index >= list.length + (adding ? 1 : 0)) throw nothingAt(segments, segments.length - 1);
  switch (operation.operator) {
    case 'add':
      return list.toSpliced(index, 0, operation.value);
    case 'remove':
      return list.toSpliced(index, 1);
    case 'replace':
      return list.with(index, operation.value);
  }
}

function withField(object: JsonObject, name: string, value: unknown): JsonObject {
  const copy = { ...object };
  setOwnField(copy, name, value);
  return copy;
}

function nothingAt(segments: readonly string[], depth: number): OverrideError {
  return new OverrideError(formatPointer(segments.slice(0, depth + 1)), 'there is nothing at that path');
}
