import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { InvariantId } from '../api/invariants.ts';
import type { ContainerStatus, Pod, PodStatus } from '../kube/core-v1.ts';
import { intentOf, needsIntent } from './creation-intent.ts';
import { isShownIgnored } from './daemon-pod.ts';
import type { AbsenceEvidence, DeletionEvidence, StatusSource } from './evidence.ts';
import { isFinished } from '../api/pod-phase.ts';
import { CONTAINER_STATUS_LISTS, hasRun, mirroredUid } from './host-status.ts';

/** What is wrong with a write that is about to be sent. */
export interface Violation {
  invariant: InvariantId;
  what: string;
}

/** Whose pods are ours. */
export interface Owner {
  hostId: string;
  nodeName: string;
}

const NOBODY_SAYS = (): boolean => false;

/** A live read is evidence for so long, in ms. */
const EVIDENCE_AGE_MS = 60_000;

/*
 * The last look before each write to a pod, by rules of their own: what led to the write is decided elsewhere, and what
 * is found here is a mistake there. Pure; undefined: the write may go.
 */

/** Changing a member pod. */
export function refuseUpdate(memberPod: Pod, owner: Owner): Violation | undefined {
  if (isOurs(memberPod, owner)) return undefined;
  return { invariant: 'I1', what: 'a change of a member pod that is not ours' };
}

/**
 * Deleting a member pod. `present`: our pods for the same host namespace and name. `permitted`: the deletion breaker let it
 * pass; asked only where that counts.
 */
export function refuseDeletion(
  memberPod: Pod,
  evidence: DeletionEvidence,
  present: readonly Pod[],
  owner: Owner,
  permitted: () => boolean,
): Violation | undefined {
  const { uid, labels } = memberPod.metadata;
  if (!isOurs(memberPod, owner)) return { invariant: 'I1', what: 'deletion of a member pod that is not ours' };
  if (uid === undefined || uid === '') return { invariant: 'I1', what: 'deletion of a member pod without its UID' };
  if (evidence.of !== labels?.[UID_LABEL]) return { invariant: 'I1', what: 'deletion on evidence about another pod' };
  if (evidence.says === 'missing' && !permitted()) {
    return { invariant: 'I2', what: 'deletion for a host pod that is merely missing, past the breaker' };
  }
  if (evidence.says === 'second-copy') {
    const kept = present.find(({ metadata }) => metadata.uid === evidence.kept && evidence.kept !== uid);
    if (kept?.metadata.labels?.[UID_LABEL] !== evidence.of) {
      return { invariant: 'I6', what: 'deletion of a second copy without a first one' };
    }
  }
  return undefined;
}

/**
 * Creating a member pod. `present`: our pods for the same host namespace and name, whatever their UID. `rehearsed`: nothing
 * will come of it. `unansweredIn`: in that namespace one may come to life yet.
 */
export function refuseCreation(
  hostPod: Pod,
  memberPod: Pod,
  present: readonly Pod[],
  owner: Owner,
  { rehearsed = false, unansweredIn }: { rehearsed?: boolean; unansweredIn?: string | undefined } = {},
): Violation | undefined {
  const { metadata } = hostPod;
  if (isFinished(hostPod) || mirroredUid(hostPod) !== undefined) {
    return { invariant: 'I4', what: 'creation of a member pod for a host pod that had one or has finished' };
  }
  if (!rehearsed && needsIntent(hostPod) && intentOf(hostPod) === undefined) {
    return { invariant: 'I4', what: 'creation of a member pod that nobody would remember after a crash' };
  }
  if (present.length > 0) return { invariant: 'I6', what: 'creation of a second member pod for one host pod' };
  const { namespace } = memberPod.metadata;
  // In one namespace the name lets only one of them come to life.
  if (unansweredIn !== undefined && unansweredIn !== namespace) {
    return { invariant: 'I6', what: 'creation of a member pod while one may come to life in another namespace' };
  }
  const intent = rehearsed || !needsIntent(hostPod) ? undefined : intentOf(hostPod);
  if (intent !== undefined && intent.namespace !== namespace) {
    return { invariant: 'I6', what: 'creation of a member pod elsewhere than was written down' };
  }
  const { labels, annotations } = memberPod.metadata;
  const marked =
    isOurs(memberPod, owner) &&
    labels?.[UID_LABEL] === metadata.uid &&
    annotations?.[HOST_NAME_ANNOTATION] === metadata.name &&
    annotations[HOST_NAMESPACE_ANNOTATION] === (metadata.namespace ?? '');
  return marked ? undefined : { invariant: 'I15', what: 'creation of a member pod that could not be traced back' };
}

