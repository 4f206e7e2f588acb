import { describesVirtualNode } from '../api/virtual-node-labels.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { isMet, isOperator } from '../kube/label-selector.ts';
import {
  entryOf,
  type JsonRecord,
  keepSome,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  textOf,
  without,
} from '../kube/json-fields.ts';

const HOSTNAME = 'kubernetes.io/hostname';

export interface NodeChoice {
  /** Name of the virtual node. */
  nodeName: string;
  /** Its labels, where known: they tell which of several ORed terms chose it. */
  nodeLabels?: Readonly<Record<string, string>> | undefined;
  /** More label keys that the member's nodes need not carry, such as those of MemberCluster.spec.labels. */
  hostOnlyLabels?: ReadonlySet<string> | undefined;
  /** Nodes of the member with all of these labels must not be used. */
  excludedNodes?: Readonly<Record<string, string>> | undefined;
}

/** The key speaks of virtual nodes only: the host's scheduler has dealt with it, and the member never sees it. */
export function isHostOnlyKey(key: string, choice: NodeChoice): boolean {
  return describesVirtualNode(key) || choice.hostOnlyLabels?.has(key) === true;
}

/**
 * Node affinity for the member's nodes. ORed terms keep their pairing: a term that this virtual node does not satisfy
 * goes, the others lose what only speaks of virtual nodes. Where nothing is left of a term, the member may take any
 * node, so the whole requirement goes. Undefined: no node affinity at all.
 */
export function memberNodeAffinity(affinity: unknown, choice: NodeChoice): unknown {
  const before = recordOf(affinity);
  if (before === undefined && affinity !== undefined && affinity !== null) return affinity;
  const own = before ?? {};
  const required = rewriteField(own, REQUIRED, (value) => rewriteRequired(value, choice));
  const preferred = rewriteField(required, PREFERRED, (value) => rewritePreferred(value, choice));
  const after = withExclusion(preferred, choice.excludedNodes);
  if (Object.keys(after).length === 0) return Object.keys(own).length === 0 ? affinity : undefined;
  return after;
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

function rewriteRequired(selector: unknown, choice: NodeChoice): unknown {
  const record = recordOf(selector);
  const terms = record?.['nodeSelectorTerms'];
  if (record === undefined || !Array.isArray(terms)) return selector;
  const list: readonly unknown[] = terms;
  // A pod can sit on a node that its terms no longer match (labels change later): then all of them count.
  const possible = list.filter((term) => holdsHere(term, choice));
  const kept = possible.length === 0 ? list : possible;
  const rest = kept.map((term) => memberTerm(term, choice));
  if (rest.includes(undefined)) return undefined;
  const same = rest.length === list.length && rest.every((term, index) => term === list[index]);
  return same ? selector : { ...record, nodeSelectorTerms: rest };
}

function rewritePreferred(preferences: unknown, choice: NodeChoice): unknown {
  const after = rewriteItems(preferences, (item) => {
    if (!holdsHere(item['preference'], choice)) return undefined;
    const rest = memberTerm(item['preference'], choice);
    if (rest === undefined) return undefined;
    return rest === item['preference'] ? item : { ...item, preference: rest };
  });
  return Array.isArray(after) && after.length === 0 ? undefined : after;
}

/** What a term asks of the member's nodes; undefined when nothing is left. A term that was empty (it matches no node) stays. */
function memberTerm(term: unknown, choice: NodeChoice): unknown {
  const record = recordOf(term);
  if (record === undefined) return term;
  if (listOf(record['matchExpressions']).length + listOf(record['matchFields']).length === 0) return term;
  const expressions = rewriteField(record, 'matchExpressions', (list) => {
    const after = rewriteItems(list, (item) => (isHostOnlyKey(keyOf(item), choice) ? undefined : item));
    return keepSome(after, list);
  });
  // The only field is metadata.name, the name of the virtual node.
  const after = without(expressions, ['matchFields']);
  const empty = listOf(after['matchExpressions']).length === 0;
  return after !== record && empty ? undefined : after;
}

/** False only if a part of the term that stays on the host is known not to hold for this virtual node. */
export function holdsHere(term: unknown, choice: NodeChoice): boolean {
  const record = recordOf(term);
  for (const item of listOf(record?.['matchFields'])) {
    const field = recordOf(item);
    if (field !== undefined && keyOf(field) === 'metadata.name' && !holds(field, choice.nodeName)) return false;
  }
  for (const item of listOf(record?.['matchExpressions'])) {
    const expression = recordOf(item);
    if (expression === undefined) continue;
    const key = keyOf(expression);
    if (!isHostOnlyKey(key, choice)) continue;
    const known = key === HOSTNAME || choice.nodeLabels !== undefined;
    const value = key === HOSTNAME ? choice.nodeName : textOf(entryOf(choice.nodeLabels, key));
    if (known && !holds(expression, value)) return false;
  }
  return true;
}

function keyOf(requirement: JsonRecord): string {
  return textOf(requirement['key']) ?? '';
}

/** One requirement against the value a node has, undefined if it has none. An operator nobody knows counts as met. */
function holds(requirement: JsonRecord, value: string | undefined): boolean {
  const { operator } = requirement;
  return !isOperator(operator) || isMet(operator, listOf(requirement['values']), value);
}

/**
 * Not (a and b) is (not a) or (not b), so every term is repeated for each label of the excluded nodes; one that keeps
 * away from them already stays.
 */
export function withExclusion(affinity: JsonRecord, excludedNodes: NodeChoice['excludedNodes'] = {}): JsonRecord {
  const excluded = Object.entries(excludedNodes);
  if (excluded.length === 0) return affinity;
  const required = recordOf(affinity[REQUIRED]) ?? {};
  const terms = listOf(required['nodeSelectorTerms']);
  const narrowed = terms.flatMap((term) => {
    const expressions = listOf(recordOf(term)?.['matchExpressions']);
    // An empty term matches no node; a line more would open it to all others.
    const done =
      expressions.length === 0 || expressions.some((one) => excluded.some((pair) => jsonEqual(one, not(pair))));
    return done ? [term] : narrow(recordOf(term) ?? {}, expressions, excluded);
  });
  const nodeSelectorTerms = terms.length === 0 ? narrow({}, [], excluded) : narrowed;
  return { ...affinity, [REQUIRED]: { ...required, nodeSelectorTerms } };
}

function narrow(
  term: JsonRecord,
  expressions: readonly unknown[],
  excluded: readonly [string, string][],
): JsonRecord[] {
  return excluded.map((pair) => ({ ...term, matchExpressions: [...expressions, not(pair)] }));
}

function not([key, value]: readonly [string, string]): JsonRecord {
  return { key, operator: 'NotIn', values: [value] };
}
