import { LRUCache } from 'lru-cache';
import { UID_LABEL } from '../api/marks.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { type Amounts, NOTHING } from '../kube/amounts.ts';
import { AskedShapes } from './asked-shapes.ts';
import type { ShapeRoom } from './asked-shapes.ts';
import { CapacityTracker, sameForUs } from './capacity-tracker.ts';
import type { Held } from './capacity-tracker.ts';
import { ElasticNodes } from './elastic.ts';
import type { ElasticGroup } from './elastic.ts';
import type { FitAnswer } from './fit-answer.ts';
import { FitAnswers } from './fit-answers.ts';
import type { FitRequest } from './fit-request.ts';
import { FitShapes } from './fit-shapes.ts';
import { ordinaryChoices } from './largest-slot.ts';
import { type Offer, virtualNodeOf } from './ledger.ts';
import { NamespaceRules } from './namespace-rules.ts';
import type { AdmittedRequest } from './namespace-rules.ts';
import { PodCounts } from './pod-counts.ts';
import type { CountedPod } from './pod-counts.ts';
import type { NodeChoice } from './node-choice.ts';
import { NodeTable } from './node-table.ts';
import { holdsResources } from './pod-requests.ts';
import { PodsAwaitingNodes } from './pods-awaiting-nodes.ts';
import { atMost } from '../kube/lru-limit.ts';
import { PodsOnNodes } from './pods-on-nodes.ts';
import type { HeldPod } from './pods-on-nodes.ts';
import type { Pool } from './pool.ts';
import { Preemption } from './preemption.ts';
import { Reservations } from './reservations.ts';
import type { ReservationHolder } from './reservations.ts';
import type { Candidate, Victims } from './victims.ts';

export interface MemberCapacityOptions {
  hostId: string;
  pools?: readonly Pool[];
  elastic?: readonly ElasticGroup[];
  /** Called for each event that changes an answer, so it must be quick. */
  onChange?: () => void;
  /** Wall clock in ms, to compare with creation times of pods. */
  clock?: () => number;
}

const MAX_REMEMBERED = 1_024;

/**
 * What a member can really take, answered from memory: which of its nodes have room for a pod, with the pods that run there
 * and those that are on their way. Fed by the informers of the member; see docs/concepts/capacity.md for what is looked at.
 */
export class MemberCapacity {
  /** What the nodes behind each virtual node add up to. */
  readonly tracker: CapacityTracker;
  readonly #hostId: string;
  readonly #onChange: (() => void) | undefined;
  readonly #table: NodeTable;
  readonly #pods: PodsOnNodes;
  readonly #podCounts: PodCounts;
  readonly #rules: NamespaceRules;
  readonly #shapes: FitShapes;
  readonly #reservations: Reservations;
  readonly #preemption: Preemption;
  readonly #elastic: ElasticNodes;
  readonly #waiting: PodsAwaitingNodes;
  readonly #fits: FitAnswers;
  /** Pods of this host on nodes of the member, by UID of the host pod. */
  readonly #ours = new Map<string, HeldPod>();
  /** For an ordinary pod. */
  #largest: { version: number; slot: Amounts | undefined } | undefined;
  /** By key of the choice of nodes. */
  readonly #largestSlots = new LRUCache<string, { version: number; slot: Amounts | undefined }>(atMost(MAX_REMEMBERED));
  readonly #answers = new LRUCache<string, { version: number; answer: FitAnswer }>(atMost(MAX_REMEMBERED));
  readonly #counts = new LRUCache<string, { version: number; slots: number }>(atMost(MAX_REMEMBERED));
  readonly #asked = new AskedShapes();
  #settings = 0;
  #ordinary: readonly NodeChoice[];

