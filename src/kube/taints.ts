export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/** As `kubectl taint` shows it. */
export function taintInWords({ key, value = '', effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  /** Of effect NoExecute: how long the pod stays, in s; not given: for ever. */
  tolerationSeconds?: number;
}

/** The effects that keep a pod from being scheduled on a node. */
export const HARD_EFFECTS: readonly string[] = ['NoSchedule', 'NoExecute'];

/**
 * Whether a toleration covers a taint, by the rules of v1.Toleration: an empty effect covers every effect; an empty key
 * (then with Exists) covers every key; no operator means Equal; Exists covers every value.
 */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  switch (operator) {
    case '':
    case 'Equal':
      return value === (taint.value ?? '');
    case 'Exists':
      return true;
    // Lt and Gt (KEP-5471) tolerate nothing, as in a cluster that has them off.
    default:
      return false;
  }
}

/**
 * For how long tolerations let a pod stay in spite of a taint, in s: 0 without one that tolerates it, Infinity where that has no end. Of several
 * that tolerate it the first in the list counts, as for Kubernetes' taint manager (`GetMatchingTolerations`).
 */
function toleratedSeconds(tolerations: readonly Toleration[], taint: Taint): number {
  const used = tolerations.find((one) => tolerates(one, taint));
  return used === undefined ? 0 : Math.max(0, used.tolerationSeconds ?? Number.POSITIVE_INFINITY);
}

/** The same in ms, of a taint of effect NoExecute. */
export function toleratedMs(tolerations: readonly Toleration[] = [], taint: Omit<Taint, 'effect'>): number {
  return toleratedSeconds(tolerations, { ...taint, effect: 'NoExecute' }) * 1_000;
}

/** Whether tolerations let a pod stay in spite of a taint, without end. */
export function toleratesForGood(tolerations: readonly Toleration[], taint: Taint): boolean {
  return toleratedSeconds(tolerations, taint) === Number.POSITIVE_INFINITY;
}

/** The first taint that keeps pods away and that no toleration covers; undefined when all are tolerated. */
export function firstUntolerated<T extends Taint>(
  tolerations: readonly Toleration[],
  taints: readonly T[],
): T | undefined {
  return taints.find(
    (taint) => HARD_EFFECTS.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}
