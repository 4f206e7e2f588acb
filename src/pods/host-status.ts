import { GROUP, MIRRORED_CONDITION } from '../api/marks.ts';
import type { Condition, ContainerStatus, Pod, PodStatus } from '../kube/core-v1.ts';
import { cleanText } from '../kube/clean-text.ts';
import { APPLIED_OVERRIDES_ANNOTATION, policiesInRecord } from '../overrides/override-record.ts';
import { isFinished } from '../api/pod-phase.ts';
import { conditionOf } from '../kube/conditions.ts';
import { isEndpointAddress, isPlainAddress } from '../kube/endpoint-address.ts';
import { cleanStatus } from './clean-status.ts';
import { wasCutShort } from './finished.ts';
import { lostContainer } from './lost-container.ts';

/** Present, and False, while the member's scheduler finds no node. The host's own PodScheduled stays True: it is bound. */
export const MEMBER_SCHEDULED_CONDITION = `${GROUP}/MemberScheduled`;
/** Names of policies can be long, and are read by people only. */
const MAX_MESSAGE_BYTES = 4096;
/** Host pod annotation: the address that the pod has inside its member, where the host pod does not show it. */
const MEMBER_POD_IP_ANNOTATION = `${GROUP}/member-pod-ip`;

export interface StatusContext {
  /** Name of the MemberCluster, for messages. */
  member: string;
  network: 'Flat' | 'Isolated';
  /** The member pod runs the host pod's newest spec, so the generations of the two correspond. */
  inSync: boolean;
  /** Set once the member has been out of reach for longer than `probe.podsUnreadyAfterSeconds`. `began`: as its condition says, once it does. */
  memberLost?: { began: string | undefined };
}

/** Conditions that the member's kubelet or scheduler owns; gone in the member means gone in the host. */
export const MEMBER_OWNED_CONDITIONS: ReadonlySet<string> = new Set([
  'Initialized',
  'ContainersReady',
  'Ready',
  'PodReadyToStartContainers',
  'PodResizePending',
  'PodResizeInProgress',
  'AllContainersRestarting',
  MEMBER_SCHEDULED_CONDITION,
]);

/** Fields of PodStatus that belong to the host's side and are never copied up. */
const HOST_OWNED_FIELDS: ReadonlySet<string> = new Set([
  'qosClass',
  'nominatedNodeName',
  'resourceClaimStatuses',
  'extendedResourceClaimStatus',
  'nodeAllocatableResourceClaimStatuses',
  'conditions',
]);

/** What it takes to be a name, of which nothing else in the message can be made. */
const CLASS_NAME = /^[-a-z0-9.]{1,253}$/;

/**
 * Where the member pod is, which policies changed it, and its PriorityClass there, in the words of the Mirrored condition. Parsed back by
 * {@link mirroredUid} and {@link mirroredNamespace}.
 */
export function mirroredMessage(member: string, memberPod: Pod): string {
  const { priorityClassName = '' } = memberPod.spec;
  const priorityClass = CLASS_NAME.test(priorityClassName) ? ` priorityClass=${priorityClassName}` : '';
  return cleanText(`${placeAndPolicies(member, memberPod)}${priorityClass}`, MAX_MESSAGE_BYTES);
}

function placeAndPolicies(member: string, memberPod: Pod): string {
  const { namespace = '', name, uid = '', annotations } = memberPod.metadata;
  const policies = policiesInRecord(annotations?.[APPLIED_OVERRIDES_ANNOTATION]);
  const overrides =
    policies.length === 0 ? '' : ` overrides=${policies.map((policy) => policy.replace(' ', '/')).join(',')}`;
  return `member=${member} namespace=${namespace} name=${name} uid=${uid}${overrides}`;
}

/** The UID of the member pod that the host pod remembers, or undefined when none was ever created. */
export function mirroredUid(hostPod: Pod): string | undefined {
  const condition = conditionOf(hostPod, MIRRORED_CONDITION);
  if (condition?.status !== 'True') return undefined;
  return /(?:^| )uid=(\S*)/.exec(condition.message ?? '')?.[1] ?? '';
}

/** The namespace of the member in which the copy is that the host pod remembers, wherever new ones go by now. */
export function mirroredNamespace(hostPod: Pod): string | undefined {
  const condition = conditionOf(hostPod, MIRRORED_CONDITION);
  if (condition?.status !== 'True') return undefined;
  return /(?:^| )namespace=(\S+)/.exec(condition.message ?? '')?.[1];
}

/**
 * The status the host pod should have, given its member pod: every field of the member's status as it is (unknown ones
 * included), conditions merged by type. qosClass and what host controllers write is left alone.
 */
