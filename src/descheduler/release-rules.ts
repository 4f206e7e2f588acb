import { isActive, isFinished } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { byUid } from '../kube/object.ts';
import { type HealStep, replacementOf } from './heal-step.ts';
import { madeAt } from './pod-age.ts';
import {
  type EvictReason,
  missingOf,
  readyOf,
  type ReleaseFacts,
  type ReleaseStep,
  type ReplicaSetFacts,
  type WaitStep,
} from './release-step.ts';

/** A released pod that its ReplicaSet may want. */
interface ReleaseCase {
  readonly pod: Pod;
  readonly facts: ReleaseFacts;
  readonly set: ReplicaSetFacts;
  /** 1 when it is Ready, or 0. */
  readonly own: number;
  /** It was released as its member was lost, and waits for that. */
  readonly waits: boolean;
  /** What follows from its member. */
  readonly heal: HealStep;
  /** Released pods that share those that came in their places: those that wait stand for no others. */
  readonly count: number;
}

/** What the steps of those before it leave. */
interface Left {
  /** Pods that are Ready, those that are released and stay among them. */
  readonly ready: number;
  /** How many pods the ReplicaSet has too few; less than 0: too many. */
  readonly missing: number;
  /** Released pods that go as others are Ready in their places. */
  readonly replaced: number;
}

/** Undefined: the next one says. */
type Rule = (one: ReleaseCase, left: Left) => ReleaseStep | undefined;

/** The first that says anything counts. */
const RULES: readonly Rule[] = [noOther, awaitsMember, notWell, outOfService, chosen, replaced, inTime, givenBack];

/** A ReplicaSet that cannot make a pod for so long (ms) is kept from it, as by a quota, by those whose member is lost. */
const SHORT_MS = 60_000;
/** Between two looks at a pod that waits for its member, in ms. */
const LOOK_MS = 5_000;

/**
 * One step for each released pod of a ReplicaSet, oldest release first. A Ready one is evicted only while, without it, at least as
 * many pods are Ready as the ReplicaSet wants or, if it had fewer at the time of the release, as it had then, one in its place among them. Of those whose member answers
 * again one is given back at a time, when the ReplicaSet has no pod too many.
 */
export function releaseSteps(facts: ReleaseFacts): ReleaseStep[] {
  const { set, released } = facts;
  const staying = released.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const count = staying.filter((pod) => !waitsForMember(pod)).length;
  let left = atFirst(facts);
  return staying.toSorted(byRelease).map((pod): ReleaseStep => {
    if (set === undefined) return { pod, kind: 'evict', why: 'Gone' };
    const unwanted = whyUnwanted(pod, set);
    if (unwanted !== undefined) return { pod, kind: 'evict', why: unwanted };
    const own = isReady(pod) ? 1 : 0;
    const waits = waitsForMember(pod);
    const heal = waits ? facts.heal(pod) : ((own === 0 ? facts.stranded(pod) : undefined) ?? 'replaced');
    const one: ReleaseCase = { pod, facts, set, own, waits, heal, count };
    const step = releaseStep(one, left);
    left = after(step, one, left);
    return step;
  });
}

/** What the ReplicaSet has too many of goes. A watch can be silent without an error, so what it says itself counts, too. */
function atFirst({ set, owned, released }: ReleaseFacts): Left {
  const { replicas, ready: said, available } = set ?? { replicas: Number.POSITIVE_INFINITY };
  const standing = Math.min(readyOf(owned), replicas);
  const ready = Math.min(standing, said ?? standing, available ?? standing) + readyOf(released);
  return { ready, missing: missingOf(set, owned), replaced: 0 };
}

/** What its step leaves to those after it. */
function after(step: ReleaseStep, { own, waits }: ReleaseCase, left: Left): Left {
  const { ready, missing, replaced } = left;
  // One of the two goes, the original or the other one.
  if (step.kind === 'choose') return { ready: missing === 0 ? ready - 1 : ready, missing: missing - 1, replaced };
  if (step.kind !== 'evict') return left;
  return {
    ready: ready - own,
    // Each of those that may go for others may be one that does: how many do is counted as they go (room-for-others.ts).
    missing,
    replaced: step.why === 'Replaced' && !waits ? replaced + 1 : replaced,
  };
}

/** One that waits says what is against its end where others would come for it. */
function releaseStep(one: ReleaseCase, left: Left): ReleaseStep {
  const step = firstStep(one, left);
  if (step.kind !== 'wait' || step.keeps !== undefined || !isInTheWay(one, left)) return step;
  const why = one.facts.whyItStaysLost(one.pod);
  return why === undefined ? step : { ...step, keeps: { from: 'NoOther', why } };
}

function firstStep(one: ReleaseCase, left: Left): ReleaseStep {
  for (const rule of RULES) {
    const step = rule(one, left);
    if (step !== undefined) return step;
  }
  return evicted(one, 'TimedOut');
}

/**
 * It serves nobody, and keeps room from the one that is to come. One that is Ready serves: its MemberCluster only does not say that all of it can be
 * relied on. While the fault is more likely here, all that wait may serve, though nobody hears of it.
 */
function isInTheWay({ pod, own, heal, facts }: ReleaseCase, { missing }: Left): boolean {
  const isSo = heal === 'lost' && own === 0 && missing > 0 && facts.lossCounts(pod);
  return isSo && facts.mayMakeRoom && facts.shortForMs >= SHORT_MS;
}

