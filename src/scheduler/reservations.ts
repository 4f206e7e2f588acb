import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import { holdsResources } from '../capacity/pod-requests.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { CapacityOf } from './member-fit.ts';

/** For everybody to hear of a bind, in ms. */
const BIND_HEARD_MS = 10_000;

interface Held {
  readonly node: string;
  readonly request: FitRequest;
  readonly insteadOf: readonly string[];
  /** Where it is set aside. */
  capacity: VirtualNodeCapacity | undefined;
  /** Monotonic, in ms. */
  until: number;
}

/**
 * Room in members, and on the host's own nodes, that is set aside for pods a scheduler was told a place for, while it works on them. A bound pod is
 * reserved by itself, but whoever sees to that may hear of the bind later than others: it keeps what was set aside, which is
 * never counted twice, for some seconds more. One that was not bound after all gives the room back.
 */
export class Reservations {
  readonly #capacityOf: CapacityOf;
  readonly #monotonic: () => number;
  /** By pod UID. */
  readonly #held = new Map<string, Held>();

  constructor(capacityOf: CapacityOf, monotonic: () => number) {
    this.#capacityOf = capacityOf;
    this.#monotonic = monotonic;
  }

  /** For `forMs` at most. `insteadOf`: see {@link VirtualNodeCapacity.reserve}. */
  reserve(podUid: string, node: string, request: FitRequest, forMs: number, insteadOf: readonly string[] = []): void {
    this.expire();
    this.release(podUid);
    const capacity = this.#capacityOf(node);
    capacity?.reserve(podUid, request, insteadOf);
    this.#held.set(podUid, { node, request, insteadOf, capacity, until: this.#monotonic() + forMs });
  }

  has(podUid: string): boolean {
    this.expire();
    return this.#held.has(podUid);
  }

  /** Where room is set aside for it: a node, or `local`. */
  nodeOf(podUid: string): string | undefined {
    return this.#held.get(podUid)?.node;
  }

  release(podUid: string): void {
    const held = this.#held.get(podUid);
    if (held === undefined) return;
    this.#held.delete(podUid);
    held.capacity?.release(podUid);
  }

  podSeen(pod: Pod): void {
    const { uid = '', deletionTimestamp } = pod.metadata;
    // On a node of the host it stands there for itself.
    const isThere = pod.spec.nodeName !== undefined && this.#held.get(uid)?.node === LOCAL;
    if (isThere || deletionTimestamp !== undefined || !holdsResources(pod)) this.release(uid);
    const held = this.#held.get(uid);
    if (held !== undefined && pod.spec.nodeName !== undefined) {
      held.until = Math.min(held.until, this.#monotonic() + BIND_HEARD_MS);
    }
  }

  /** To be called before each question about room. */
  expire(): void {
    const now = this.#monotonic();
    for (const [uid, held] of this.#held) {
      if (held.until <= now) this.release(uid);
      else this.#followRoom(uid, held);
    }
  }

  /** Another room behind the node may have taken the place of the one that was asked, as when this process begins to act. */
  #followRoom(podUid: string, held: Held): void {
    const capacity = this.#capacityOf(held.node);
    if (capacity === held.capacity) return;
    held.capacity?.release(podUid);
    capacity?.reserve(podUid, held.request, held.insteadOf);
    held.capacity = capacity;
  }
}
