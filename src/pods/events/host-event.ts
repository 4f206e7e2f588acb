import type { Event } from '../../kube/core-v1.ts';
import { cleanText } from '../../kube/clean-text.ts';
import { eventName } from '../../kube/event-correlator.ts';
import type { KubeObject } from '../../kube/object.ts';
import { timestamp } from '../../kube/timestamps.ts';
import { countOf, firstSeen, lastSeen, type MemberEvent } from './member-event.ts';

const MAX_MESSAGE_BYTES = 1024;
const MAX_REASON_BYTES = 128;
const MAX_PART_BYTES = 253;

/** An Event about a host pod, as it is written: name and namespace are known, count and times are set. */
export interface HostEvent extends Event {
  metadata: { name: string; namespace: string };
  count: number;
  message: string;
  lastTimestamp: string;
}

/** An object of the host that a member's Event is told about. */
export interface EventSubject extends Pick<KubeObject, 'metadata'> {
  kind: 'Pod' | 'PersistentVolumeClaim';
  /** Set on a pod if the Event is about this claim, which the pod waits for. */
  claim?: string;
}

/**
 * What a member's Event says, about the host's object. Its name follows from the UID of the member's Event, so that it is
 * written once, whoever writes it. `From` in kubectl names the cluster; the message does too unless a kubelet speaks,
 * because host and member both have schedulers and controllers. Nothing in it is trusted: texts are cut to one line of
 * bounded length, times that are none become `now` (ms).
 */
export function hostEventOf(event: MemberEvent, subject: EventSubject, member: string, now: number): HostEvent {
  const { kind, claim } = subject;
  const { namespace = 'default', name, uid } = subject.metadata;
  const { fieldPath } = event.involvedObject;
  const component = cleanText(event.source?.component || event.reportingComponent || 'unknown', MAX_PART_BYTES);
  const words = cleanText(event.message ?? '', MAX_MESSAGE_BYTES);
  const where = `Cluster "${member}"${claim === undefined ? '' : `, claim "${claim}"`}`;
  const last = lastSeen(event) ?? now;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      namespace,
      name: eventName(name, `member\0${event.metadata.uid ?? ''}${claim === undefined ? '' : '\0claim'}`),
    },
    involvedObject: {
      apiVersion: 'v1',
      kind,
      namespace,
      name,
      ...(uid === undefined ? {} : { uid }),
      ...(fieldPath === undefined ? {} : { fieldPath: cleanText(fieldPath, MAX_PART_BYTES) }),
    },
    type: event.type === 'Warning' ? 'Warning' : 'Normal',
    reason: cleanText(event.reason ?? '', MAX_REASON_BYTES) || 'Unknown',
    message:
      component === 'kubelet' && claim === undefined ? words : cleanText(`${where}: ${words}`, MAX_MESSAGE_BYTES),
    source: {
      component: `${member}/${component}`,
      ...(event.source?.host === undefined ? {} : { host: cleanText(event.source.host, MAX_PART_BYTES) }),
    },
    reportingComponent: 'spillway',
    reportingInstance: member,
    count: countOf(event),
    firstTimestamp: timestamp(Math.min(firstSeen(event) ?? last, last)),
    lastTimestamp: timestamp(last),
  };
}
