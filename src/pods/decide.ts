import { HOST_LABEL, MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod, PodStatus } from '../kube/core-v1.ts';
import { type CreationIntent, intentOf, needsIntent } from './creation-intent.ts';
import { ignoredStatus } from './daemon-pod.ts';
import { isFinished } from '../api/pod-phase.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Hold } from './hold.ts';
import { mirroredUid } from './host-status.ts';
import { lostStatus, neverStartedStatus } from './lost-status.ts';
import { memberUnreachable } from './member-unreachable.ts';
import { statusPatch } from './status-patch.ts';

/** What is known besides the two pods. Lazy where finding out costs something. */
export interface PodFacts {
  /** Name of the MemberCluster and the host's id in marks. */
  member: string;
  hostId: string;
  nodeName: string;
  /** Set while nothing at all may be done: caches not synced, lease not held, member identity changed. */
  frozen?: string;
  /** By the word of an administrator nothing runs on the virtual node any more, and that counts: of the host alone, whatever is frozen. */
  fenced?: boolean;
  /** Copies of pods that were ended by that word are back, and not all have been told to end. */
  endsFirst?: () => boolean;
  /** The member answers its probe. */
  reachable: boolean;
  /** Reason of condition `Reachable` while the member is not; absent: not known yet. */
  unreachableBecause?: string | undefined;
  /** A member pod exists or existed that the host pod does not know of; `overdue`: the watch should have shown it by now. */
  created?: { overdue: boolean };
  /** Creations of ours for this host pod may be carried out by the member still, for so long, in ms. */
  unansweredMs?: number;
  /** They are for another namespace than the one in which the pod would be made now. */
  unansweredElsewhere?: boolean;
  /** One more copy of the same host pod. */
  second?: Pod;
  /** This process knows that nothing has come of the intent on the host pod, nor will. */
  intentSettled?: boolean;
  /** The last state of a member pod of this key that the watch reported as deleted, in this process's life. */
  departed?: Pod;
  /** The watch of the host reported the deletion of the pod with this UID. */
  hostDeletionSeen: (uid: string) => boolean;
  /** The member pod lacks changes that were made to the host pod. */
  outdated: (hostPod: Pod, memberPod: Pod) => boolean;
  /** The status the host pod should have. */
  hostStatus: (hostPod: Pod, memberPod: Pod) => PodStatus;
  /** It is not to run in the member at all, although it is bound to this node: a pod of a DaemonSet. */
  ignored: (hostPod: Pod) => boolean;
  /** Annotations of ours that the host pod should have; null: should not. */
  hostAnnotations: (memberPod: Pod) => Readonly<Record<string, string | null>>;
  /** RFC 3339. */
  now: string;
}

type StatusPatch = {
  do: 'patch-status';
  hostPod: Pod;
  memberPod: Pod;
  status: PodStatus;
  patch: Record<string, unknown>;
};

export type Action =
  | { do: 'nothing' }
  /** Not now; something else will wake this key up. Users need not be told. */
  | { do: 'wait'; why: string; againMs?: number }
  /** Not now, and users are told why on the host pod. */
  | { do: 'hold'; hold: Hold; againMs?: number }
  /** The pod is not to run in the member: show that. */
  | { do: 'ignore'; hostPod: Pod; patch: Record<string, unknown> }
  | { do: 'create'; hostPod: Pod }
  /** A creation was begun and nobody knows what came of it: ask the member's history; make it, or report it as lost. */
  | { do: 'look-back'; hostPod: Pod; intent: CreationIntent; lost: PodStatus; forgotten: PodStatus }
  /** `otherwise`: what is to be told meanwhile where the member does not take the change. */
  | { do: 'update'; hostPod: Pod; memberPod: Pod; otherwise: StatusPatch | undefined }
  /** There are two copies of the host pod: end `second`, if the other one is really there. */
  | { do: 'end-second-copy'; hostPod: Pod; memberPod: Pod; second: Pod }
  | { do: 'delete-member'; hostPod: Pod; memberPod: Pod; gracePeriodSeconds: number | undefined }
  /** The member pod has no host pod, or one that should not run any more: read the host, then delete it or leave it. */
  | { do: 'collect'; memberPod: Pod; deletionSeen: boolean }
  | StatusPatch
  /** The member pod is missing: unless it was seen to go (`departed`), read the member; then report the pod as lost. */
  | { do: 'report-lost'; hostPod: Pod; status: PodStatus; departed: Pod | undefined }
  /** The host pod's deletion can end although nobody can ask the member: what may come back there is written down first. */
  | { do: 'end-fenced'; hostPod: Pod; status: PodStatus | undefined; departed: Pod | undefined }
  /** The host pod's deletion can end: final status, then removal. */
  | { do: 'finish-deletion'; hostPod: Pod; status: PodStatus | undefined; departed: Pod | undefined };

