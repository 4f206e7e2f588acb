import { LOCAL } from './cluster-tiers.ts';
import { GANG_PLACED_ANNOTATION, MEMBER_LABEL } from './marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';

/** What binds a pod behind its gate to a place: the virtual nodes of a member, or the nodes of the host. */
export interface GangPlace {
  readonly annotations: Readonly<Record<string, string>>;
  /** Each field as a whole, or for a merge patch. */
  readonly spec: Pick<Pod['spec'], 'nodeSelector' | 'affinity'>;
}

/** `at`: when the gang got its place, in ms. */
export function gangPlace({ affinity }: Pod['spec'], cluster: string, at: number): GangPlace {
  const annotations = { [GANG_PLACED_ANNOTATION]: timestamp(at) };
  if (cluster !== LOCAL) return { annotations, spec: { nodeSelector: { [MEMBER_LABEL]: cluster } } };
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const line = { key: MEMBER_LABEL, operator: 'DoesNotExist' } as const;
  const nodeSelectorTerms = required?.nodeSelectorTerms.map((term) =>
    // A term without lines matches no node, and must not begin to.
    (term.matchExpressions ?? []).length + (term.matchFields ?? []).length === 0
      ? term
      : { ...term, matchExpressions: [...(term.matchExpressions ?? []), line] },
  ) ?? [{ matchExpressions: [line] }];
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { annotations, spec: { affinity: { nodeAffinity } } };
}

/** The pod as it will be once it has the place. */
export function atGangPlace(pod: Pod, cluster: string, at: number): Pod {
  const { annotations, spec } = gangPlace(pod.spec, cluster, at);
  const { nodeSelector, affinity } = pod.spec;
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotations } },
    spec: {
      ...pod.spec,
      ...(spec.nodeSelector === undefined ? {} : { nodeSelector: { ...nodeSelector, ...spec.nodeSelector } }),
      ...(spec.affinity === undefined
        ? {}
        : { affinity: { ...affinity, nodeAffinity: { ...affinity?.nodeAffinity, ...spec.affinity.nodeAffinity } } }),
    },
  };
}
