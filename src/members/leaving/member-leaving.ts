import type { Logger } from 'pino';
import { MOST_NAMED } from '../../api/member-cluster-status.ts';
import { describeError } from '../../kube/errors.ts';
import { pause } from '../../kube/timers.ts';
import {
  givenUp,
  gone,
  type Leaver,
  waitingForClaims,
  waitingForCopies,
  waitingForMember,
  waitingForPods,
} from './leaving-words.ts';
import type { UndeletedList } from '../undeleted-in-words.ts';
import { inEvents, type Remains } from './remains.ts';

/** Between two looks, in ms. */
const LOOK_MS = 2_000;
/** So often what is left in the member is read anew, in ms: who removes it does so within moments. */
const READ_MS = 4_000;

/** Where a MemberCluster that was deleted stands. */
export interface LeavingState {
  reason: string;
  message: string;
  pods: number;
  copies: number;
  claims: number;
  /** By name what may remain in the member after the end. */
  mayRemain?: readonly string[];
  /** Nothing keeps it any more. */
  done: boolean;
}

export interface MemberLeavingOptions {
  member: () => Leaver;
  /** Somebody deleted it. */
  leaves: () => boolean;
  /** The administrator's word that it is gone for good, and it has not answered for long enough. */
  givenUp: () => boolean;
  /** Why the member cannot be asked, in words; undefined: it can. */
  unreachable: () => string | undefined;
  /** Virtual nodes that are there, with the pods on each as far as that is known. */
  nodes: () => readonly { name: string; pods: number | undefined; undeleted?: UndeletedList }[];
  /** Whether all virtual nodes that former processes left behind are known. */
  nodesKnown: () => boolean;
  /** Pods of the host that are bound to them. */
  podCount: () => number;
  /** Claims of the host whose data are there; undefined while that is not known. */
  claims: () => readonly string[] | undefined;
  /** Everything of ours there that caches, or the host, know of by name. */
  knownRemains: () => readonly string[];
  /** As a former process, or this one, has written it down. */
  writtenRemains: () => readonly string[];
  readRemains: (signal: AbortSignal) => Promise<Remains>;
  /** Namespaces there that we made, and that no other MemberCluster is known to use. */
  namespaces: () => readonly string[];
  /** Removes one, if it is empty; answers why it stays. */
  removeNamespace: (name: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Removes requests for certificates of its virtual nodes. */
  removeRequests: (signal: AbortSignal) => Promise<void>;
  mayWrite: () => boolean;
  event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  logger: Logger;
}

/**
 * The end of a MemberCluster that somebody deleted. Its virtual nodes retire as those of pools do that the spec does not want any
 * more, and what nobody needs is removed as ever; this one says what is still there and what to do, takes away what is only for
 * the member as a whole, and tells when nothing keeps it.
 */
export class MemberLeaving {
  readonly #o: MemberLeavingOptions;
  #state: LeavingState | undefined;
  #told: string | undefined;
  #remains: ReadonlySet<string> = new Set();

  constructor(options: MemberLeavingOptions) {
    this.#o = options;
  }

  /** Undefined while it does not leave, or that has not been looked into. */
  get state(): LeavingState | undefined {
    return this.#o.leaves() ? this.#state : undefined;
  }

