import type { PlacementPolicy } from '../api/placement-policy.ts';
import type { ResourceSelector } from '../api/selectors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { listInWords } from './placement-refusal.ts';

/**
 * Why a policy never decides, in words: for each of its selectors another one in use that selects the same comes before it, by the order of
 * policy-selection.ts. Undefined: it may. `others`: this one may be among them; those of another namespace, or of the whole cluster, do not count.
 */
export function whyOvershadowed(policy: PlacementPolicy, others: Iterable<PlacementPolicy>): string | undefined {
  const { namespace, name } = policy.metadata;
  const all = [...others].filter(({ metadata }) => metadata.namespace === namespace && metadata.name !== name);
  const before = policy.spec.resourceSelectors.map((selector) => all.find((one) => comesBefore(one, policy, selector)));
  const names = new Set<string>();
  for (const one of before) {
    if (one === undefined) return undefined;
    names.add(one.metadata.name);
  }
  const [verb, which] = names.size === 1 ? ['comes', 'selects'] : ['come', 'select'];
  return `${listInWords([...names].toSorted())} ${verb} before it and ${which} all that it does, so it decides about nothing: give it a higher priority, or other selectors`;
}

function comesBefore(
  { metadata, spec }: PlacementPolicy,
  policy: PlacementPolicy,
  selector: ResourceSelector,
): boolean {
  if (spec.priority < policy.spec.priority) return false;
  const isFirst = spec.priority > policy.spec.priority;
  if (!isFirst && metadata.name > policy.metadata.name) return false;
  // Of equal priority the closer match counts, so that one of the whole kind does not come before one by name.
  return spec.resourceSelectors.some((one) => isSame(one, selector) || (isFirst && isWholeKind(one, selector)));
}

function isSame(a: ResourceSelector, b: ResourceSelector): boolean {
  if (!isOfKind(a, b) || a.name !== b.name) return false;
  return a.name !== undefined || jsonEqual(a.labelSelector, b.labelSelector);
}

function isWholeKind(a: ResourceSelector, b: ResourceSelector): boolean {
  return isOfKind(a, b) && a.name === undefined && a.labelSelector === undefined;
}

function isOfKind(a: ResourceSelector, b: ResourceSelector): boolean {
  return (
    a.apiVersion === b.apiVersion && a.kind === b.kind && (a.namespace === undefined || a.namespace === b.namespace)
  );
}
