import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../api/wire.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import { holdsResources } from '../capacity/pod-requests.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { CapacityOf } from './member-rooms.ts';

interface Held {
  readonly node: string;
  readonly request: FitRequest;
  /** Where it is set aside. */
  capacity: VirtualNodeCapacity | undefined;
  /** Wall clock in ms. */
  readonly until: number;
}

/**
 * Room in members, and on the host's own nodes, that is set aside for a few seconds for pods a scheduler was just told a place for. A bound pod is
 * reserved by itself, but whoever sees to that may hear of the bind later than others: it keeps what was set aside, which is
 * never counted twice, until its time is over. One that was not bound after all gives the room back then.
 */
export class Reservations {
  /** Between the answer and the bind lie milliseconds, unless the API server is slow. */
  static readonly FOR_MS = 10_000;
  readonly #capacityOf: CapacityOf;
  readonly #clock: () => number;
  /** By pod UID. */
  readonly #held = new Map<string, Held>();

  constructor(capacityOf: CapacityOf, clock: () => number) {
    this.#capacityOf = capacityOf;
    this.#clock = clock;
  }

  /** For `forMs` at most; gangs are longer on their way than a single pod. */
  reserve(podUid: string, node: string, request: FitRequest, forMs: number = Reservations.FOR_MS): void {
    this.expire();
    this.release(podUid);
    const capacity = this.#capacityOf(node);
    capacity?.reserve(podUid, request);
    this.#held.set(podUid, { node, request, capacity, until: this.#clock() + forMs });
  }

  has(podUid: string): boolean {
    this.expire();
    return this.#held.has(podUid);
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
  }

  /** To be called before each question about room. */
  expire(): void {
    const now = this.#clock();
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
    capacity?.reserve(podUid, held.request);
    held.capacity = capacity;
  }
}
