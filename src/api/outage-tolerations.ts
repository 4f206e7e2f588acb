import { tolerates } from '../kube/taints.ts';
import type { Toleration } from '../kube/core-v1.ts';

/** What Kubernetes puts on a Node whose kubelet is not ready, or not heard of: here that nobody serves the virtual node. */
export const OUTAGE_TAINTS: readonly string[] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** Seconds that the DefaultTolerationSeconds admission of a cluster gives every pod, unless its API server has a flag for it. */
const DEFAULT_SECONDS = 300;

/** What the owner of the host wants of pods on virtual nodes when nobody serves these. */
export interface OutageRule {
  /** Seconds that they stay; or for ever; or for as long as they say when they come. */
  readonly toleration: number | 'Forever' | 'Keep';
  /** Seconds that every pod of the host gets at admission, which are no answer of its own. */
  readonly admissionSeconds: number;
}

/**
 * Tolerations that a pod on a virtual node lacks: to be put before those it has, as of each taint the first one counts. Empty when
 * it was given them, and for taints that it has an answer of its own to, be it shorter or longer. What admission gives every
 * pod is no such answer; whoever really means so many seconds writes one less.
 */
export function missingOutageTolerations(
  present: readonly Toleration[],
  { toleration, admissionSeconds }: OutageRule,
): Toleration[] {
  if (toleration === 'Keep') return [];
  return OUTAGE_TAINTS.flatMap((key) => {
    const first = firstOf(present, key);
    return first === undefined || isDefaultToleration(first, admissionSeconds)
      ? [outageToleration(key, toleration)]
      : [];
  });
}

/**
 * To be put before those of a pod whose virtual node is to fail with its member (`spec.probe.nodesReady`): the seconds that every
 * pod has, in place of what it was given here. A pod that was given nothing, or has an answer of its own, lacks nothing.
 */
export function withdrawnOutageTolerations(
  present: readonly Toleration[],
  { admissionSeconds }: Pick<OutageRule, 'admissionSeconds'>,
): Toleration[] {
  return OUTAGE_TAINTS.flatMap((key) => {
    const first = firstOf(present, key);
    const isGiven = first !== undefined && isOutageToleration(first) && first.tolerationSeconds !== admissionSeconds;
    return isGiven ? [outageToleration(key, admissionSeconds)] : [];
  });
}

/**
 * {@link missingOutageTolerations} of a pod of which they may have been withdrawn before: it is given what it had, which stands behind
 * what it got instead. Without that the same seconds are an answer of its own.
 */
export function restoredOutageTolerations(present: readonly Toleration[], rule: OutageRule): Toleration[] {
  const isInstead = (one: Toleration): boolean =>
    isOutageToleration(one) && one.tolerationSeconds === rule.admissionSeconds;
  return OUTAGE_TAINTS.flatMap((key) => {
    const first = firstOf(present, key);
    if (first === undefined || !isInstead(first)) {
      return missingOutageTolerations(present, rule).filter((one) => one.key === key);
    }
    const given = present.find((one) => one.key === key && isOutageToleration(one) && !isInstead(one));
    return given === undefined ? [] : [outageToleration(key, given.tolerationSeconds ?? 'Forever')];
  });
}

function firstOf(present: readonly Toleration[], key: string): Toleration | undefined {
  return present.find((one) => tolerates(one, { key, effect: 'NoExecute' }));
}

/**
 * The form of a toleration of ours: `Equal` to the empty value that these taints have, which nobody needs to write. So it is
 * known again, and is kept from the member, whose own nodes are another matter.
 */
export function isOutageToleration({ key = '', operator, value = '', effect }: Toleration): boolean {
  return OUTAGE_TAINTS.includes(key) && operator === 'Equal' && value === '' && effect === 'NoExecute';
}

/** One of the two that the host's admission gives every pod. */
export function isDefaultToleration(
  { key = '', operator, effect, tolerationSeconds }: Toleration,
  seconds = DEFAULT_SECONDS,
): boolean {
  return (
    OUTAGE_TAINTS.includes(key) && operator === 'Exists' && effect === 'NoExecute' && tolerationSeconds === seconds
  );
}

function outageToleration(key: string, wanted: number | 'Forever'): Toleration {
  const seconds = wanted === 'Forever' ? {} : { tolerationSeconds: wanted };
  return { key, operator: 'Equal', effect: 'NoExecute', ...seconds };
}
