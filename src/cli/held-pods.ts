import { MIRRORED_CONDITION, OUT_OF_SERVICE_TAINT } from '../api/marks.ts';
import { clusterTaintsOf, parseMemberCluster, specOf } from '../api/member-cluster.ts';
import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { cleanText } from '../kube/clean-text.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Event, Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import { nodeNamesOf, type FleetFacts } from './cluster-summary.ts';
import { isToBeEmptied } from './member-taints.ts';
import { eventOf } from './why/pod-facts.ts';
import { isStillTold } from './why/refused-end.ts';

/** Of a message of a pod, in bytes. */
const LONGEST_MESSAGE = 300;

/** Pods that wait in the same way. */
export interface HeldGroup {
  reason: string;
  pods: number;
  /** `namespace/name` of the one that waits longest. */
  example: string;
  message: string;
}

/** Reasons of Events about pods that are to leave their virtual node and stay, by the node. Without such a cause they are of former times. */
export type StayReasons = ReadonlyMap<string, readonly string[]>;

export function stayReasons({ members, nodes }: FleetFacts): StayReasons {
  const found = new Map<string, readonly string[]>();
  for (const raw of members) {
    const parsed = parseMemberCluster(raw);
    if (!('member' in parsed)) continue;
    const { member } = parsed;
    const ready = conditionOf(member, 'Ready');
    const ofMember = ready === undefined || ready.status === 'True' ? [] : ['PodOfLostMemberHeld'];
    for (const name of nodeNamesOf(raw, nodes)) {
      const node = nodes?.find(({ metadata }) => metadata.name === name);
      const taints = [...clusterTaintsOf(member), ...specOf(member, name).taints];
      const isOut = (node?.spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE_TAINT);
      const reasons = [
        ...ofMember,
        ...(isOut ? ['OutOfServicePodHeld'] : []),
        ...(node !== undefined && isToBeEmptied(node) ? ['DrainedPodHeld'] : []),
        ...(taints.some(({ effect }) => effect === 'NoExecute') ? ['TaintedPodHeld'] : []),
      ];
      if (reasons.length > 0) found.set(name, reasons);
    }
  }
  return found;
}

/** By UID of the pod that they are about. */
export function eventsByPod(events: readonly Event[]): Map<string, Event[]> {
  const byPod = new Map<string, Event[]>();
  for (const event of events) {
    const uid = event.involvedObject.uid ?? '';
    const those = byPod.get(uid) ?? [];
    byPod.set(uid, those);
    those.push(event);
  }
  return byPod;
}

/** The reasons that Events are to be asked for: those of nodes with pods. */
export function reasonsToAsk(reasons: StayReasons, pods: readonly Pod[]): string[] {
  return [...new Set(pods.flatMap((pod) => reasonsOf(pod, reasons)))];
}

/**
 * Pods on virtual nodes that were not created in the member, and those that a drain, a taint or a lost member would have moved and
 * something keeps, the largest group first. @param now wall clock in ms.
 */
export function heldGroups(
  pods: readonly Pod[],
  { reasons, events }: { reasons: StayReasons; events: ReadonlyMap<string, readonly Event[]> },
  now: number,
): HeldGroup[] {
  const groups = new Map<string, HeldGroup>();
  const oldestFirst = pods.toSorted((a, b) =>
    (a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1,
  );
  for (const pod of oldestFirst) {
    const held = notCreated(pod) ?? notMoved(pod, reasonsOf(pod, reasons), events, now);
    if (held === undefined) continue;
    const { reason = 'Unknown', message = '' } = held;
    const group = groups.get(reason);
    if (group === undefined) {
      groups.set(reason, { reason, pods: 1, example: keyOf(pod), message: cleanText(message, LONGEST_MESSAGE) });
    } else {
      group.pods += 1;
    }
  }
  return [...groups.values()].toSorted((a, b) => b.pods - a.pods);
}

type Held = Pick<Event, 'reason' | 'message'>;

function notCreated(pod: Pod): Held | undefined {
  const condition = conditionOf(pod, MIRRORED_CONDITION);
  return pod.metadata.deletionTimestamp === undefined && condition?.status === 'False' ? condition : undefined;
}

function notMoved(
  { metadata: { uid = '' } }: Pod,
  reasons: readonly string[],
  events: ReadonlyMap<string, readonly Event[]>,
  now: number,
): Held | undefined {
  const told = eventOf(events.get(uid), ...reasons);
  return told !== undefined && isStillTold(told, now) ? told : undefined;
}

/** A pod that ends, or was released to be ended, is on its way. */
function reasonsOf(pod: Pod, reasons: StayReasons): readonly string[] {
  const isGoing = !isActive(pod) || pod.metadata.deletionTimestamp !== undefined || releasedFrom(pod) !== undefined;
  return isGoing ? [] : (reasons.get(pod.spec.nodeName ?? '') ?? []);
}
