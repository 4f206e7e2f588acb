import type { Pod } from '../kube/core-v1.ts';
import { labelSelectorOf, matchesLabels } from '../kube/label-selector.ts';
import { isDaemonSet } from '../kube/owner-references.ts';
import type { KeptOwner, OwnerChain } from '../placement/owner-chain.ts';

/**
 * Whether a DaemonSet made the pod for its node, so that there is nothing to choose. Anybody can write an owner into a pod: the
 * DaemonSet must be one of Kubernetes itself that is known to be there, which then ends pods of its selector that it has not made, and
 * the pod must name its node, as the DaemonSet controller writes it.
 */
export function isMadeForItsNode(pod: Pod, [, owner]: OwnerChain): boolean {
  if (owner === undefined || !isDaemonSet(owner)) return false;
  // Only of objects in the caches.
  const { spec: { selector } = {} }: KeptOwner = owner;
  if (selector === undefined || !matchesLabels(labelSelectorOf(selector), pod.metadata.labels)) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms ?? [];
  return (
    terms.length > 0 &&
    terms.every(({ matchFields = [] }) =>
      matchFields.some(({ key, operator }) => key === 'metadata.name' && operator === 'In'),
    )
  );
}
