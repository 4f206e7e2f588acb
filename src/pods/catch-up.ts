import { UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { intentOf } from './creation-intent.ts';
import { mirroredUid } from './host-status.ts';
import type { PodMemory } from './pod-memory.ts';
import { unansweredByFormer } from './unanswered-creation.ts';

/** A member pod that we made is read past the cache when the watch has not shown it for this long, in ms. */
export const CREATED_OVERDUE_MS = 15_000;

/** There is a member pod that the watch has not shown, and nothing is wrong with that. */
export function isExpected(memory: PodMemory, now: number): boolean {
  return memory.created !== undefined && !isOverdue(memory, now);
}

export function isOverdue({ created }: PodMemory, now: number): boolean {
  return created !== undefined && now - created.at > CREATED_OVERDUE_MS;
}

export function runsFor(memberPod: Pod, hostPod: Pod): boolean {
  return memberPod.metadata.labels?.[UID_LABEL] === hostPod.metadata.uid;
}

/** Forgets what the caches have caught up with, and notes what they show. `now`: monotonic, in ms. */
export function catchUp(memory: PodMemory, hostPod: Pod | undefined, memberPod: Pod | undefined, now: number): void {
  if (memory.host !== undefined && memory.host !== hostPod) delete memory.host;
  if (memory.member !== undefined && memory.member !== memberPod) delete memory.member;
  if (hostPod !== undefined) delete memory.hostMissingSince;
  if (memory.departed !== undefined && memory.departed.metadata.labels?.[UID_LABEL] !== hostPod?.metadata.uid) {
    delete memory.departed;
  }
  if (hostPod !== undefined) {
    settleCreated(memory, hostPod, memberPod, now);
    settleIntent(memory, hostPod, memberPod, now);
  }
}

/** What may come of creations without an answer: those of a former process, too, as far as it has written them down. */
function settleIntent(memory: PodMemory, hostPod: Pod, memberPod: Pod | undefined, now: number): void {
  const { uid: of = '' } = hostPod.metadata;
  if (memory.intent?.of !== of || mirroredUid(hostPod) !== undefined) delete memory.intent;
  const intent = intentOf(hostPod);
  if (memory.intent === undefined && intent !== undefined) {
    memory.intent = { of, at: -Infinity, open: true, unclear: 0 };
    memory.place = { of, namespace: intent.namespace };
    memory.unanswered = unansweredByFormer(of, now);
  }
  const { unanswered } = memory;
  if (unanswered === undefined) return;
  const isSeen = unanswered.single && memberPod !== undefined && runsFor(memberPod, hostPod);
  if (!isSeen && unanswered.of === of && now < unanswered.until) return;
  delete memory.unanswered;
  // From now on an answer is final; the one that there is was not.
  if (memory.intent?.absentUpTo !== undefined) memory.intent.open = true;
}

/**
 * That a member pod exists is remembered here for as long as the host pod does not say so: the host may refuse writes for
 * long, and a pod that comes and goes meanwhile must not be made again.
 */
function settleCreated(memory: PodMemory, hostPod: Pod, memberPod: Pod | undefined, now: number): void {
  const { uid: of = '' } = hostPod.metadata;
  const isShown = memory.member === undefined && memberPod !== undefined && runsFor(memberPod, hostPod);
  const uid = isShown ? (memberPod.metadata.uid ?? '') : undefined;
  if (isShown) memory.place = { of, namespace: memberPod.metadata.namespace ?? '' };
  else if (memory.place !== undefined && memory.place.of !== of) delete memory.place;
  if (memory.created !== undefined && memory.created.of !== of) delete memory.created;
  if (uid === undefined) return;
  if (mirroredUid(hostPod) === uid) delete memory.created;
  else if (memory.created?.uid !== uid) memory.created = { of, uid, at: now };
}
