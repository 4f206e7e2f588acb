import type { Event } from '../../kube/core-v1.ts';
import { cleanText } from '../../kube/clean-text.ts';

/** A core/v1 Event as members write them: repetitions are counted by the old fields or by `series`. */
export interface MemberEvent extends Event {
  series?: { count?: number; lastObservedTime?: string | null } | null;
}

/** Of a message, and of any other text of an Event, in bytes. */
const MAX_MESSAGE_BYTES = 1024;
const MAX_PART_BYTES = 253;

/** The parts that are read here, cleaned and cut; the rest of an Event is not kept, so that one that waits takes little memory. */
export function eventProjection(event: MemberEvent): MemberEvent {
  const { metadata, involvedObject, count, series, source } = event;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp: cut(creationTimestamp) }),
    },
    involvedObject: cutAll(involvedObject, ['kind', 'namespace', 'name', 'uid', 'fieldPath']),
    ...cutAll(event, ['type', 'reason', 'reportingComponent']),
    ...(event.message === undefined ? {} : { message: cleanText(event.message, MAX_MESSAGE_BYTES) }),
    ...(count === undefined ? {} : { count }),
    ...(series === undefined || series === null
      ? {}
      : {
          series: {
            ...(series.count === undefined ? {} : { count: series.count }),
            ...cutAll(series, ['lastObservedTime']),
          },
        }),
    ...(source === undefined ? {} : { source: cutAll(source, ['component', 'host']) }),
    ...cutAll(event, ['firstTimestamp', 'lastTimestamp', 'eventTime']),
  };
}

function cut(text: string): string {
  return cleanText(text, MAX_PART_BYTES);
}

/** Those of the fields that are texts. */
function cutAll<K extends string>(of: { [key in K]?: string | null }, names: readonly K[]): { [key in K]?: string } {
  const texts: { [key in K]?: string } = {};
  for (const name of names) {
    const text = of[name];
    if (typeof text === 'string') texts[name] = cut(text);
  }
  return texts;
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
