import type { Pod } from '../kube/core-v1.ts';
import type { Offer } from './allocatable.ts';
import { addTo, type Amounts, formatAmounts, parseAmounts, raiseTo } from '../kube/amounts.ts';
import { holdsResources, podRequests } from './pod-requests.ts';

/**
 * Requests of host pods that are bound to a virtual node and take nothing of its member. The host's scheduler subtracts
 * them all the same, so they are offered on top.
 */
export class HostOnlyRequests {
  readonly #pods = new Map<string, Amounts>();
  readonly #sum = new Map<string, bigint>();

  /** Whether the pod takes nothing; to be told again when it changes, and `false` when it is gone. True: the sum changed. */
  set(key: string, pod: Pod, takesNothing: boolean): boolean {
    const before = this.#pods.get(key);
    const counts = takesNothing && holdsResources(pod);
    if (before === undefined && !counts) return false;
    if (before !== undefined) addTo(this.#sum, before, -1n);
    this.#pods.delete(key);
    if (counts) {
      const requests = podRequests(pod);
      this.#pods.set(key, requests);
      addTo(this.#sum, requests);
    }
    return true;
  }

  /** The offer with room for these pods. */
  onTopOf<O extends Pick<Offer, 'capacity' | 'allocatable'>>(offer: O): O {
    if (this.#sum.size === 0) return offer;
    const allocatable = parseAmounts(offer.allocatable);
    addTo(allocatable, this.#sum);
    const capacity = parseAmounts(offer.capacity);
    raiseTo(capacity, allocatable);
    return { ...offer, capacity: formatAmounts(capacity), allocatable: formatAmounts(allocatable) };
  }
}