  /** Handlers for the informers of the member. */
  readonly nodeHandler = {
    added: (node: Node): void => this.#setNode(node),
    updated: (node: Node): void => this.#setNode(node),
    deleted: (node: Node): void => this.#deleteNode(node.metadata.name),
  };
  readonly podHandler = {
    added: (pod: Pod): void => this.#setPod(pod),
    updated: (pod: Pod, old?: Pod): void => this.#setPod(pod, old),
    deleted: (pod: Pod): void => this.#deletePod(pod),
  };
  readonly namespaceHandler: NamespaceRules['namespaceHandler'];
  readonly quotaHandler: NamespaceRules['quotaHandler'];
  readonly limitRangeHandler: NamespaceRules['limitRangeHandler'];

  constructor({ hostId, pools = [], elastic = [], onChange, clock = Date.now }: MemberCapacityOptions) {
    this.#hostId = hostId;
    this.#onChange = onChange;
    this.#ordinary = ordinaryChoices(pools);
    this.tracker = new CapacityTracker({ pools, ...(onChange === undefined ? {} : { onChange }) });
    this.#table = new NodeTable((row, nodeItself) => {
      this.#shapes.refresh(row, nodeItself);
      this.#reservations.rowChanged(row, nodeItself);
    });
    this.#shapes = new FitShapes(this.#table);
    this.#rules = new NamespaceRules((what) => {
      if (what === 'labels') this.#podCounts.namespacesChanged();
      else onChange?.();
    });
    this.namespaceHandler = this.#rules.namespaceHandler;
    this.quotaHandler = this.#rules.quotaHandler;
    this.limitRangeHandler = this.#rules.limitRangeHandler;
    this.#podCounts = new PodCounts(
      () => this.#placed(),
      (namespace) => this.#rules.labelsOf(namespace),
    );
    const added = (pod: CountedPod): void => this.#podCounts.add(pod);
    const removed = (pod: CountedPod): void => this.#podCounts.remove(pod);
    const held = ({ node, requests, source }: HeldPod): Held => ({
      node,
      requests,
      virtualNode: virtualNodeOf(source, hostId),
    });
    this.#pods = new PodsOnNodes(
      this.#table,
      (pod) => {
        added(pod);
        this.tracker.hold(held(pod));
        const podUid = this.#hostUidOf(pod.source);
        if (podUid !== undefined) this.#ours.set(podUid, pod);
      },
      (pod) => {
        removed(pod);
        this.tracker.release(held(pod));
        const podUid = this.#hostUidOf(pod.source);
        if (podUid !== undefined && this.#ours.get(podUid) === pod) this.#ours.delete(podUid);
      },
    );
    this.#reservations = new Reservations({
      table: this.#table,
      shapes: this.#shapes,
      rules: this.#rules,
      mayJoin: (admitted) => {
        const check = this.#fits.interPodCheckOf(admitted);
        return (row) => check?.(row) === undefined;
      },
      added,
      removed,
    });
    this.#preemption = new Preemption({
      hostId,
      table: this.#table,
      shapes: this.#shapes,
      podCounts: this.#podCounts,
      reservations: this.#reservations,
      ours: (podUid) => this.#ours.get(podUid),
    });
    this.#elastic = new ElasticNodes({
      set: (node) => {
        this.#table.setNode(node);
        this.tracker.setNode(node);
      },
      delete: (name) => {
        this.#table.deleteNode(name);
        this.tracker.deleteNode(name);
      },
    });
    this.#elastic.setGroups(elastic);
    this.#waiting = new PodsAwaitingNodes({
      hostId,
      reservations: this.#reservations,
      rules: this.#rules,
      elastic: this.#elastic,
      clock,
    });
    this.#fits = new FitAnswers({
      table: this.#table,
      shapes: this.#shapes,
      rules: this.#rules,
      podCounts: this.#podCounts,
      allowanceFor: (admitted) => this.#allowanceFor(admitted),
      hostRoomFor: (request) => this.#hostRoomFor(request),
    });
  }

  /** What the MemberCluster says now: its virtual nodes, and the nodes it can get. */
  setSpec(pools: readonly Pool[], elastic: readonly ElasticGroup[]): void {
    this.#settings += 1;
    this.#elastic.setGroups(elastic);
    this.#ordinary = ordinaryChoices(pools);
    this.tracker.setPools(pools);
  }

  /**
   * What a virtual node can offer now, pods on their way counted; undefined for one that is not in the pools.
   * @param bound what the host's scheduler subtracts for pods on it; without it what the member counts for them
   */
  offer(virtualNode: string, bound?: Amounts): Offer | undefined {
    this.#settled();
    return this.tracker.offer(virtualNode, this.#reservations.coming({ bound: true }), bound);
  }

  /** Whether a pod can run on some node now. Costs microseconds, and less when nothing changed since it was asked last. */
  fits(request: FitRequest): FitAnswer {
    const version = this.#settled();
    this.#asked.note(request);
    const known = this.#answers.get(request.key);
    if (known?.version === version) return known.answer;
    const answer = this.#fits.answer(this.#rules.admit(request));
    this.#answers.set(request.key, { version, answer });
    return answer;
  }

  /** See {@link VirtualNodeCapacity.victims}. */
  victims(request: FitRequest, candidates: readonly Candidate[]): Victims | undefined {
    if (candidates.length === 0) return undefined;
    this.#settled();
    const admitted = this.#rules.admit(request);
    const never = admitted.refused !== undefined || this.#rules.whyOverQuota(admitted) !== undefined;
    if (never || this.fits(request).fits) return undefined;
    return this.#preemption.victims(admitted, candidates, this.#allowanceFor(admitted), this.#hostRoomFor(request));
  }

  /** Names of the nodes that can take the pod now, those that do not exist yet left out. */
  fittingNodes(request: FitRequest): string[] {
    this.#settled();
    return this.#fits.nodes(this.#rules.admit(request));
  }

  /** How many such pods fit together, at most `upTo`. */
  slots(request: FitRequest, upTo: number): number {
    const version = this.#settled();
    const known = this.#counts.get(request.key);
    if (known?.version === version) return Math.min(known.slots, upTo);
    const slots = this.#fits.slots(this.#rules.admit(request));
    this.#counts.set(request.key, { version, slots });
    return Math.min(slots, upTo);
  }

  /**
   * The most that one node has free, each resource by itself: of the nodes that the request may use, or without one of all
   * that an ordinary pod of some virtual node may use. Undefined when there is no such node.
   */
  largestFreeSlot(request?: FitRequest): Amounts | undefined {
    const version = this.#settled();
    if (request === undefined) {
      if (this.#largest?.version !== version)
        this.#largest = { version, slot: this.#fits.largestFreeSlot(this.#ordinary) };
      return this.#largest.slot;
    }
    // Every pod that waits is told it, of each member.
    const known = this.#largestSlots.get(request.choice.key);
    if (known?.version === version) return known.slot;
    const slot = this.#fits.largestFreeSlot([request.choice]);
    this.#largestSlots.set(request.choice.key, { version, slot });
    return slot;
  }

  /** How many more pods of the shapes that were asked about last fit. */
  roomForShapes(): ShapeRoom[] {
    return this.#asked.rooms((request, upTo) => this.slots(request, upTo));
  }

  /**
   * Sets room aside for a pod that the member does not show yet; again for the same pod replaces it. `insteadOf`: see
   * {@link VirtualNodeCapacity.reserve}.
   */
  reserve(
    podUid: string,
    request: FitRequest,
    holder: ReservationHolder = 'choice',
    insteadOf: readonly string[] = [],
  ): void {
    const known = this.#waiting.progressOf(podUid);
    if (known === 'placed' || known === 'stuck') return;
    // What the member shows of a pod is truer than what was foreseen.
    if (known === 'waiting' && this.#reservations.join(podUid, holder)) return;
    this.#settled();
    const victims = this.#takingRoom(request.virtualNode, insteadOf);
    this.#reservations.reserve(podUid, this.#rules.admit(request), holder, known === undefined, victims);
    this.#onChange?.();
  }

  release(podUid: string, holder: ReservationHolder = 'choice'): void {
    this.#reservations.release(podUid, holder);
    this.#onChange?.();
  }

  /** See {@link VirtualNodeCapacity.lift}. */
  lift(podUid: string): boolean {
    return this.#reservations.lift(podUid);
  }

  putBack(podUid: string): void {
    this.#reservations.putBack(podUid);
  }

  /** Whether a pod of the host takes room, or has some set aside. */
  holds(podUid: string): boolean {
    return this.wasPlaced(podUid) || this.#reservations.has(podUid);
  }

  /** The member was seen to have a node for the pod, or to have had one. */
  wasPlaced(podUid: string): boolean {
    return this.#waiting.progressOf(podUid) === 'placed';
  }

  /** For tests and metrics: pods on nodes, and pods on their way. */
  get size(): { pods: number; reservations: number } {
    return { pods: this.#pods.size, reservations: this.#reservations.size };
  }

  /** Of these pods of the host those that are on nodes of the member, by UID. */
  #takingRoom(virtualNode: string, podUids: readonly string[]): Map<string, HeldPod> {
    const found = new Map<string, HeldPod>();
    for (const podUid of podUids) {
      const pod = this.#ours.get(podUid);
      if (pod !== undefined && virtualNodeOf(pod.source, this.#hostId) === virtualNode) found.set(podUid, pod);
    }
    return found;
  }

  *#placed(): Generator<CountedPod> {
    yield* this.#pods.values();
    yield* this.#reservations.values();
  }

  #setNode(node: Node): void {
    this.tracker.setNode(node);
    const row = this.#table.rowOf(node.metadata.name);
    const before = row === undefined ? undefined : this.#table.node(row);
    if (before !== undefined && sameForUs(before, node)) this.#table.renewNode(node);
    else this.#table.setNode(node);
    this.#elastic.noteNode(node);
  }

  #deleteNode(name: string): void {
    this.tracker.deleteNode(name);
    this.#table.deleteNode(name);
    this.#elastic.noteNodeGone(name);
  }

  #setPod(pod: Pod, old?: Pod): void {
    this.#pods.set(pod);
    const podUid = this.#hostUidOf(pod);
    const before = old === undefined ? undefined : this.#hostUidOf(old);
    // Whoever may label pods in the member can make it the copy of another one.
    if (before !== undefined && before !== podUid) this.#waiting.forget(before);
    if (podUid === undefined) return;
    if (!holdsResources(pod)) this.#reservations.left(podUid);
    this.#waiting.note(pod, podUid);
  }

  #deletePod(pod: Pod): void {
    this.#pods.delete(pod);
    const podUid = this.#hostUidOf(pod);
    if (podUid !== undefined) this.#waiting.forget(podUid);
  }

  #hostUidOf(pod: Pod): string | undefined {
    return virtualNodeOf(pod, this.#hostId) === undefined ? undefined : pod.metadata.labels?.[UID_LABEL];
  }

  /** Brings everything up to date, and returns what answers may be remembered under. */
  #settled(): number {
    this.#waiting.settle();
    return this.#table.version + this.#rules.version + this.#settings;
  }

  #allowanceFor({ request }: AdmittedRequest): Amounts {
    return this.tracker.allowance(request.virtualNode, this.#reservations.coming({ bound: false }));
  }

  /** What is left of the resources of which the host's scheduler counts more for the pod than the member. */
  #hostRoomFor({ virtualNode, hostCount }: FitRequest): Amounts {
    if (hostCount === undefined) return NOTHING;
    return this.tracker.roomLeft(virtualNode, this.#reservations.coming({ bound: false }), hostCount.keys());
  }
}