function noOther(one: ReleaseCase, left: Left): ReleaseStep | undefined {
  if (!isInTheWay(one, left) || one.facts.whyItStaysLost(one.pod) !== undefined) return undefined;
  return evictedOrKept(one, 'NoOther');
}

function awaitsMember({ pod, waits, heal }: ReleaseCase): ReleaseStep | undefined {
  return (heal === 'lost' && waits) || heal === 'wait' ? later(pod) : undefined;
}

/** While others are missing, too, it may be the first one to be Ready. */
function notWell(one: ReleaseCase, { ready }: Left): ReleaseStep | undefined {
  const { pod, set, heal, facts } = one;
  if (heal !== 'notWell') return undefined;
  if (ready < set.replicas && restMs(pod, facts) > 0) return later(pod);
  const step = evictedOrKept(one, 'NotWell');
  return step.kind === 'evict' ? { ...step, instead: replacementOf(pod, facts.owned, facts.clusterOf) } : step;
}

function outOfService(one: ReleaseCase): ReleaseStep | undefined {
  return one.heal === 'outOfService' ? evictedOrKept(one, 'OutOfService') : undefined;
}

/** One at a time, as the ReplicaSet ends one that it has too many. Where nobody came in its place, and it may go, it is as any other that was released. */
function chosen(one: ReleaseCase, { ready, missing }: Left): ReleaseStep | undefined {
  const { pod, set, own, heal, facts } = one;
  if (heal !== 'choose') return undefined;
  if (missing < 0) return later(pod);
  const instead = missing > 0 ? undefined : replacementOf(pod, facts.owned, facts.clusterOf);
  if (missing === 0 && instead === undefined && !mustStay(one)) return undefined;
  return { pod, kind: 'choose', instead, mayGo: ready - own >= set.replicas };
}

/** As many are Ready as before without it, one in its place among them. */
function replaced(one: ReleaseCase, left: Left): ReleaseStep | undefined {
  const { set, own } = one;
  const others = left.ready - own;
  if (others < wanted(one)) return undefined;
  const isReplaced = own === 0 || others >= set.replicas || readySuccessors(one) > left.replaced;
  return isReplaced ? evicted(one, 'Replaced') : undefined;
}

function inTime({ pod, facts }: ReleaseCase): ReleaseStep | undefined {
  const forMs = restMs(pod, facts);
  return forMs > 0 ? { pod, kind: 'wait', forMs } : undefined;
}

function givenBack({ pod, own, facts }: ReleaseCase): ReleaseStep | undefined {
  return facts.rules.onTimeout === 'GiveBack' && own === 1 ? { pod, kind: 'giveBack', why: 'TimedOut' } : undefined;
}

function evicted({ pod }: ReleaseCase, why: EvictReason): ReleaseStep {
  return { pod, kind: 'evict', why };
}

function evictedOrKept(one: ReleaseCase, why: EvictReason): ReleaseStep {
  return mustStay(one) ? { ...later(one.pod), keeps: { from: why } } : evicted(one, why);
}

function later(pod: Pod): WaitStep {
  return { pod, kind: 'wait', forMs: LOOK_MS };
}

/** It may be given back, and that is all. */
function mustStay({ waits, facts }: ReleaseCase): boolean {
  return waits && facts.rules.purgeMode === 'Never';
}

/** What the mark says is by a wall clock, which may have been ahead, or be so now. */
function restMs(pod: Pod, { rules, passedMs }: ReleaseFacts): number {
  return rules.gracePeriodSeconds * 1_000 - passedMs(pod);
}

/** How many are to be Ready without it. How many were when its member was lost says nothing. */
function wanted({ pod, set: { replicas }, own, waits }: ReleaseCase): number {
  if (waits) return own === 0 ? 0 : replicas;
  return Math.min(replicas, releasedFrom(pod)?.ready ?? replicas);
}

/**
 * How many of the released pods have one in their places that is Ready. Where fewer were Ready at the release than the ReplicaSet wants, that so many
 * are Ready now may be the others that got well.
 *
 * Those that came are the ones made since that release, and the youngest of as many as it wants, as the clock that wrote the former may be ahead
 * of the one that wrote the latter.
 */
function readySuccessors({ pod: released, facts, set, count }: ReleaseCase): number {
  const at = releasedFrom(released)?.at ?? '';
  // Of two of the same second the one that is not Ready may be the one that came.
  const byAge = facts.owned
    .filter(isActive)
    .toSorted((a, b) => madeAt(a).localeCompare(madeAt(b)) || Number(isReady(b)) - Number(isReady(a)));
  const came = byAge.filter((pod, index) => index >= set.replicas - count || (at !== '' && madeAt(pod) >= at));
  // Some may be in the places of those that are gone.
  return Math.min(count, came.length) - came.filter((pod) => !isReady(pod)).length;
}

/** Why nobody wants it, wherever it is. */
function whyUnwanted(pod: Pod, { replicas }: ReplicaSetFacts): EvictReason | undefined {
  if (isFinished(pod)) return 'Finished';
  return replicas === 0 ? 'NoReplicas' : undefined;
}

function waitsForMember(pod: Pod): boolean {
  return releasedFrom(pod)?.lost === true;
}

function byRelease(a: Pod, b: Pod): number {
  return releasedAt(a) - releasedAt(b) || byUid(a, b);
}

function releasedAt(pod: Pod): number {
  return Date.parse(releasedFrom(pod)?.at ?? '') || 0;
}
