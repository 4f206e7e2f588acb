import { type Taint, type Toleration, tolerates } from '../kube/taints.ts';

/** Effect NoExecute of a member's taint; carried out by the mover, not by Kubernetes. */
const NO_EXECUTE = 'NoExecute';

/**
 * For how long a pod stays in spite of a taint of effect NoExecute, in ms: 0 without a toleration, Infinity with one that has
 * no end. Of several that tolerate it the shortest counts, as for Kubernetes' own taint manager.
 */
export function toleratedMs(tolerations: readonly Toleration[] = [], taint: Omit<Taint, 'effect'>): number {
  const used = tolerations.filter((one) => tolerates(one, { ...taint, effect: NO_EXECUTE }));
  if (used.length === 0) return 0;
  const seconds = used.map(({ tolerationSeconds }) => tolerationSeconds ?? Number.POSITIVE_INFINITY);
  return Math.max(0, Math.min(...seconds)) * 1_000;
}