export function hostStatus(hostPod: Pod, saidPod: Pod, context: StatusContext, now: string): PodStatus {
  const memberPod = saidPod.status === undefined ? saidPod : { ...saidPod, status: cleanStatus(saidPod.status) };
  const status: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(memberPod.status ?? {})) {
    if (!HOST_OWNED_FIELDS.has(field)) status[field] = value;
  }
  const desired = status as PodStatus;
  keepMonotonic(hostPod, desired);
  desired.phase ??= 'Pending';
  const generation = observedGeneration(hostPod, memberPod, memberPod.status?.observedGeneration, context);
  delete desired.observedGeneration;
  if (generation !== undefined) desired.observedGeneration = generation;
  delete desired.podIP;
  delete desired.podIPs;
  Object.assign(desired, shownAddresses(memberPod, context));
  desired.conditions = conditions(hostPod, memberPod, context, now);
  const unscheduled = desired.conditions.find((condition) => condition.type === MEMBER_SCHEDULED_CONDITION);
  if (unscheduled !== undefined && desired.reason === undefined) {
    desired.reason = `Member${unscheduled.reason ?? 'Unschedulable'}`;
    if (unscheduled.message !== undefined) desired.message = unscheduled.message;
  }
  if (deletedInMember(hostPod, memberPod)) {
    desired.phase = 'Failed';
    desired.reason = memberPod.status?.reason ?? 'MemberPodDeleted';
    desired.message =
      memberPod.status?.message ??
      `The pod was deleted in cluster "${context.member}" by someone other than its host. It will not be started again under this name.`;
  }
  return desired;
}

/**
 * None of isolated members; and none, be it by malice or a broken network plugin, that no endpoint can have: with it
 * the host could not write the other endpoints of the pod's Services either.
 */
function shownAddresses({ status }: Pod, { network }: Pick<StatusContext, 'network'>): PodStatus {
  const { podIP = '', podIPs = [{ ip: podIP }] } = status ?? {};
  const shown = network === 'Flat' ? podIPs.filter(({ ip }) => isEndpointAddress(ip)) : [];
  const [first] = shown;
  return first === undefined ? {} : { podIP: first.ip, podIPs: shown };
}

/** Annotations that go with the status: the address that the pod has in its member, where its status does not show it. */
export function hostAnnotations(
  memberPod: Pod,
  context: Pick<StatusContext, 'network'>,
): Record<string, string | null> {
  const { podIP = '' } = memberPod.status ?? {};
  const { podIPs = [] } = shownAddresses(memberPod, context);
  const isHidden = isPlainAddress(podIP) && !podIPs.some(({ ip }) => ip === podIP);
  return { [MEMBER_POD_IP_ANNOTATION]: isHidden ? podIP : null };
}

/** A member pod that ended because somebody deleted it there, while its host pod is meant to live. */
function deletedInMember(hostPod: Pod, memberPod: Pod): boolean {
  return hostPod.metadata.deletionTimestamp === undefined && isFinished(memberPod) && wasCutShort(memberPod);
}

function conditions(hostPod: Pod, memberPod: Pod, context: StatusContext, now: string): Condition[] {
  const result: Condition[] = [];
  const gates = new Set((hostPod.spec.readinessGates ?? []).map(({ conditionType }) => conditionType));
  for (const condition of memberPod.status?.conditions ?? []) {
    if (condition.type === 'PodScheduled') {
      if (condition.status === 'False') result.push(memberUnscheduled(hostPod, condition, context, now));
      continue;
    }
    if (isHostsOwn(condition.type) || gates.has(condition.type)) continue;
    const { observedGeneration: observed, ...rest } = condition;
    const generation = observedGeneration(hostPod, memberPod, observed, context);
    result.push(generation === undefined ? rest : { ...rest, observedGeneration: generation });
  }
  applyReadiness(hostPod, result, context, now);
  if (deletedInMember(hostPod, memberPod) && !result.some((condition) => condition.type === 'DisruptionTarget')) {
    result.push({
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletedInMember',
      message: `Deleted in cluster "${context.member}".`,
      lastTransitionTime: now,
    });
  }
  const mirrored = conditionOf(hostPod, MIRRORED_CONDITION);
  const message = mirroredMessage(context.member, memberPod);
  // Managers of before did not tell the class: no reason to write the status of every pod anew.
  const known = [message, cleanText(placeAndPolicies(context.member, memberPod), MAX_MESSAGE_BYTES)];
  result.push(
    mirrored?.status === 'True' && known.includes(mirrored.message ?? '')
      ? mirrored
      : { type: MIRRORED_CONDITION, status: 'True', reason: 'Created', message, lastTransitionTime: now },
  );
  return result;
}

/**
 * Conditions of our group are the memory of this host. A member may carry such, too, because it is a host of Spillway
 * itself or means harm: what they say there is about another pod, or about none.
 */
function isHostsOwn(type: string): boolean {
  return type.startsWith(`${GROUP}/`);
}

function memberUnscheduled(hostPod: Pod, condition: Condition, context: StatusContext, now: string): Condition {
  const { observedGeneration: _, ...rest } = condition;
  return {
    ...rest,
    type: MEMBER_SCHEDULED_CONDITION,
    message: `cluster "${context.member}": ${condition.message ?? 'no node was found yet'}`,
    lastTransitionTime: unscheduledSince(hostPod, now),
  };
}

