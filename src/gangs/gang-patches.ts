import { LOCAL } from '../api/cluster-tiers.ts';
import { GANG_GATE, GANG_PLACED_ANNOTATION, MEMBER_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';

/**
 * The merge patch that binds a pod behind its gate to a place: the virtual nodes of a member, or the nodes of the host.
 * While a pod has a gate its node selector and affinity may be narrowed (KEP-3838), so any scheduler keeps to the place.
 */
export function pinPatch({ metadata, spec }: Pod, cluster: string, at: number): object {
  const { uid, resourceVersion } = metadata;
  const annotations = { [GANG_PLACED_ANNOTATION]: timestamp(at) };
  const place = cluster === LOCAL ? { affinity: onHost(spec) } : { nodeSelector: { [MEMBER_LABEL]: cluster } };
  return { metadata: { uid, resourceVersion, annotations }, spec: place };
}

/** The merge patch that takes the gate away, and no other. */
export function openPatch({ metadata, spec }: Pod): object {
  const { uid, resourceVersion } = metadata;
  const schedulingGates = (spec.schedulingGates ?? []).filter(({ name }) => name !== GANG_GATE);
  return { metadata: { uid, resourceVersion }, spec: { schedulingGates } };
}

/** The pod's required terms, each with a line that no virtual node satisfies. */
function onHost({ affinity }: Pod['spec']): object {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const line = { key: MEMBER_LABEL, operator: 'DoesNotExist' };
  const nodeSelectorTerms = required?.nodeSelectorTerms.map((term) =>
    // A term without lines matches no node, and must not begin to.
    (term.matchExpressions ?? []).length + (term.matchFields ?? []).length === 0
      ? term
      : { ...term, matchExpressions: [...(term.matchExpressions ?? []), line] },
  ) ?? [{ matchExpressions: [line] }];
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
}
