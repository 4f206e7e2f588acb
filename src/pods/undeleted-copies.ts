import { isFinished } from '../api/pod-phase.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { runsFor } from './catch-up.ts';
import type { SentDeletion } from './deletion-pace.ts';
import type { EventPort, MemberPort } from './pod-ports.ts';
import { type Next, soonest } from './retry-later.ts';
import { nodeState, notDeleted, undeleted, type NodeState, type Undeleted } from './undeleted.ts';

/** So long after its grace a copy may take to go before that is told, in ms. */
const PATIENCE_MS = 60_000;
/** What still is so is told again after this time, in ms. */
const TELL_AGAIN_MS = 20 * 60_000;
/** A pod may have any grace; it is looked at again in between, in ms. */
const LONGEST_MS = 3_600_000;
/** Of a pod that says none, in seconds. */
const DEFAULT_GRACE = 30;
/** So many are named. */
const MOST_NAMED = 3;

export interface UndeletedCopiesOptions {
  member: Pick<MemberPort, 'name' | 'reachable'>;
  /** Nodes of the member. Default: nothing is known of them. */
  memberNodes?: Pick<Informer<Node>, 'hasSynced' | 'get'> | undefined;
  events: EventPort;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** Copies that do not go, of one virtual node. */
export interface UndeletedList {
  count: number;
  /** Some of them. */
  first: readonly Undeleted[];
}

/** What there is of one host pod's key. `sent`: the DELETEs that were sent for one of the copies. */
export interface CopiesFacts {
  hostPod: Pod | undefined;
  memberPod: Pod | undefined;
  /** One more copy of the same host pod, which is to go. */
  second: Pod | undefined;
  /** Why nothing may be done or told at the moment. */
  frozen: string | undefined;
  sent: SentDeletion | undefined;
}

/** A copy, as last seen, and its times: `since` wall clock, `from` and `dueAt` monotonic, in ms. */
interface Leaving {
  memberPod: Pod;
  since: number;
  from: number;
  dueAt: number;
  toldAt?: number;
}

/**
 * Copies whose deletion the member has taken, and which do not go: a finalizer of the member keeps them, or their node there is dead. Says so
 * on their host pods. What is not seen to last without a break, while the member answers, begins anew.
 */
export class UndeletedCopies {
  readonly #o: UndeletedCopiesOptions;
  /** By UID. */
  readonly #leaving = new Map<string, Leaving>();

  constructor(options: UndeletedCopiesOptions) {
    this.#o = options;
  }

  get list(): UndeletedList {
    if (!this.#o.member.reachable()) return { count: 0, first: [] };
    const now = this.#o.monotonic();
    const overdue = [...this.#leaving.values()].filter(({ dueAt }) => dueAt <= now);
    const first = overdue
      .slice(0, MOST_NAMED)
      .map(({ memberPod, since }) => undeleted(memberPod, since, this.#nodeOf(memberPod)));
    return { count: overdue.length, first };
  }

  /** Looks after the copies of one host pod's key. Answers when to look again. */
  look({ hostPod, memberPod, second, frozen, sent }: CopiesFacts): Next {
    const looks = [memberPod, second].flatMap((copy) => {
      if (copy === undefined) return [];
      const isAccepted = sent?.uid === copy.metadata.uid && (sent?.accepted ?? 0) > 0;
      const isLeaving = copy.metadata.deletionTimestamp !== undefined || isAccepted;
      const isToGo = copy === second || !isWanted(copy, hostPod);
      if (isLeaving && isToGo && frozen === undefined && this.#o.member.reachable()) return [this.#look(copy, hostPod)];
      this.gone(copy);
      return [];
    });
    return soonest(...looks);
  }

  /** It is not there any more, or is not to go. */
  gone({ metadata: { uid = '' } }: Pod): void {
    this.#leaving.delete(uid);
  }

  #look(memberPod: Pod, hostPod: Pod | undefined): Next {
    const { clock, monotonic } = this.#o;
    const own = hostPod !== undefined && runsFor(memberPod, hostPod) ? hostPod : undefined;
    const now = monotonic();
    const { uid = '' } = memberPod.metadata;
    const before = this.#leaving.get(uid);
    const from = before?.from ?? now;
    const dueAt = from + graceOf(memberPod, own) * 1000 + PATIENCE_MS;
    const leaving = { ...before, memberPod, from, dueAt, since: before?.since ?? askedAt(memberPod, own, clock()) };
    this.#leaving.set(uid, leaving);
    if (now < dueAt) return { requeueAfterMs: Math.min(LONGEST_MS, dueAt - now) };
    return own === undefined ? undefined : this.#tell(leaving, own, now);
  }

  #tell(leaving: Leaving, hostPod: Pod, now: number): Next {
    const { memberPod, since, toldAt } = leaving;
    const restMs = toldAt === undefined ? 0 : toldAt + TELL_AGAIN_MS - now;
    if (restMs > 0) return { requeueAfterMs: restMs };
    leaving.toldAt = now;
    const node = this.#nodeOf(memberPod);
    const { member, events } = this.#o;
    const told = undeleted(memberPod, since, node);
    const { reason, message } = notDeleted(member.name, memberPod, hostPod, told, node);
    events.record(podSubject(hostPod), 'Warning', reason, message);
    return { requeueAfterMs: TELL_AGAIN_MS };
  }

  #nodeOf({ spec: { nodeName } }: Pod): NodeState {
    const { memberNodes } = this.#o;
    if (memberNodes?.hasSynced !== true || nodeName === undefined || nodeName === '') return undefined;
    return nodeState(memberNodes.get(nodeName));
  }
}

/** What the host says counts: the member may say anything. */
function graceOf(memberPod: Pod, hostPod: Pod | undefined): number {
  return hostPod?.metadata.deletionGracePeriodSeconds ?? memberPod.metadata.deletionGracePeriodSeconds ?? DEFAULT_GRACE;
}

/** When its deletion was asked for, as far as that is known, in ms. */
function askedAt(memberPod: Pod, hostPod: Pod | undefined, now: number): number {
  for (const { metadata } of [hostPod, memberPod].filter((pod) => pod !== undefined)) {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
    const asked = Date.parse(deletionTimestamp ?? '') - deletionGracePeriodSeconds * 1000;
    if (asked > 0 && asked <= now) return asked;
  }
  return now;
}

/** The copy is there for a host pod that is not to end. */
function isWanted(memberPod: Pod, hostPod: Pod | undefined): boolean {
  if (hostPod === undefined || !runsFor(memberPod, hostPod)) return false;
  return hostPod.metadata.deletionTimestamp === undefined && (!isFinished(hostPod) || isFinished(memberPod));
}
