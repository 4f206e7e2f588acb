import type { Pod } from '../kube/core-v1.ts';
import type { ElasticNodes } from './elastic.ts';
import { fitRequestOf } from './fit-request.ts';
import { virtualNodeOf } from './ledger.ts';
import type { AdmittedRequest, NamespaceRules } from './namespace-rules.ts';
import { holdsResources, isUnschedulable } from './pod-requests.ts';
import { isNominated } from './pods-on-nodes.ts';
import type { Reservations } from './reservations.ts';

export interface PodsAwaitingNodesOptions {
  readonly hostId: string;
  readonly reservations: Reservations;
  readonly rules: NamespaceRules;
  readonly elastic: ElasticNodes;
  /** Wall clock in ms, to compare with creation times of pods. */
  readonly clock: () => number;
}

/** kube-scheduler lets a pod rest for 10 s at the most; so long, and some more, room that comes is kept for one that waits for it, in ms. */
const NEXT_TRY_MS = 15_000;
/** Pods that wait for room in the member, at the most, for which that is done. */
const MOST_AWAITING = 32;

/** How far a pod is in the member; `stuck`: its scheduler found no node for it. */
export type Progress = 'waiting' | 'stuck' | 'placed';

/** Pods of this host that the member knows, from their copy to their node, and the room that is kept for them meanwhile. */
export class PodsAwaitingNodes {
  readonly #o: PodsAwaitingNodesOptions;
  /** By UID of the host pod. */
  readonly #progress = new Map<string, Progress>();
  /** Until when room is kept for pods that wait for a node that does not exist yet, or for the next try of the scheduler, in ms. */
  readonly #deadlines = new Map<string, number>();
  /** Pods that no node has room for, in which the member and we agree. */
  readonly #roomless = new Set<string>();

  constructor(options: PodsAwaitingNodesOptions) {
    this.#o = options;
  }

  /** Undefined: the member does not know the pod. */
  progressOf(podUid: string): Progress | undefined {
    return this.#progress.get(podUid);
  }

  /** The copy of a pod as the member shows it now: from its node on it needs no reservation. */
  note(pod: Pod, podUid: string): void {
    const hasNode = (pod.spec.nodeName ?? '') !== '';
    if (hasNode || !holdsResources(pod) || pod.metadata.deletionTimestamp !== undefined) {
      this.#progress.set(podUid, 'placed');
      this.#drop(podUid);
      return;
    }
    const stuck = isUnschedulable(pod);
    this.#progress.set(podUid, stuck ? 'stuck' : 'waiting');
    // One for which others are evicted has its room on that node already.
    if (isNominated(pod)) {
      this.#drop(podUid);
      return;
    }
    const { rules, reservations, elastic, hostId } = this.#o;
    const admitted = rules.admit(fitRequestOf(pod, virtualNodeOf(pod, hostId) ?? ''));
    if (stuck && elastic.isEmpty) {
      this.#awaitRoom(podUid, admitted);
      return;
    }
    reservations.reserve(podUid, admitted, 'member', false);
    if (stuck) this.#awaitNode(pod, podUid, admitted);
  }

  /** The member has no copy of the pod any more. */
  forget(podUid: string): void {
    this.#progress.delete(podUid);
    this.#o.reservations.left(podUid);
    this.#drop(podUid);
  }

  /** Settles the reservations: room whose time is over is free, and room that came is kept from now on. */
  settle(): void {
    const { reservations, clock } = this.#o;
    if (this.#deadlines.size > 0) {
      const now = clock();
      for (const [podUid, deadline] of this.#deadlines) if (deadline <= now) this.#drop(podUid);
    }
    reservations.settle();
    if (this.#roomless.size > 0) this.#keepWhatCame();
  }

  #keepWhatCame(): void {
    const { reservations, clock } = this.#o;
    for (const podUid of this.#roomless) {
      if (reservations.placedAs(podUid) === undefined) continue;
      this.#roomless.delete(podUid);
      this.#deadlines.set(podUid, clock() + NEXT_TRY_MS);
    }
  }

  /** No node has room for the pod; perhaps the member is about to get one. */
  #awaitNode(pod: Pod, podUid: string, admitted: AdmittedRequest): void {
    const group = this.#o.reservations.elasticGroupOf(podUid);
    const created = Date.parse(pod.metadata.creationTimestamp ?? '');
    const deadline = created + (group?.leadTimeSeconds ?? 0) * 1000;
    if (group === undefined || !(deadline > this.#o.clock())) this.#awaitRoom(podUid, admitted);
    else this.#deadlines.set(podUid, deadline);
  }

  /**
   * The member's scheduler tries the pod again when there is room, but may let it rest before: those that are sent meanwhile would take
   * the room, again and again. Where a node has room as far as is known here, the scheduler has other reasons: nothing is kept.
   */
  #awaitRoom(podUid: string, admitted: AdmittedRequest): void {
    if (this.#deadlines.has(podUid)) return;
    this.#drop(podUid);
    if (this.#roomless.size >= MOST_AWAITING) return;
    this.settle();
    this.#o.reservations.reserve(podUid, admitted, 'stuck', false);
    if (this.#o.reservations.placedAs(podUid) === undefined) this.#roomless.add(podUid);
    else this.#drop(podUid);
  }

  #drop(podUid: string): void {
    this.#o.reservations.drop(podUid);
    this.#deadlines.delete(podUid);
    this.#roomless.delete(podUid);
  }
}
