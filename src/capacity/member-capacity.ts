import { LRUCache } from 'lru-cache';
import { UID_LABEL } from '../api/marks.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { slotsInAllowance, whyOverAllowance } from './allowance.ts';
import type { Amounts } from '../kube/amounts.ts';
import { AskedShapes } from './asked-shapes.ts';
import type { ShapeRoom } from './asked-shapes.ts';
import { CapacityTracker, sameForUs } from './capacity-tracker.ts';
import type { Held } from './capacity-tracker.ts';
import { interPodCheck } from './inter-pod-constraints.ts';
import type { InterPodReason } from './inter-pod-constraints.ts';
import { interPodSlots } from './inter-pod-slots.ts';
import { ElasticNodes, elasticGroupOf } from './elastic.ts';
import type { ElasticGroup } from './elastic.ts';
import type { FitAnswer } from './fit-answer.ts';
import { reasonsOf } from './fit-reasons.ts';
import { fitRequestOf } from './fit-request.ts';
import type { FitRequest } from './fit-request.ts';
import type { FitShape } from './fit-shape.ts';
import { FitShapes } from './fit-shapes.ts';
import { ordinaryChoices, raiseToSlots } from './largest-slot.ts';
import { type Offer, virtualNodeOf } from './ledger.ts';
import { NamespaceRules } from './namespace-rules.ts';
import type { AdmittedRequest } from './namespace-rules.ts';
import { PodCounts } from './pod-counts.ts';
import type { CountedPod } from './pod-counts.ts';
import type { NodeChoice } from './node-choice.ts';
import { NodeTable } from './node-table.ts';
import { holdsResources, isUnschedulable } from './pod-requests.ts';
import { atMost } from '../kube/lru-limit.ts';
import { isNominated, PodsOnNodes } from './pods-on-nodes.ts';
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

type InterPodCheck = (row: number) => InterPodReason | undefined;

const MAX_REMEMBERED = 1_024;
/** kube-scheduler lets a pod rest for 10 s at the most; so long, and some more, room that comes is kept for one that waits for it, in ms. */
const NEXT_TRY_MS = 15_000;
/** Pods that wait for room in the member, at the most, for which that is done. */
const MOST_AWAITING = 32;
const NO_DEMAND = { key: '', amounts: [] };

/**
 * What a member can really take, answered from memory: which of its nodes have room for a pod, with the pods that run there
 * and those that are on their way. Fed by the informers of the member; see docs/concepts/capacity.md for what is looked at.
 */
