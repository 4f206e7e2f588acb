import type { Pod } from '../../kube/core-v1.ts';
import { countOf, type MemberEvent } from './member-event.ts';

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

/** The same of every claim that gets its volume. */
const QUIET_OF_CLAIMS = [
  'WaitForFirstConsumer',
  'WaitForPodScheduled',
  'Provisioning',
  'ProvisioningSucceeded',
] as const;

/**
 * What of a member's Events is told. `Problems`: warnings, and the few others that explain something; a pod that starts
 * well causes none. `All`: as on a node of the host.
 */
export type PodEvents = 'Problems' | 'All';

/** Selects, on the member's side, what may be worth telling. */
export function eventSelector(events: PodEvents): string {
  return selectorOf('Pod', events === 'All' ? [] : QUIET);
}

/** The same for claims. */
export function claimEventSelector(events: PodEvents): string {
  return selectorOf('PersistentVolumeClaim', events === 'All' ? [] : QUIET_OF_CLAIMS);
}

function selectorOf(kind: string, quiet: readonly string[]): string {
  return [`involvedObject.kind=${kind}`, ...quiet.map((reason) => `reason!=${reason}`)].join(',');
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
export function passesFilter(
  events: PodEvents,
  event: Pick<MemberEvent, 'type' | 'reason' | 'message'>,
  hostPod?: Pod,
): boolean {
  if (events === 'All' || event.type === 'Warning') return true;
  const { reason = '', message = '' } = event;
  if (!TELLING.has(reason)) return false;
  return reason !== 'Killing' || (hostPod?.metadata.deletionTimestamp === undefined && !PLAIN_STOP.test(message));
}

/** Normal, and says what no status does: why a claim gets no volume. */
const TELLING_OF_CLAIMS = new Set(['FailedBinding']);
/** Said once of every claim, and again while its provisioner keeps it waiting. */
const TELLING_WHEN_REPEATED = 'ExternalProvisioning';

/** Whether people who look at a claim of the host learn something from an Event about the member's claim. */
export function passesClaimFilter(events: PodEvents, event: MemberEvent): boolean {
  return events === 'All' || explainsClaim(event);
}

/** Whether it says why the claim is not as it was asked for, which pods wait for, too. */
export function explainsClaim(event: MemberEvent): boolean {
  const { type, reason = '' } = event;
  if (type === 'Warning' || TELLING_OF_CLAIMS.has(reason)) return true;
  return reason === TELLING_WHEN_REPEATED && countOf(event) > 1;
}
