import type { ResourceSelector } from '../api/selectors.ts';
import { labelSelectorOf } from '../kube/label-selector.ts';
import type { TypedObject } from './owner-chain.ts';
import type { CompiledPolicy } from './policy-selection.ts';

/** A policy that chooses objects of that kind, in that namespace, by their labels: without these nobody knows if it does. */
export function labelsWanted(
  { apiVersion, kind, metadata: { namespace } }: TypedObject,
  policies: Iterable<CompiledPolicy>,
): CompiledPolicy | undefined {
  const asks = (selector: ResourceSelector): boolean =>
    selector.apiVersion === apiVersion &&
    selector.kind === kind &&
    selector.name === undefined &&
    selector.labelSelector !== undefined &&
    labelSelectorOf(selector.labelSelector).length > 0 &&
    [undefined, '', namespace].includes(selector.namespace);
  for (const one of policies) {
    const { metadata, spec } = one.policy;
    const isHere = metadata.namespace === undefined || metadata.namespace === namespace;
    if (isHere && spec.resourceSelectors.some(asks)) return one;
  }
  return undefined;
}