export class MemberCapacity {
  /** What the nodes behind each virtual node add up to. */
  readonly tracker: CapacityTracker;
  readonly #hostId: string;
  readonly #clock: () => number;
  readonly #onChange: (() => void) | undefined;
  readonly #table: NodeTable;
  readonly #pods: PodsOnNodes;
  readonly #podCounts: PodCounts;
  readonly #rules: NamespaceRules;
  readonly #shapes: FitShapes;
  readonly #reservations: Reservations;
  readonly #preemption: Preemption;
  readonly #elastic: ElasticNodes;
  /** Pods of this host that the member knows, by UID of the host pod. */
  readonly #known = new Map<string, 'waiting' | 'stuck' | 'placed'>();
  /** Those of them that are on nodes. */
  readonly #ours = new Map<string, HeldPod>();
  /** Until when room is kept for pods that wait for a node that does not exist yet, or for the next try of the scheduler, in ms. */
  readonly #deadlines = new Map<string, number>();
  /** Pods that no node has room for, in which the member and we agree. */
  readonly #awaiting = new Set<string>();
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
    this.#clock = clock;
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
        const check = this.#interPodCheckOf(admitted);
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
    const answer = this.#answer(this.#rules.admit(request));
    this.#answers.set(request.key, { version, answer });
    return answer;
  }

  /** See {@link VirtualNodeCapacity.victims}. */
  victims(
    request: FitRequest,
    candidates: readonly Candidate[],
    allowed: ReadonlyMap<string, number>,
  ): Victims | undefined {
    this.#settled();
    const admitted = this.#rules.admit(request);
    const never = admitted.refused !== undefined || this.#rules.whyOverQuota(admitted) !== undefined;
    if (never || this.fits(request).fits) return undefined;
    return this.#preemption.victims(admitted, candidates, allowed, this.#allowanceFor(admitted));
  }

  /** Names of the nodes that can take the pod now, those that do not exist yet left out. */
  fittingNodes(request: FitRequest): string[] {
    this.#settled();
    const admitted = this.#rules.admit(request);
    const shape = this.#shapes.of(admitted.parts, admitted.shapeKey);
    const check = this.#interPodCheckOf(admitted);
    const names: string[] = [];
    for (let row = 0; row < this.#table.rows; row++) {
      const node = shape.fits(row) && check?.(row) === undefined ? this.#table.node(row) : undefined;
      if (node !== undefined && elasticGroupOf(node) === undefined) names.push(node.metadata.name);
    }
    return names;
  }

  /** How many such pods fit together, at most `upTo`. */
  slots(request: FitRequest, upTo: number): number {
    const version = this.#settled();
    const known = this.#counts.get(request.key);
    if (known?.version === version) return Math.min(known.slots, upTo);
    const slots = this.#slots(this.#rules.admit(request));
    this.#counts.set(request.key, { version, slots });
    return Math.min(slots, upTo);
  }

  /**
   * The most that one node has free, each resource by itself: of the nodes that the request may use, or without one of all
   * that an ordinary pod of some virtual node may use. Undefined when there is no such node.
   */
  largestFreeSlot(request?: FitRequest): Amounts | undefined {
    const version = this.#settled();
    if (request === undefined) return this.#largest(this.#ordinary);
    // Every pod that waits is told it, of each member.
    const known = this.#largestSlots.get(request.choice.key);
    if (known?.version === version) return known.slot;
    const slot = this.#largest([request.choice]);
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
    const known = this.#known.get(podUid);
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
    return this.#known.get(podUid) === 'placed';
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
    if (before !== undefined && before !== podUid) this.#forget(before);
    if (podUid === undefined) return;
    if (!holdsResources(pod)) this.#reservations.left(podUid);
    this.#noteOwn(pod, podUid);
  }

  #deletePod(pod: Pod): void {
    this.#pods.delete(pod);
    const podUid = this.#hostUidOf(pod);
    if (podUid !== undefined) this.#forget(podUid);
  }

  /** The member has no copy of the pod any more. */
  #forget(podUid: string): void {
    this.#known.delete(podUid);
    this.#reservations.left(podUid);
    this.#forgetReservation(podUid);
  }

  /** A pod of ours that the member knows: from its node on it needs no reservation. */
  #noteOwn(pod: Pod, podUid: string): void {
    const hasNode = (pod.spec.nodeName ?? '') !== '';
    if (hasNode || !holdsResources(pod) || pod.metadata.deletionTimestamp !== undefined) {
      this.#known.set(podUid, 'placed');
      this.#forgetReservation(podUid);
      return;
    }
    const stuck = isUnschedulable(pod);
    this.#known.set(podUid, stuck ? 'stuck' : 'waiting');
    // One for which others are evicted has its room on that node already.
    if (isNominated(pod)) {
      this.#forgetReservation(podUid);
      return;
    }
    const admitted = this.#rules.admit(fitRequestOf(pod, virtualNodeOf(pod, this.#hostId) ?? ''));
    if (stuck && this.#elastic.isEmpty) {
      this.#awaitRoom(podUid, admitted);
      return;
    }
    this.#reservations.reserve(podUid, admitted, 'member', false);
    if (stuck) this.#awaitNode(pod, podUid, admitted);
  }

  /** No node has room for the pod; perhaps the member is about to get one. */
  #awaitNode(pod: Pod, podUid: string, admitted: AdmittedRequest): void {
    const group = this.#reservations.elasticGroupOf(podUid);
    const created = Date.parse(pod.metadata.creationTimestamp ?? '');
    const deadline = created + (group?.leadTimeSeconds ?? 0) * 1000;
    if (group === undefined || !(deadline > this.#clock())) this.#awaitRoom(podUid, admitted);
    else this.#deadlines.set(podUid, deadline);
  }

  /**
   * The member's scheduler tries the pod again when there is room, but may let it rest before: those that are sent meanwhile would take
   * the room, again and again. Where a node has room as far as is known here, the scheduler has other reasons: nothing is kept.
   */
  #awaitRoom(podUid: string, admitted: AdmittedRequest): void {
    if (this.#deadlines.has(podUid)) return;
    this.#forgetReservation(podUid);
    if (this.#awaiting.size >= MOST_AWAITING) return;
    this.#settled();
    this.#reservations.reserve(podUid, admitted, 'stuck', false);
    if (this.#reservations.placedAs(podUid) === undefined) this.#awaiting.add(podUid);
    else this.#forgetReservation(podUid);
  }

  #forgetReservation(podUid: string): void {
    this.#reservations.drop(podUid);
    this.#deadlines.delete(podUid);
    this.#awaiting.delete(podUid);
  }

  #hostUidOf(pod: Pod): string | undefined {
    return virtualNodeOf(pod, this.#hostId) === undefined ? undefined : pod.metadata.labels?.[UID_LABEL];
  }

  /** Brings everything up to date, and returns what answers may be remembered under. */
  #settled(): number {
    if (this.#deadlines.size > 0) {
      const now = this.#clock();
      for (const [podUid, deadline] of this.#deadlines) if (deadline <= now) this.#forgetReservation(podUid);
    }
    this.#reservations.settle();
    for (const podUid of this.#awaiting) {
      if (this.#reservations.placedAs(podUid) === undefined) continue;
      this.#awaiting.delete(podUid);
      this.#deadlines.set(podUid, this.#clock() + NEXT_TRY_MS);
    }
    return this.#table.version + this.#rules.version + this.#settings;
  }

  #answer(admitted: AdmittedRequest): FitAnswer {
    if (admitted.refused !== undefined) return refused(admitted.refused, true);
    const overQuota = this.#rules.whyOverQuota(admitted);
    if (overQuota !== undefined) return refused(overQuota, false);
    const overAllowance = whyOverAllowance(admitted.requests, this.#allowanceFor(admitted));
    if (overAllowance !== undefined) return refused(overAllowance, false);
    const shape = this.#shapes.of(admitted.parts, admitted.shapeKey);
    const check = this.#interPodCheckOf(admitted);
    if (check === undefined && shape.real > 0) return { fits: true, nodes: shape.real };
    const { real, elastic, leadTimeSeconds } = this.#open(shape, check);
    if (real > 0) return { fits: true, nodes: real };
    if (elastic > 0) return { fits: true, nodes: elastic, leadTimeSeconds };
    return { fits: false, ...reasonsOf(shape, check, this.#table) };
  }

  #open(shape: FitShape, check: InterPodCheck | undefined): { real: number; elastic: number; leadTimeSeconds: number } {
    let [real, elastic, leadTimeSeconds] = [0, 0, Infinity];
    if (shape.real + shape.elastic > 0) {
      for (let row = 0; row < this.#table.rows; row++) {
        const node = shape.fits(row) && check?.(row) === undefined ? this.#table.node(row) : undefined;
        if (node === undefined) continue;
        const group = elasticGroupOf(node);
        if (group === undefined) real += 1;
        else [elastic, leadTimeSeconds] = [elastic + 1, Math.min(leadTimeSeconds, group.leadTimeSeconds)];
      }
    }
    return { real, elastic, leadTimeSeconds };
  }

  #slots(admitted: AdmittedRequest): number {
    if (admitted.refused !== undefined) return 0;
    const limit = Math.min(
      this.#rules.slotsInQuota(admitted),
      slotsInAllowance(admitted.requests, this.#allowanceFor(admitted)),
    );
    const shape = this.#shapes.of(admitted.parts, admitted.shapeKey);
    if (limit === 0 || shape.real + shape.elastic === 0) return 0;
    const check = this.#interPodCheckOf(admitted);
    const { interPod } = admitted.request;
    const hasInterPod = interPod.affinity.length + interPod.antiAffinity.length + interPod.spread.length > 0;
    if (check === undefined && !hasInterPod) return Math.min(limit, shape.slots);
    const open = new Map<number, number>();
    let sum = 0;
    for (let row = 0; row < this.#table.rows; row++) {
      if (!shape.fits(row) || check?.(row) !== undefined) continue;
      const slots = shape.slotsOn(row);
      sum += slots;
      if (hasInterPod) open.set(row, slots);
    }
    if (hasInterPod) {
      sum = interPodSlots(open, interPod, admitted.parts.choice, this.#podCounts, this.#table);
    }
    return Math.min(limit, sum);
  }

  #interPodCheckOf({ request, parts }: AdmittedRequest): InterPodCheck | undefined {
    return interPodCheck(request.interPod, parts.choice, this.#podCounts, this.#table);
  }

  #allowanceFor({ request }: AdmittedRequest): Amounts {
    return this.tracker.allowance(request.virtualNode, this.#reservations.coming({ bound: false }));
  }

  #largest(choices: readonly NodeChoice[]): Amounts | undefined {
    const largest = new Map<string, bigint>();
    for (const choice of choices) {
      raiseToSlots(largest, this.#shapes.of({ choice, demand: NO_DEMAND, hostPorts: [] }), this.#table);
    }
    return largest.size === 0 ? undefined : largest;
  }
}

function refused(text: string, unresolvable: boolean): FitAnswer {
  return { fits: false, reasons: [{ text, nodes: 0 }], unresolvable };
}
