import type { Event } from '../../kube/core-v1.ts';
import { eventOf, eventTime } from './pod-facts.ts';

/** Reason of Events about pods that were released from their ReplicaSets, and can be neither ended nor given back. */
export const RELEASED_POD_STAYS = 'ReleasedPodStays';
/** Reason of Events about pods whose copies their member was told to delete, and has not. */
const MEMBER_POD_NOT_DELETED = 'MemberPodNotDeleted';
/** What still keeps a pod is told again within this time, in ms. */
const TOLD_AGAIN_MS = 25 * 60_000;

/** What keeps a released pod as it is, by whose word, and since when. */
export interface RefusedEnd {
  since: string;
  message: string;
}

/** Whether what an Event says is still so, as it would have been told again. @param now wall clock in ms. */
export function isStillTold(event: Event, now: number): boolean {
  return now - Date.parse(eventTime(event)) < TOLD_AGAIN_MS;
}

/** By the Events of one pod; undefined: nothing keeps it, as far as they say. */
export function refusedEnd(events: readonly Event[] | undefined, now: number): RefusedEnd | undefined {
  const told = eventOf(events, RELEASED_POD_STAYS);
  if (told === undefined || !isStillTold(told, now)) return undefined;
  return { since: told.firstTimestamp ?? eventTime(told), message: told.message ?? '' };
}

/** What keeps the copy of a pod that is being deleted, and what can be done, in the words of its Event; undefined: nothing, as far as Events say. */
export function notDeleted(events: readonly Event[] | undefined, now: number): string | undefined {
  const told = eventOf(events, MEMBER_POD_NOT_DELETED);
  return told === undefined || !isStillTold(told, now) ? undefined : told.message;
}
