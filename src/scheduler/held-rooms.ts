import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../kube/core-v1.ts';
import { Expiries } from '../kube/expiries.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import { holdsResources } from '../capacity/pod-requests.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { CapacityOf } from './member-fit.ts';

/** For everybody to hear of a bind, in ms. */
const BIND_HEARD_MS = 10_000;

/**
 * What room is set aside for: a place that a scheduler was told and works on, the place of a gang until its pods are bound, or what others
 * leave for a nominated pod. A pod may have more than one; it takes room once, by the first of these.
 */
export type HoldPurpose = 'told' | 'gang' | 'nomination';
const FIRST_TO_LAST: readonly HoldPurpose[] = ['told', 'gang', 'nomination'];

/** A place that room is set aside at: a node, or `local`. */
export interface HeldPlace {
  readonly node: string;
  readonly request: FitRequest;
  /** See {@link VirtualNodeCapacity.reserve}. */
  readonly insteadOf?: readonly string[];
  /** Of the pod; default 0. */
  readonly priority?: number;
}

interface Hold {
  readonly place: HeldPlace;
  /** Monotonic, in ms. */
  until: number;
}

interface Held {
  readonly holds: Map<HoldPurpose, Hold>;
  /** What is set aside in fact. */
  place: HeldPlace;
}

/** Where room is set aside behind one node, and for whom. */
interface Room {
  capacity: VirtualNodeCapacity | undefined;
  readonly podUids: Set<string>;
}

/**
 * Room in members, and on the host's own nodes, that is set aside for pods: see {@link HoldPurpose}. A bound pod is reserved by itself,
 * but whoever sees to that may hear of the bind later than others: it keeps what was set aside, which is never counted twice, for some
 * seconds more. One that was not bound after all gives the room back, unless it has it for another purpose, too.
 */
export class HeldRooms {
  readonly #capacityOf: CapacityOf;
  readonly #monotonic: () => number;
  /** By pod UID. */
  readonly #held = new Map<string, Held>();
  /** Those that hold room for their gang, too: few of the thousands that were told a place. */
  readonly #inGangs = new Set<string>();
  /** By node; those that somebody holds room behind. */
  readonly #rooms = new Map<string, Room>();
  /** UIDs of pods, until the first of their holds ends. */
  readonly #ends = new Expiries<string>();

  constructor(capacityOf: CapacityOf, monotonic: () => number) {
    this.#capacityOf = capacityOf;
    this.#monotonic = monotonic;
  }

  /** For `forMs` at most. */
  hold(purpose: HoldPurpose, podUid: string, place: HeldPlace, forMs: number): void {
    this.expire();
    const holds = this.#held.get(podUid)?.holds ?? new Map<HoldPurpose, Hold>();
    const until = this.#monotonic() + forMs;
    const nomination = holds.get('nomination')?.place;
    // What others leave for it is behind that node, whatever it holds it for.
    const insteadOf = place.insteadOf ?? (nomination?.node === place.node ? nomination.insteadOf : undefined);
    const whole = insteadOf === undefined ? place : { ...place, insteadOf };
    holds.set(purpose, { place: whole, until });
    const gang = holds.get('gang');
    // A gang has its room in a cluster, on whichever node.
    if (purpose === 'told' && gang !== undefined) holds.set('gang', { place: whole, until: gang.until });
    this.#set(podUid, holds);
  }

