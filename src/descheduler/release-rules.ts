import { releasedFrom } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type HealStep, replacementOf } from './heal-step.ts';
import type { EvictReason, ReleaseFacts, ReleaseStep, ReplicaSetFacts, WaitStep } from './release-step.ts';
import { readySuccessors } from './successors.ts';

/** A released pod that its ReplicaSet may want. */
export interface ReleaseCase {
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
export interface Left {
  /** Pods that are Ready, those that are released and stay among them. */
  readonly ready: number;
  /** How many pods the ReplicaSet has too few; less than 0: too many. */
  readonly room: number;
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

/** One that waits says what is against its end where others would come for it. */
export function releaseStep(one: ReleaseCase, left: Left): ReleaseStep {
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
function isInTheWay({ pod, own, heal, facts }: ReleaseCase, { room }: Left): boolean {
  const isSo = heal === 'lost' && own === 0 && room > 0 && facts.lossCounts(pod);
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
function chosen(one: ReleaseCase, { ready, room }: Left): ReleaseStep | undefined {
  const { pod, set, own, heal, facts } = one;
  if (heal !== 'choose') return undefined;
  if (room < 0) return later(pod);
  const instead = room > 0 ? undefined : replacementOf(pod, facts.owned, facts.clusterOf);
  if (room === 0 && instead === undefined && !mustStay(one)) return undefined;
  return { pod, kind: 'choose', instead, mayGo: ready - own >= set.replicas };
}

/** As many are Ready as before without it, one in its place among them. */
function replaced(one: ReleaseCase, left: Left): ReleaseStep | undefined {
  const { pod, set, own, count, facts } = one;
  const others = left.ready - own;
  if (others < wanted(one)) return undefined;
  const isReplaced =
    own === 0 || others >= set.replicas || readySuccessors(pod, count, facts.owned, set.replicas) > left.replaced;
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