/** So long a new pod waits without a word for a former one that is being deleted, in ms. */
const LEAVING_MS = 10_000;

const JUST_CREATED: Action = { do: 'wait', why: 'the member pod was just created and is not in the cache yet' };

/**
 * The one place where the safety rules of a pod's life are decided: what should be done next, given the host pod, the
 * pod that sits at its place in the member, and the facts. Pure. At most one action is answered; its effect comes back
 * through the caches and is decided upon anew.
 */
export function decide(hostPod: Pod | undefined, memberPod: Pod | undefined, facts: PodFacts): Action {
  if (facts.fenced === true && hostPod?.metadata.deletionTimestamp !== undefined) {
    const departed = departedOf(hostPod, facts);
    return { do: 'end-fenced', hostPod, status: lastStatus(hostPod, departed, facts), departed };
  }
  const action = inOrder(hostPod, memberPod, facts);
  return WAITING.has(action.do) && facts.endsFirst?.() === true ? ENDS_FIRST : action;
}

/** What is not done before copies that are to end have been told so. */
const WAITING: ReadonlySet<Action['do']> = new Set(['create', 'look-back', 'update', 'patch-status']);
/** Whoever answers `endsFirst` wakes the key when that is over; `againMs` is for what nobody thought of. */
export const ENDS_FIRST: Action = {
  do: 'wait',
  why: 'copies of pods that were ended while the member was out of service are told to end first',
  againMs: 30_000,
};

function inOrder(hostPod: Pod | undefined, memberPod: Pod | undefined, facts: PodFacts): Action {
  if (facts.frozen !== undefined) return { do: 'wait', why: facts.frozen };
  const labels = memberPod?.metadata.labels;
  const ours =
    memberPod !== undefined && labels?.[HOST_LABEL] === facts.hostId && labels[NODE_LABEL] === facts.nodeName;
  if (hostPod === undefined) return ours ? withoutHost(memberPod, facts) : { do: 'nothing' };
  if (ours && memberPod.metadata.labels?.[UID_LABEL] !== hostPod.metadata.uid) {
    // A former pod of that name: it has to be gone before the new one may start (invariant I6).
    return isLeaving(memberPod) ? untilGone(hostPod, memberPod, facts) : withoutHost(memberPod, facts);
  }
  const own = ours ? memberPod : undefined;
  if (own !== undefined && facts.second !== undefined) {
    return { do: 'end-second-copy', hostPod, memberPod: own, second: facts.second };
  }
  if (hostPod.metadata.deletionTimestamp !== undefined) return deleting(hostPod, own, facts);
  if (isFinished(hostPod)) return finished(own, facts);
  if (own !== undefined) return running(hostPod, own, facts);
  return missing(hostPod, memberPod, facts);
}

function withoutHost(memberPod: Pod, facts: PodFacts): Action {
  const uid = memberPod.metadata.labels?.[UID_LABEL] ?? '';
  if (isLeaving(memberPod)) return { do: 'wait', why: 'the member pod is being deleted' };
  return { do: 'collect', memberPod, deletionSeen: facts.hostDeletionSeen(uid) };
}

function deleting(hostPod: Pod, memberPod: Pod | undefined, facts: PodFacts): Action {
  if (memberPod === undefined) return finishDeletion(hostPod, facts);
  if (isFinished(memberPod) && !isFinished(hostPod)) {
    // Once it is gone nothing knows any more how it ended.
    const told = mirror(hostPod, memberPod, facts);
    if (told.do !== 'nothing') return told;
  }
  const asked = memberPod.metadata.deletionTimestamp;
  const grace = hostPod.metadata.deletionGracePeriodSeconds;
  const shortened = (memberPod.metadata.deletionGracePeriodSeconds ?? 0) > (grace ?? Number.POSITIVE_INFINITY);
  if (asked === undefined || shortened) return { do: 'delete-member', hostPod, memberPod, gracePeriodSeconds: grace };
  return mirror(hostPod, memberPod, facts);
}