  /** What the pod holds already it holds for this purpose, too, so long at least. False: it holds nothing. */
  holdAlso(purpose: HoldPurpose, podUid: string, forMs: number): boolean {
    this.expire();
    const held = this.#held.get(podUid);
    if (held === undefined) return false;
    const { place, until = 0 } = held.holds.get(purpose) ?? { place: held.place };
    const later = Math.max(until, this.#monotonic() + forMs);
    held.holds.set(purpose, { place, until: later });
    if (purpose === 'gang') this.#inGangs.add(podUid);
    this.#noteEnd(podUid, held.holds);
    return true;
  }

  /** Where room is set aside for it for that purpose, and for how long still, in ms. */
  heldFor(purpose: HoldPurpose, podUid: string): { readonly node: string; readonly forMs: number } | undefined {
    this.expire();
    const hold = this.#held.get(podUid)?.holds.get(purpose);
    return hold === undefined ? undefined : { node: hold.place.node, forMs: hold.until - this.#monotonic() };
  }

  /** Without a purpose: for none any more. */
  release(podUid: string, purpose?: HoldPurpose): void {
    const held = this.#held.get(podUid);
    if (held === undefined) return;
    if (purpose === undefined) held.holds.clear();
    else held.holds.delete(purpose);
    this.#set(podUid, held.holds);
  }

  /**
   * What these pods hold for a gang or a nomination counts as free while `ask` runs, and is theirs again after it. What a scheduler was
   * told, and works on, is nobody else's meanwhile.
   */
  whileLifted<T>(podUids: Iterable<string>, ask: () => T): T {
    const lifted = [...podUids].filter((podUid) => this.#lift(podUid));
    try {
      return ask();
    } finally {
      for (const podUid of lifted) this.#putBack(podUid);
    }
  }

  /** Pods of lower priority that hold room for their gang; those of the highest come first. */
  gangsBelow(priority: number): string[] {
    this.expire();
    const found: { podUid: string; own: number }[] = [];
    for (const podUid of this.#inGangs) {
      const own = this.#held.get(podUid)?.holds.get('gang')?.place.priority ?? 0;
      if (own < priority) found.push({ podUid, own });
    }
    return found.toSorted((a, b) => b.own - a.own).map(({ podUid }) => podUid);
  }

  podSeen(pod: Pod): void {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const held = this.#held.get(uid);
    if (held === undefined) return;
    const isBound = pod.spec.nodeName !== undefined;
    // On a node of the host it stands there for itself.
    const isThere = isBound && held.place.node === LOCAL;
    if (isThere || deletionTimestamp !== undefined || !holdsResources(pod)) this.release(uid);
    else if (isBound) {
      const until = this.#monotonic() + BIND_HEARD_MS;
      for (const hold of held.holds.values()) hold.until = Math.min(hold.until, until);
      this.#noteEnd(uid, held.holds);
    }
  }

  /** To be called before each question about room. */
  expire(): void {
    this.#followRooms();
    const now = this.#monotonic();
    for (const podUid of this.#ends.takeEnded(now)) {
      const left = [...(this.#held.get(podUid)?.holds ?? [])].filter(([, { until }]) => until > now);
      this.#set(podUid, new Map(left));
    }
  }

  /** Pods that hold room, and nodes behind which some do. */
  get size(): { readonly pods: number; readonly nodes: number } {
    return { pods: this.#held.size, nodes: this.#rooms.size };
  }

  #set(podUid: string, holds: Map<HoldPurpose, Hold>): void {
    if (holds.has('gang')) this.#inGangs.add(podUid);
    else this.#inGangs.delete(podUid);
    const before = this.#held.get(podUid)?.place;
    const place = FIRST_TO_LAST.map((purpose) => holds.get(purpose)?.place).find((one) => one !== undefined);
    if (before !== undefined && (place === undefined || !isSame(before, place))) this.#free(podUid, before.node);
    this.#noteEnd(podUid, holds);
    if (place === undefined) this.#held.delete(podUid);
    else {
      this.#held.set(podUid, { holds, place });
      const room = this.#roomOf(place.node);
      room.podUids.add(podUid);
      room.capacity?.reserve(podUid, place.request, place.insteadOf);
    }
  }

  #noteEnd(podUid: string, holds: ReadonlyMap<HoldPurpose, Hold>): void {
    if (holds.size === 0) this.#ends.delete(podUid);
    else this.#ends.set(podUid, podUid, Math.min(...[...holds.values()].map(({ until }) => until)));
  }

  #free(podUid: string, node: string): void {
    const room = this.#rooms.get(node);
    room?.capacity?.release(podUid);
    room?.podUids.delete(podUid);
    if (room?.podUids.size === 0) this.#rooms.delete(node);
  }

  #roomOf(node: string): Room {
    const room = this.#rooms.get(node) ?? { capacity: this.#capacityOf(node), podUids: new Set() };
    this.#rooms.set(node, room);
    return room;
  }

  #lift(podUid: string): boolean {
    const held = this.#held.get(podUid);
    if (held === undefined || held.holds.has('told')) return false;
    return this.#rooms.get(held.place.node)?.capacity?.lift(podUid) === true;
  }

  #putBack(podUid: string): void {
    const held = this.#held.get(podUid);
    if (held !== undefined) this.#rooms.get(held.place.node)?.capacity?.putBack(podUid);
  }

  /** Another room behind a node may have taken the place of the one that was asked, as when this process begins to act. */
  #followRooms(): void {
    for (const [node, room] of this.#rooms) {
      const capacity = this.#capacityOf(node);
      if (capacity === room.capacity) continue;
      for (const podUid of room.podUids) {
        const place = this.#held.get(podUid)?.place;
        room.capacity?.release(podUid);
        if (place !== undefined) capacity?.reserve(podUid, place.request, place.insteadOf);
      }
      room.capacity = capacity;
    }
  }
}

function isSame(one: HeldPlace, other: HeldPlace): boolean {
  const [before, after] = [one.insteadOf ?? [], other.insteadOf ?? []];
  return (
    one.node === other.node &&
    one.request.key === other.request.key &&
    before.length === after.length &&
    before.every((uid, index) => uid === after[index])
  );
}
