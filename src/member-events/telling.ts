import type { Pod } from '../api/wire.ts';
import type { MemberEvent } from './member-event.ts';

/** What every healthy pod causes. The member's API server is asked to leave these out: they are most Events there are. */
const QUIET = [
  'Scheduled',
  'Pulling',
  'Pulled',
  'Created',
  'Started',
  'SuccessfulAttachVolume',
  'SuccessfulMountVolume',
] as const;

/**
 * What of a member's Events is told. `Problems`: warnings, and the few others that explain something; a pod that starts
 * well causes none. `All`: as on a node of the host.
 */
export type PodEvents = 'Problems' | 'All';

/** Selects, on the member's side, what may be worth telling. */
export function eventSelector(events: PodEvents): string {
  const quiet = events === 'All' ? [] : QUIET.map((reason) => `reason!=${reason}`);
  return ['involvedObject.kind=Pod', ...quiet].join(',');
}

/**
 * Normal Events that say why a pod does not run yet, runs anew, or ends without its owner's doing. All others repeat
 * what the status of the host pod shows anyway.
 */
const TELLING = new Set([
  // kubelet
  'BackOff',
  'DeadlineExceeded',
  'Killing',
  'SandboxChanged',
  // schedulers and autoscalers
  'BindingConditionsPending',
  'Nominated',
  'NotTriggerScaleUp',
  'Preempted',
  'Preempting',
  'TriggeredScaleUp',
  // who takes nodes or pods away
  'Descheduled',
  'Evicted',
  'ScaleDown',
  'TaintManagerEviction',
]);

/** How a kubelet words it when nothing but the end of the pod, or of a sidecar after it, stops a container. */
const PLAIN_STOP = /^Stopping container\b/;

/** Whether people who look at the host pod learn something from an Event about its member pod. */
export function isTelling(
  events: PodEvents,
  event: Pick<MemberEvent, 'type' | 'reason' | 'message'>,
  hostPod?: Pod,
): boolean {
  if (events === 'All' || event.type === 'Warning') return true;
  const { reason = '', message = '' } = event;
  if (!TELLING.has(reason)) return false;
  return reason !== 'Killing' || (hostPod?.metadata.deletionTimestamp === undefined && !PLAIN_STOP.test(message));
}