function finishDeletion(hostPod: Pod, facts: PodFacts): Action {
  const seenGo = departedOf(hostPod, facts);
  if (seenGo === undefined && facts.created?.overdue === false) return JUST_CREATED;
  if (facts.unansweredMs !== undefined) {
    return { do: 'hold', hold: creationUnanswered(facts.member), againMs: facts.unansweredMs };
  }
  return {
    do: 'finish-deletion',
    hostPod,
    status: lastStatus(hostPod, seenGo, facts),
    departed: seenGo,
  };
}

/**
 * What the member pod said last, if it said more than the host knows. A member pod that went without an end of its own
 * (a fake kubelet, a forced deletion), or never came to be, needs a made-up final phase only where somebody waits to read
 * it: finalizers, as the Job controller sets them, keep the host pod around for exactly that (KEP-3329, KEP-3939).
 */
function lastStatus(hostPod: Pod, departed: Pod | undefined, facts: PodFacts): PodStatus | undefined {
  if (isFinished(hostPod)) return undefined;
  if (departed !== undefined && isFinished(departed)) {
    const status = facts.hostStatus(hostPod, departed);
    return statusPatch(hostPod, status) === undefined ? undefined : status;
  }
  if ((hostPod.metadata.finalizers ?? []).length === 0) return undefined;
  const began =
    mirroredUid(hostPod) !== undefined ||
    departed !== undefined ||
    facts.created !== undefined ||
    (facts.intentSettled !== true && intentOf(hostPod) !== undefined);
  if (!began) return neverStartedStatus(hostPod, facts.member, facts.now);
  return lostStatus(
    hostPod,
    'MemberStatusLost',
    `The pod was deleted; cluster "${facts.member}" did not say how it ended.`,
    facts.now,
  );
}

function finished(memberPod: Pod | undefined, facts: PodFacts): Action {
  // Final is final (I4). A copy that still runs would be work done twice once a controller replaces the host pod.
  if (memberPod === undefined || isFinished(memberPod)) return { do: 'nothing' };
  return withoutHost(memberPod, facts);
}

function running(hostPod: Pod, memberPod: Pod, facts: PodFacts): Action {
  const settled = memberPod.metadata.deletionTimestamp !== undefined || isFinished(memberPod);
  const told = mirror(hostPod, memberPod, facts);
  if (settled || !facts.outdated(hostPod, memberPod)) return told;
  return { do: 'update', hostPod, memberPod, otherwise: told.do === 'nothing' ? undefined : told };
}

function mirror(hostPod: Pod, memberPod: Pod, facts: PodFacts): StatusPatch | { do: 'nothing' } {
  if (isFinished(hostPod)) return { do: 'nothing' };
  const status = facts.hostStatus(hostPod, memberPod);
  const patch = statusPatch(hostPod, status, facts.hostAnnotations(memberPod));
  return patch === undefined ? { do: 'nothing' } : { do: 'patch-status', hostPod, memberPod, status, patch };
}

function missing(hostPod: Pod, stranger: Pod | undefined, facts: PodFacts): Action {
  const seenGo = departedOf(hostPod, facts);
  const remembered = mirroredUid(hostPod);
  if (seenGo !== undefined) {
    const status = isFinished(seenGo) ? facts.hostStatus(hostPod, seenGo) : vanished(hostPod, facts);
    return { do: 'report-lost', hostPod, status, departed: seenGo };
  }
  if (facts.created?.overdue === false) return JUST_CREATED;
  if (remembered !== undefined || facts.created !== undefined) {
    return { do: 'report-lost', hostPod, status: vanished(hostPod, facts), departed: undefined };
  }
  const intent = facts.intentSettled === true ? undefined : intentOf(hostPod);
  if (intent === undefined && facts.ignored(hostPod)) {
    const patch = statusPatch(hostPod, ignoredStatus(hostPod, facts.member, facts.now));
    return patch === undefined ? { do: 'nothing' } : { do: 'ignore', hostPod, patch };
  }
  if (stranger !== undefined) return occupied(hostPod, stranger, facts);
  if (!facts.reachable) return { do: 'hold', hold: memberUnreachable(facts.member, facts.unreachableBecause) };
  if (intent !== undefined) return lookBack(hostPod, intent, facts);
  if (facts.unansweredMs !== undefined) {
    const againMs = facts.unansweredMs;
    const hold = { do: 'hold', hold: creationUnanswered(facts.member), againMs } as const;
    // Where it may come to life, no name would keep a second one from running beside it.
    if (facts.unansweredElsewhere === true) return hold;
    // A copy that has ended leaves its name to one that comes late. What the last try came to is said already.
    const isSaid = conditionOf(hostPod, MIRRORED_CONDITION)?.reason === 'MemberUnavailable';
    if (needsIntent(hostPod)) {
      return isSaid ? { do: 'wait', why: 'an earlier creation may be carried out still', againMs } : hold;
    }
  }
  return { do: 'create', hostPod };
}