/** Patching the status of a host pod. `status` is the patch's. `isFenced`: see {@link refuseRemoval}. */
export function refuseStatus(
  hostPod: Pod,
  status: PodStatus,
  source: StatusSource,
  now: number,
  isFenced: (uid: string) => boolean = NOBODY_SAYS,
): Violation | undefined {
  if (isFinished(hostPod)) return { invariant: 'I4', what: 'a new status for a finished pod' };
  const said = source.from === 'member' ? source.status : undefined;
  if (status.phase === 'Succeeded' && said?.phase !== 'Succeeded') {
    return { invariant: 'I5', what: 'success that the member did not report' };
  }
  if (status.phase === 'Failed' && source.from !== 'member') {
    const known = source.from === 'absence' && isEvidence(source.evidence, hostPod, now, isFenced);
    if (!known) return { invariant: 'I9', what: 'a pod called lost that may be there' };
  }
  for (const list of CONTAINER_STATUS_LISTS) {
    // In a patch, null takes the list away, and a list replaces it.
    const after = list in status ? (status[list] ?? []) : undefined;
    const lost = hostPod.status?.[list]?.find(({ name }) => after?.some((one) => one.name === name) === false);
    if (lost !== undefined) return { invariant: 'I19', what: `container ${lost.name} would not be shown any more` };
    for (const container of after ?? []) {
      const before = hostPod.status?.[list]?.find(({ name }) => name === container.name);
      if (isInvented(container, [said?.[list]?.find(({ name }) => name === container.name), before])) {
        return { invariant: 'I5', what: `an end of container ${container.name} that the member did not report` };
      }
      if (container.restartCount < (before?.restartCount ?? 0)) {
        return { invariant: 'I19', what: `a lower restart count of container ${container.name}` };
      }
    }
  }
  const { startTime } = hostPod.status ?? {};
  if (startTime !== undefined && 'startTime' in status && status.startTime !== startTime) {
    return { invariant: 'I19', what: 'another start time' };
  }
  if (status.phase === 'Pending' && hasRun(hostPod)) return { invariant: 'I19', what: 'Pending after Running' };
  return undefined;
}

/**
 * Removing a host pod for good. `isFenced`: the word that nothing runs there counts now, and it is stored that the pod with that UID
 * was ended; asked only where that counts.
 */
export function refuseRemoval(
  hostPod: Pod,
  evidence: AbsenceEvidence,
  now: number,
  isFenced: (uid: string) => boolean = NOBODY_SAYS,
): Violation | undefined {
  if (hostPod.metadata.deletionTimestamp === undefined) {
    return { invariant: 'I9', what: 'removal of a host pod that nobody deleted' };
  }
  if ((evidence.unansweredUntil ?? -Infinity) > evidence.at) {
    return { invariant: 'I9', what: 'removal of a host pod whose member pod may come to life yet' };
  }
  if (isEvidence(evidence, hostPod, now, isFenced)) return undefined;
  return { invariant: 'I9', what: 'removal of a host pod whose member pod may be there' };
}

function isOurs({ metadata: { labels } }: Pod, { hostId, nodeName }: Owner): boolean {
  return labels?.[HOST_LABEL] === hostId && labels[NODE_LABEL] === nodeName && (labels[UID_LABEL] ?? '') !== '';
}

function isEvidence(evidence: AbsenceEvidence, hostPod: Pod, now: number, isFenced: (uid: string) => boolean): boolean {
  if (evidence.of !== hostPod.metadata.uid) return false;
  if (evidence.how === 'fenced') return hostPod.metadata.deletionTimestamp !== undefined && isFenced(evidence.of);
  if (evidence.how === 'never') return isShownIgnored(hostPod);
  return evidence.how !== 'read' || now - evidence.at < EVIDENCE_AGE_MS;
}

/** An exit code that neither the member said nor the host knew, unless it is marked lost, and then never 0. */
function isInvented(container: ContainerStatus, known: readonly (ContainerStatus | undefined)[]): boolean {
  const end = container.state?.terminated;
  if (end === undefined) return false;
  if (known.some((one) => one?.state?.terminated?.exitCode === end.exitCode)) return false;
  return end.exitCode === 0 || end.reason !== 'MemberStatusLost';
}
