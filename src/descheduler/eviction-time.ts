import { type Taint, toleratedSeconds, type Toleration } from '../kube/taints.ts';

/** Effect NoExecute of a member's taint; carried out by the mover, not by Kubernetes. */
const NO_EXECUTE = 'NoExecute';

/**
 * For how long a pod stays in spite of a taint of effect NoExecute, in ms: 0 without a toleration, Infinity with one that has
 * no end.
 */
export function toleratedMs(tolerations: readonly Toleration[] = [], taint: Omit<Taint, 'effect'>): number {
  return toleratedSeconds(tolerations, { ...taint, effect: NO_EXECUTE }) * 1_000;
}
