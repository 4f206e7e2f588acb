import { customKindKey } from '../api/custom-kinds.ts';
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

/** A policy in sight of an object that chooses by another kind which is not Kubernetes' own, and so may be of what owns that object. */
export function mayChooseAbove(
  owner: Pick<TypedObject, 'apiVersion' | 'kind'>,
  policies: Iterable<CompiledPolicy>,
): CompiledPolicy | undefined {
  const own = customKindKey(owner);
  for (const one of policies) {
    const keys = one.policy.spec.resourceSelectors.map((selector) => customKindKey(selector));
    if (keys.some((key) => key !== undefined && key !== own)) return one;
  }
  return undefined;
}
