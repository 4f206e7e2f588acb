import type { Failover } from '../api/failover.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isReady } from '../kube/conditions.ts';
import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isLost } from '../placement/lost-members.ts';
import type { PlacedMember } from '../placement/placed-pods.ts';
import { byYouth, madeAt } from './pod-age.ts';
import { type OnHeal, purgeRules } from './purge-mode.ts';

/**
 * How long a member has to have answered before what the host shows of its pods counts, in ms: longer than its watches, and the writes that
 * follow from them, need to catch up.
 */
const CAUGHT_UP_MS = 10_000;
/** How long a pod that ran through may take to be shown as Ready, with LongestRunning, in ms. */
const SHOWN_MS = 30_000;
/**
 * How long KeepReplacement has to be found before it counts, in ms, and how long where no rules are left that say anything, or no member: one that is
 * deleted and made anew (`kubectl replace --force`, a tool that syncs) is gone for a moment, and an end cannot be taken back.
 */
const SAID_MS = 15_000;
const UNSAID_MS = 60_000;

export interface HealFacts {
  readonly onHeal: OnHeal;
  /** For how long this process has found KeepReplacement at every look, in ms. */
  readonly keepsForMs: number;
  /** Anything says where the pod may go. */
  readonly hasRules: boolean;
  /** The one that the pod is in; undefined when there is none any more. */
  readonly member: PlacedMember | undefined;
  /** For how long this process has found none at every look, in ms. */
  readonly goneForMs: number;
  /** How long this process has seen the member answer without a break, in ms. */
  readonly answersForMs: number;
  /** How long the original may take to be Ready again. */
  readonly gracePeriodSeconds: number;
}

/**
 * What is to become of a pod that was released as its member was lost. `lost`: its member does not answer. `wait`: that has for a moment, or the pod
 * is not Ready again yet. `choose`: one of the two goes. `notWell`: it is not Ready in time. `replaced`: the other one stays, as for any pod that was
 * released. `outOfService`: it does not run any more, by the word of an administrator.
 */
export type HealStep = 'lost' | 'wait' | 'choose' | 'notWell' | 'replaced' | 'outOfService';

export function healStep(pod: Pod, facts: HealFacts): HealStep {
  const { onHeal, keepsForMs, hasRules, member, goneForMs, answersForMs, gracePeriodSeconds } = facts;
  if (member === undefined) return goneForMs < UNSAID_MS ? 'wait' : 'replaced';
  const isUnsaid = !hasRules && keepsForMs < UNSAID_MS;
  if (member.outOfService.has(pod.spec.nodeName ?? '')) return isUnsaid ? 'wait' : 'outOfService';
  if (member.reachable === true && member.isLeaving) return 'replaced';
  if (onHeal === 'KeepReplacement') return keepsForMs < (hasRules ? SAID_MS : UNSAID_MS) ? 'wait' : 'replaced';
  if (!isHealed(member)) return 'lost';
  if (answersForMs < CAUGHT_UP_MS) return 'wait';
  if (isReady(pod)) return 'choose';
  const graceMs = gracePeriodSeconds * 1_000;
  return answersForMs < (onHeal === 'KeepOriginal' ? graceMs : Math.min(SHOWN_MS, graceMs)) ? 'wait' : 'notWell';
}

/**
 * The same of a pod that was released while its member answered, and that is not Ready. `lost`: that member is lost by now, so it serves nobody, and
 * gives way where nothing else can come in its place. `isDue`: pods of lost members are moved at present, and this one has been for so long that its own are. Undefined: as for any pod that was released,
 * as where its policy says that pods of lost members stay, or that all do.
 */
export function strandedStep(
  pod: Pod,
  member: PlacedMember | undefined,
  failover: Failover | undefined,
  isDue: boolean,
): 'lost' | 'outOfService' | undefined {
  const action = failover?.onMemberLost?.action;
  if (member === undefined || action === 'Hold' || purgeRules(failover).purgeMode === 'Never') return undefined;
  if (member.outOfService.has(pod.spec.nodeName ?? '')) return 'outOfService';
  return isLost(member) && isDue && action !== 'ReplaceWhenFenced' ? 'lost' : undefined;
}

/** What is heard of the member can be relied on, whether it takes new pods or not. */
export function isHealed({ reachable, silent }: PlacedMember): boolean {
  return reachable === true && silent === undefined;
}

/**
 * The pod that most likely came in the place of a released one: of those of its ReplicaSet that were made later one that is not Ready, or the
 * youngest. In its own cluster only those count that were made after the release: the others waited there like itself. Undefined: all that came are
 * gone by now.
 */
export function replacementOf(
  original: Pod,
  owned: readonly Pod[],
  clusterOf: (nodeName: string) => string,
): Pod | undefined {
  const place = ({ spec }: Pod): string | undefined =>
    spec.nodeName === undefined ? undefined : clusterOf(spec.nodeName);
  const releasedAt = releasedFrom(original)?.at ?? '';
  const [first] = owned
    .filter(isActive)
    .filter((pod) => madeAt(pod) > madeAt(original))
    .filter((pod) => place(pod) !== place(original) || madeAt(pod) >= releasedAt)
    .toSorted((a, b) => Number(isReady(a)) - Number(isReady(b)) || byYouth(a, b));
  return first;
}
