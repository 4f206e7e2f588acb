import type { Event } from '../api/wire.ts';

/** A core/v1 Event as members write them: repetitions are counted by the old fields or by `series`. */
export interface MemberEvent extends Event {
  series?: { count?: number; lastObservedTime?: string | null } | null;
}

/** The parts that are read here; the rest of an Event is not kept. */
export function eventProjection(event: MemberEvent): MemberEvent {
  const { metadata, involvedObject, type, reason, message, count, series, source, reportingComponent } = event;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const { firstTimestamp, lastTimestamp, eventTime } = event;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    involvedObject,
    ...(type === undefined ? {} : { type }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(count === undefined ? {} : { count }),
    ...(series === undefined ? {} : { series }),
    ...(source === undefined ? {} : { source }),
    ...(reportingComponent === undefined ? {} : { reportingComponent }),
    ...(firstTimestamp === undefined ? {} : { firstTimestamp }),
    ...(lastTimestamp === undefined ? {} : { lastTimestamp }),
    ...(eventTime === undefined ? {} : { eventTime }),
  };
}

/** How often it has happened, 1 to 2^31-1. */
export function countOf({ count, series }: MemberEvent): number {
  const told = Math.max(count ?? 0, series?.count ?? 0);
  return Number.isInteger(told) ? Math.min(Math.max(told, 1), 2 ** 31 - 1) : 1;
}

/** When it happened last, in ms; undefined when the Event does not tell. */
export function lastSeen({ metadata, series, lastTimestamp, eventTime }: MemberEvent): number | undefined {
  return newest([series?.lastObservedTime, lastTimestamp, eventTime]) ?? newest([metadata.creationTimestamp]);
}

/** When it happened first, in ms; undefined when the Event does not tell. */
export function firstSeen({ metadata, firstTimestamp, eventTime }: MemberEvent): number | undefined {
  return newest([firstTimestamp]) ?? newest([eventTime]) ?? newest([metadata.creationTimestamp]);
}

function newest(times: readonly (string | null | undefined)[]): number | undefined {
  const known = times.map((time) => Date.parse(time ?? '')).filter((time) => Number.isFinite(time));
  return known.length === 0 ? undefined : Math.max(...known);
}
