import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { CapacityOf } from './member-fit.ts';
import type { Reservations } from './reservations.ts';

export interface NomineesOptions {
  readonly capacityOf: CapacityOf;
  readonly reservations: Reservations;
  /** Whether the node stands for a member. */
  readonly isVirtual: (nodeName: string) => boolean;
}

/** Room is held so long, in ms; longer than kube-scheduler leaves a pod that waits without another try. */
const HOLD_MS = 600_000;
const MOST = 1_024;

interface Nominee {
  readonly pod: Pod;
  readonly node: string;
}

/**
 * Pods for which others are being evicted behind a virtual node: what these leave is set aside until the pod is bound, as
 * kube-scheduler sets it aside on the node as a whole. Only pods of higher priority may have it.
 */
export class Nominees {
  readonly #o: NomineesOptions;
  /** Pods that victims were named for, by UID: the whole pod, and the UIDs of the victims by node. */
  readonly #asked = new LRUCache<string, { pod: Pod; victims: ReadonlyMap<string, readonly string[]> }>(atMost(MOST));
  /** By UID. */
  readonly #held = new Map<string, Nominee>();

  constructor(options: NomineesOptions) {
    this.#o = options;
  }

  /** Others are about to be evicted for the pod. Which of these nodes it gets stands in its status in a moment. */
  asked(pod: Pod, victims: ReadonlyMap<string, readonly string[]>): void {
    this.#asked.set(pod.metadata.uid ?? '', { pod, victims });
  }

  /**
   * Whether those that were named for the node it is nominated to still take room there. The scheduler knows that of the host's
   * own pods only, and these are gone when the caches that answer here still show their copies.
   */
  waitsForVictims({ metadata, status }: Pod): boolean {
    const node = status?.nominatedNodeName ?? '';
    const named = this.#asked.get(metadata.uid ?? '')?.victims.get(node) ?? [];
    const capacity = this.#o.capacityOf(node);
    return named.some((uid) => capacity?.holds(uid) === true);
  }

  /** As the watch shows it, which is less than the whole pod. */
  podSeen({ metadata, spec, status }: Pod): void {
    const { uid = '', deletionTimestamp } = metadata;
    const node = status?.nominatedNodeName ?? '';
    const isNominee = spec.nodeName === undefined && deletionTimestamp === undefined && node !== '';
    if (!isNominee) {
      if (spec.nodeName !== undefined || this.#held.has(uid)) this.#forget(uid, spec.nodeName === undefined);
      return;
    }
    const pod = this.#held.get(uid)?.pod ?? this.#asked.get(uid)?.pod;
    if (pod !== undefined) this.#hold(uid, { pod, node });
  }

  /** Whatever room the pod was nominated to, if that is behind a virtual node. The whole pod, as a scheduler sends it. */
  hold(pod: Pod): void {
    const node = pod.status?.nominatedNodeName ?? '';
    if (node !== '' && pod.spec.nodeName === undefined) this.#hold(pod.metadata.uid ?? '', { pod, node });
  }

  gone(uid: string): void {
    this.#asked.delete(uid);
    this.#forget(uid, true);
  }

  /** What those of lower priority hold counts as free meanwhile. */
  whileLowerStandAside<T>({ metadata, spec }: Pod, ask: () => T): T {
    const lower = [...this.#held].filter(
      ([uid, { pod }]) => uid !== metadata.uid && priorityOf(pod) < (spec.priority ?? 0),
    );
    for (const [uid] of lower) this.#o.reservations.release(uid);
    const answer = ask();
    for (const [uid, nominee] of lower) this.#reserve(uid, nominee);
    return answer;
  }

  #hold(uid: string, nominee: Nominee): void {
    const { isVirtual, reservations } = this.#o;
    if (!isVirtual(nominee.node)) return;
    const before = this.#held.get(uid);
    if (before === undefined && this.#held.size >= MOST) return;
    this.#held.set(uid, nominee);
    // What it was told a place for meanwhile is nearer to the truth.
    if (before?.node !== nominee.node || !reservations.has(uid)) this.#reserve(uid, nominee);
  }

  #reserve(uid: string, { pod, node }: Nominee): void {
    const request = this.#o.capacityOf(node)?.request(pod);
    if (request !== undefined && 'key' in request) this.#o.reservations.reserve(uid, node, request, HOLD_MS);
  }

  /** `frees`: it is not bound, so its room is free again. */
  #forget(uid: string, frees: boolean): void {
    if (this.#held.delete(uid) && frees) this.#o.reservations.release(uid);
  }
}

function priorityOf({ spec }: Pod): number {
  return spec.priority ?? 0;
}