/**
 * Since when the host has known that the member finds no node, whatever the reason is by now: placement counts from then, by clocks of the
 * host, and the member's may be wrong. Managers of before wrote the member's time: neither one from before the pod was made nor one
 * that is yet to come is kept.
 */
function unscheduledSince(hostPod: Pod, now: string): string {
  const { creationTimestamp: created = now } = hostPod.metadata;
  const shown = conditionOf(hostPod, MEMBER_SCHEDULED_CONDITION);
  // The clock of the API server may be ahead of this one: then it is not to be written anew each time.
  const latest = Date.parse(created) > Date.parse(now) ? created : now;
  const since = shown?.status === 'False' ? (shown.lastTransitionTime ?? latest) : latest;
  if (Date.parse(since) < Date.parse(created)) return created;
  return Date.parse(since) <= Date.parse(latest) ? since : latest;
}

/**
 * Ready as the host must see it: the member's, and every readiness gate of the host pod (gates are taken off the member
 * pod because the controllers that set them live in the host), and the member not lost.
 */
function applyReadiness(hostPod: Pod, result: Condition[], context: StatusContext, now: string): void {
  const at = result.findIndex((condition) => condition.type === 'Ready');
  const ready = result[at];
  if (ready === undefined) return;
  if (ready.status !== 'True') return;
  const previous = conditionOf(hostPod, 'Ready');
  const unready = (reason: string, message: string): Condition => ({
    ...ready,
    status: 'False',
    reason,
    message,
    lastTransitionTime: previous?.status === 'False' ? (previous.lastTransitionTime ?? now) : now,
  });
  if (context.memberLost !== undefined) {
    const { began } = context.memberLost;
    const silent = began === undefined ? 'does not answer' : `has not answered since ${began}`;
    result[at] = unready(
      'MemberUnreachable',
      `Cluster "${context.member}" ${silent}; the pod may still be running there.`,
    );
    return;
  }
  const waiting = (hostPod.spec.readinessGates ?? [])
    .map((gate) => gate.conditionType)
    .filter((type) => conditionOf(hostPod, type)?.status !== 'True');
  if (waiting.length > 0) {
    result[at] = unready(
      'ReadinessGatesNotReady',
      `corresponding condition of pod readiness gate is not True: ${waiting.join(', ')}`,
    );
  } else if (hostPod.spec.readinessGates !== undefined && previous !== undefined && previous.status === 'False') {
    result[at] = { ...ready, lastTransitionTime: now };
  }
}

/** Generations count separately in each cluster: only "has seen the newest" can be carried over. */
function observedGeneration(
  hostPod: Pod,
  memberPod: Pod,
  observed: number | undefined,
  context: StatusContext,
): number | undefined {
  if (observed === undefined) return undefined;
  const current = context.inSync && observed === memberPod.metadata.generation;
  return current ? hostPod.metadata.generation : hostPod.status?.observedGeneration;
}

/** The lists of PodStatus that count restarts. */
export const CONTAINER_STATUS_LISTS = [
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
] as const;

/** Whether containers of the pod have run, by its own status: then it never is Pending again. */
export function hasRun({ status }: { status?: PodStatus }): boolean {
  const { phase, containerStatuses = [] } = status ?? {};
  return (
    phase === 'Running' &&
    containerStatuses.some(
      ({ state, lastState, restartCount }) =>
        restartCount > 0 || [state?.running, state?.terminated, lastState?.terminated].some((one) => one !== undefined),
    )
  );
}

/**
 * Invariant I19: for one host pod, startTime never changes, restart counts never go down, and neither containers that
 * were shown nor the step to Running are taken back, even where the status of the member pod was wiped.
 */
function keepMonotonic(hostPod: Pod, desired: PodStatus): void {
  const startTime = hostPod.status?.startTime;
  if (startTime !== undefined) desired.startTime = startTime;
  if (hasRun(hostPod) && (desired.phase ?? 'Pending') === 'Pending') desired.phase = 'Running';
  for (const field of CONTAINER_STATUS_LISTS) {
    const before = hostPod.status?.[field] ?? [];
    const after = desired[field] ?? [];
    const gone = before.filter(({ name }) => !after.some((status) => status.name === name));
    if (before.length === 0) continue;
    // What became of a container that is not reported any more is not known.
    desired[field] = [
      ...after.map((status) => withRestarts(status, before)),
      ...gone.map((status) => (desired.phase === 'Failed' ? lostContainer(status) : { ...status, ready: false })),
    ];
  }
}

function withRestarts(status: ContainerStatus, before: readonly ContainerStatus[]): ContainerStatus {
  const seen = before.find((other) => other.name === status.name)?.restartCount ?? 0;
  return status.restartCount >= seen ? status : { ...status, restartCount: seen };
}