  /** Works until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let again = LOOK_MS;
      if (this.#o.leaves() && this.#state?.done !== true) again = await this.#look(signal);
      await pause(again, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<number> {
    try {
      const held = this.#o.givenUp() ? this.#giveUp() : await this.#leave(signal);
      if (held !== undefined) this.#set(held);
      return held?.reason === 'CopiesRemain' ? READ_MS : LOOK_MS;
    } catch (error) {
      if (signal.aborted) return LOOK_MS;
      const problem = describeError(error);
      this.#o.logger.warn(`what is left of a member that leaves is not known: ${problem}`);
      const message = `What is left there could not be looked at or removed: ${problem}. It is tried again by itself.`;
      this.#set({ ...NOTHING, reason: 'MemberNotAsked', message });
      return READ_MS;
    }
  }

  /** In order, step by step. Answers what keeps it; undefined: nothing new is known. */
  async #leave(signal: AbortSignal): Promise<LeavingState | undefined> {
    const { member, unreachable, claims, mayWrite } = this.#o;
    const waits = this.#nodesLeft();
    if (waits !== undefined) return waits;
    const held = claims();
    if (held === undefined) return undefined;
    const why = unreachable();
    if (held.length > 0) {
      const message = waitingForClaims(member(), held, why);
      return { ...NOTHING, claims: held.length, reason: 'ClaimsRemain', message };
    }
    if (why !== undefined) return { ...NOTHING, reason: 'MemberUnreachable', message: waitingForMember(member(), why) };
    if (!mayWrite()) return undefined;
    const remains = await this.#o.readRemains(signal);
    if (remains.pods.length > 0 || remains.copies.length > 0) {
      const message = waitingForCopies([...remains.pods, ...remains.copies]);
      const counts = { pods: remains.pods.length, copies: remains.copies.length };
      return { ...NOTHING, ...counts, reason: 'CopiesRemain', message };
    }
    const stays = [...remains.others];
    for (const name of this.#o.namespaces()) {
      const reason = await this.#o.removeNamespace(name, signal);
      if (reason !== undefined) stays.push(`Namespace ${name} (${reason})`);
    }
    await this.#o.removeRequests(signal);
    const { unseen } = remains;
    const message = gone(stays, unseen);
    this.#o.logger.info({ stays, unseen }, 'the member has left');
    this.#o.event('Normal', 'Left', message);
    const mayRemain = [...stays, ...unseen].slice(0, MOST_NAMED);
    return { ...NOTHING, reason: 'NothingRemains', message, mayRemain, done: true };
  }

  #nodesLeft(): LeavingState | undefined {
    const { member, unreachable, nodes, nodesKnown, podCount } = this.#o;
    const left = nodes();
    if (left.length === 0 && nodesKnown()) return undefined;
    const seen = left.reduce((sum, { pods = 0 }) => sum + pods, 0);
    const pods = Math.max(seen, podCount());
    const names = left.map(({ name }) => name);
    const undeleted = left.flatMap((one) => one.undeleted ?? []);
    const message = waitingForPods({ member: member(), nodes: names, pods, undeleted, unreachable: unreachable() });
    return { ...NOTHING, pods, reason: pods > 0 ? 'PodsRemain' : 'NodesRemain', message };
  }

  /** Nothing in the member is waited for. */
  #giveUp(): LeavingState {
    const { member, nodes, podCount, knownRemains, writtenRemains, event, logger } = this.#o;
    this.#remains = new Set([...this.#remains, ...writtenRemains(), ...knownRemains()]);
    const names = [...this.#remains].toSorted();
    const mayRemain = names.slice(0, MOST_NAMED);
    const left = nodes();
    if (left.length > 0 || !this.#o.nodesKnown()) {
      const pods = podCount();
      const message =
        'The member was given up by an administrator. Its virtual nodes are being removed, and Kubernetes removes the pods that were on them.';
      return { ...NOTHING, pods, reason: 'GivenUp', message, mayRemain };
    }
    const message = givenUp(member(), names);
    logger.warn({ mayRemain: names }, 'the member was given up');
    event('Warning', 'GivenUp', message);
    for (const text of inEvents(names)) event('Warning', 'MayRemain', `May remain in the member: ${text}`);
    return { ...NOTHING, reason: 'GivenUp', message, mayRemain, done: true };
  }

  #set(state: LeavingState): void {
    this.#state = state;
    if (state.done || state.reason === this.#told) return;
    this.#told = state.reason;
    this.#o.event('Normal', 'Leaving', `It is being deleted, and takes no new pods. ${state.message}`);
  }
}

const NOTHING = { pods: 0, copies: 0, claims: 0, done: false };