function lookBack(hostPod: Pod, intent: CreationIntent, facts: PodFacts): Action {
  const message = `Cluster "${facts.member}" was asked to create the pod and did not answer; whether it ever ran there can no longer be found out. It is not started again; its controller, if it has one, replaces it.`;
  const forgotten = lostStatus(hostPod, 'MemberPodLost', message, facts.now);
  return { do: 'look-back', hostPod, intent, lost: vanished(hostPod, facts), forgotten };
}

/**
 * Until it is known that no copy will come to life any more, a host pod is not removed, as nobody would end the copy, and no
 * other is made in another namespace; nor at all of a pod that must not run twice.
 */
export function creationUnanswered(member: string): Hold {
  return {
    reason: 'CreationUnanswered',
    message: `Cluster "${member}" did not answer the creation of the pod, and may carry it out still. That is waited for, for a minute or so, before the pod is made again, or given up; nothing needs to be done.`,
  };
}

/** Its place is taken by a pod of somebody else, or by a former one on another virtual node, which sees to it. */
function occupied(hostPod: Pod, stranger: Pod, facts: PodFacts): Action {
  if (isLeaving(stranger) && stranger.metadata.labels?.[HOST_LABEL] === facts.hostId) {
    return untilGone(hostPod, stranger, facts);
  }
  return { do: 'hold', hold: nameTaken(hostPod, stranger, facts) };
}

/** A former pod of that name is being deleted. What takes longer than a moment is told. */
function untilGone(hostPod: Pod, former: Pod, facts: PodFacts): Action {
  const why = 'a former pod of that name is being deleted';
  // What one that has had a copy of its own remembers of it is not to be written over.
  const isNew = mirroredUid(hostPod) === undefined && facts.created === undefined;
  if (!isNew || isLeaving(hostPod) || isFinished(hostPod)) return { do: 'wait', why };
  const restMs = Date.parse(hostPod.metadata.creationTimestamp ?? '') + LEAVING_MS - Date.parse(facts.now);
  if (restMs > 0) return { do: 'wait', why, againMs: Math.min(restMs, LEAVING_MS) };
  if (!facts.reachable) return { do: 'hold', hold: memberUnreachable(facts.member, facts.unreachableBecause) };
  const { namespace = '', name } = former.metadata;
  const message =
    `Cluster "${facts.member}" still has a former pod ${namespace}/${name}, which is being deleted there. Pod ${hostPod.metadata.name} starts when that one is gone. ` +
    'Where that does not come by itself, its node there may be dead, or a finalizer keep it.';
  return { do: 'hold', hold: { reason: 'FormerPodLeaving', message } };
}

function isLeaving({ metadata: { deletionTimestamp } }: Pod): boolean {
  return deletionTimestamp !== undefined;
}

/** The departed member pod, if it ran for exactly this host pod. */
function departedOf(hostPod: Pod, facts: PodFacts): Pod | undefined {
  return facts.departed?.metadata.labels?.[UID_LABEL] === hostPod.metadata.uid ? facts.departed : undefined;
}

function vanished(hostPod: Pod, facts: PodFacts): PodStatus {
  return lostStatus(
    hostPod,
    'MemberPodLost',
    `The pod no longer exists in cluster "${facts.member}" and did not say how it ended. It is not started again; its controller, if it has one, replaces it.`,
    facts.now,
  );
}

export function nameTaken(hostPod: Pod, stranger: Pod, facts: { member: string; hostId: string }): Hold {
  const { namespace = '', name, labels } = stranger.metadata;
  if (labels?.[HOST_LABEL] === facts.hostId) {
    return {
      reason: 'NameTaken',
      message: `Cluster "${facts.member}" still has a pod ${namespace}/${name} that ran on virtual node "${labels[NODE_LABEL]}". Pod ${hostPod.metadata.name} starts when that one is gone.`,
    };
  }
  return {
    reason: 'NameTaken',
    message: `Cluster "${facts.member}" already has a pod ${namespace}/${name} that does not belong to this host. It is left alone; pod ${hostPod.metadata.name} starts when that one is gone, or under another name.`,
  };
}
