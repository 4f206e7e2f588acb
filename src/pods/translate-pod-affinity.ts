import {
  type JsonRecord,
  keepSome,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  textOf,
  without,
} from '../kube/json-fields.ts';

/** The only topology that a virtual node and the nodes behind it share by meaning, though not by value. */
const NODE_TOPOLOGY = 'kubernetes.io/hostname';

export type NamespaceMap = (hostNamespace: string) => string | undefined;

/**
 * Pod affinity or anti-affinity for the member: rules between nodes go down, where nodes are real; rules between zones
 * and the like were the host's to keep. Undefined when nothing is left.
 */
export function memberPodAffinity(affinity: unknown, namespaceOf: NamespaceMap): unknown {
  const record = recordOf(affinity);
  if (record === undefined) return affinity;
  const required = rewriteField(record, 'requiredDuringSchedulingIgnoredDuringExecution', (terms) =>
    keepSome(
      rewriteItems(terms, (term) => memberTerm(term, namespaceOf)),
      terms,
    ),
  );
  const after = rewriteField(required, 'preferredDuringSchedulingIgnoredDuringExecution', (terms) =>
    keepSome(
      rewriteItems(terms, (item) => memberPreference(item, namespaceOf)),
      terms,
    ),
  );
  return after !== record && Object.keys(after).length === 0 ? undefined : after;
}

/** Topology spread constraints for the member, by the same rule. */
export function memberSpread(constraints: unknown): unknown {
  const after = rewriteItems(constraints, (constraint) =>
    constraint['topologyKey'] === NODE_TOPOLOGY ? withoutMergedKeys(constraint) : undefined,
  );
  return keepSome(after, constraints);
}

function memberPreference(item: JsonRecord, namespaceOf: NamespaceMap): unknown {
  const term = recordOf(item['podAffinityTerm']);
  if (term === undefined) return item;
  const after = memberTerm(term, namespaceOf);
  if (after === undefined) return undefined;
  return after === term ? item : { ...item, podAffinityTerm: after };
}

function memberTerm(term: JsonRecord, namespaceOf: NamespaceMap): JsonRecord | undefined {
  if (term['topologyKey'] !== NODE_TOPOLOGY) return undefined;
  const selector = recordOf(term['namespaceSelector']);
  // Labels of host namespaces say nothing about the member's. The empty selector means all namespaces on either side.
  if (selector !== undefined && Object.keys(selector).length > 0) return undefined;
  const names = listOf(term['namespaces']);
  if (names.length === 0) return withoutMergedKeys(term);
  const namespaces = names.flatMap((name) => namespaceOf(textOf(name) ?? '') ?? []);
  // Without a name the term would mean the pod's own namespace, which it did not.
  if (namespaces.length === 0 && selector === undefined) return undefined;
  return withoutMergedKeys({ ...term, namespaces });
}

/**
 * An API server merges `matchLabelKeys` into the label selector when a pod is created, and refuses a selector that
 * already holds the key. What the host merged is in the selector, so the key must not be sent again.
 */
function withoutMergedKeys(term: JsonRecord): JsonRecord {
  const merged = new Set(
    listOf(recordOf(term['labelSelector'])?.['matchExpressions']).map((expression) => recordOf(expression)?.['key']),
  );
  if (merged.size === 0) return term;
  let after = term;
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys']) {
    const keys = listOf(term[field]);
    const rest = keys.filter((key) => !merged.has(key));
    if (rest.length === keys.length) continue;
    after = rest.length === 0 ? without(after, [field]) : { ...after, [field]: rest };
  }
  return after;
}
