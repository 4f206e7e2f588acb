import {
  Alias,
  type Document,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  Pair,
  parseAllDocuments,
  Scalar,
  visit,
} from 'yaml';
import { isJsonObject, setOwnField } from '../kube/json-equal.ts';
import { stringifyJson } from '../kube/json.ts';
import type { PatchOperation } from './json-patch.ts';
import { formatPointer, listIndex, parsePointer } from './json-pointer.ts';
import { OverrideError } from './override-error.ts';

/** Nodes that aliases may come to when they are written out; more is an attack. */
const MAX_EXPANDED = 10_000;
/** Texts that some reader of YAML takes for a number, a date, a boolean, null or a merge. */
const AMBIGUOUS = /^([-+.]?[0-9].*|[-+]?[.](inf|nan)|y|n|yes|no|on|off|true|false|null|~|=|<<|)$/i;

/**
 * Applies the operations to the YAML document in a text. Comments, order and the way that scalars are written stay: what
 * a plain `yes` or `0644` means is for the reader to say, so scalars are kept as text. Aliases are written out, for a
 * change must not show up wherever else the anchor is used.
 *
 * @throws OverrideError for what is not exactly one document, and as applyPatchOperation does.
 */
export function patchYaml(text: string, operations: readonly PatchOperation[]): string {
  const documents = parseAllDocuments(text, { schema: 'failsafe', prettyErrors: false, logLevel: 'error' });
  const [document] = documents;
  if (document === undefined || documents.length !== 1) {
    throw new OverrideError('', 'the text there is not exactly one YAML document');
  }
  const [error] = document.errors;
  if (error !== undefined) throw new OverrideError('', `the text there is not valid YAML (${error.code})`);
  writeOutAliases(document);
  for (const operation of operations) applyOperation(document, operation);
  return document.toString({ lineWidth: 0 });
}

function writeOutAliases(document: Document.Parsed): void {
  let expanded = 0;
  visit(document, {
    Alias(_, alias, path) {
      const target = alias.resolve(document);
      if (target === undefined) throw new OverrideError('', `the text there has a YAML alias without an anchor`);
      if (path.includes(target)) throw new OverrideError('', 'the text there has a YAML alias of what it is in itself');
      visit(target, { Node: () => void expanded++ });
      if (expanded > MAX_EXPANDED) throw new OverrideError('', 'the text there has too many YAML aliases');
      const copy = target.clone() as Node;
      visit(copy, { Node: (_key, node) => void (node instanceof Alias || delete node.anchor) });
      return copy;
    },
  });
}

function applyOperation(document: Document.Parsed, { operator, path, value }: PatchOperation): void {
  const segments = parsePointer(path);
  if (segments === undefined) throw new OverrideError(path, 'the path is not a JSON Pointer');
  if (operator !== 'remove' && value === undefined) throw new OverrideError(path, 'the operation has no value');
  const node = operator === 'remove' ? undefined : (document.createNode(asNodes(value)) as Node);
  const last = segments.at(-1);
  if (last === undefined) {
    if (node === undefined) throw new OverrideError(path, 'the whole document cannot be removed');
    document.contents = node as Document.Parsed['contents'];
    return;
  }
  let parent: unknown = document.contents;
  for (const [depth, segment] of segments.slice(0, -1).entries()) {
    parent = child(parent, segment);
    if (!isCollection(parent)) throw nothingAt(segments, depth);
  }
  const found = isMap(parent)
    ? setInMap(parent.items, last, operator, node)
    : isSeq(parent) && setInList(parent.items, last, operator, node);
  if (!found) throw nothingAt(segments, segments.length - 1);
}

function setInMap(pairs: Pair[], key: string, operator: PatchOperation['operator'], node: Node | undefined): boolean {
  const index = pairs.findIndex((pair) => keyOf(pair) === key);
  const pair = pairs[index];
  if (pair === undefined && operator !== 'add') return false;
  if (node === undefined) pairs.splice(index, 1);
  else if (pair === undefined) pairs.push(new Pair(textScalar(key), node));
  else pair.value = withComment(node, pair.value);
  return true;
}

function setInList(
  items: unknown[],
  segment: string,
  operator: PatchOperation['operator'],
  node: Node | undefined,
): boolean {
  const adding = operator === 'add';
  const index = adding && segment === '-' ? items.length : listIndex(segment);
  if (index === undefined || index >= items.length + (adding ? 1 : 0)) return false;
  if (node === undefined) items.splice(index, 1);
  else if (adding) items.splice(index, 0, node);
  else items[index] = withComment(node, items[index]);
  return true;
}

function child(node: unknown, segment: string): unknown {
  if (isMap(node)) return node.items.find((pair) => keyOf(pair) === segment)?.value;
  if (!isSeq(node)) return undefined;
  const index = listIndex(segment);
  return index === undefined ? undefined : node.items[index];
}

function keyOf(pair: Pair): string | undefined {
  return isScalar(pair.key) ? String(pair.key.value) : undefined;
}

/** What stood behind a value on its line still does. */
function withComment(node: Node, before: unknown): Node {
  if (isScalar(node) && isNode(before) && typeof before.comment === 'string') node.comment = before.comment;
  return node;
}

/** JSON as nodes, whose scalars are texts: in quotes where a text could be taken for something else. */
function asNodes(value: unknown): unknown {
  if (typeof value === 'string') return textScalar(value);
  if (Array.isArray(value)) return value.map(asNodes);
  if (!isJsonObject(value)) return plainScalar(stringifyJson(value));
  const copy: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) setOwnField(copy, key, asNodes(field));
  return copy;
}

function plainScalar(text: string): Scalar<string> {
  const scalar = new Scalar(text);
  scalar.type = 'PLAIN';
  return scalar;
}

function textScalar(text: string): Scalar<string> {
  const scalar = new Scalar(text);
  if (AMBIGUOUS.test(text)) scalar.type = 'QUOTE_DOUBLE';
  return scalar;
}

function nothingAt(segments: readonly string[], depth: number): OverrideError {
  return new OverrideError(formatPointer(segments.slice(0, depth + 1)), 'there is nothing at that path');
}
