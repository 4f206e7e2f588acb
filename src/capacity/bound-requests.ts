import type { Pod } from '../kube/core-v1.ts';
import { addTo, type Amounts } from '../kube/amounts.ts';
import { holdsResources, podRequests } from './pod-requests.ts';

/** Pods of one shape share their amounts; more shapes than this start the table anew. */
const MAX_SHAPES = 1_024;

/**
 * What the host's scheduler subtracts from a virtual node: the requests of all pods that are bound to it and have not finished, as the
 * host counts them, whatever runs in the member.
 */
export class BoundRequests {
  readonly #pods = new Map<string, Amounts>();
  readonly #shapes = new Map<string, Amounts>();
  readonly #sum = new Map<string, bigint>();

  /** UIDs of the pods that count. */
  uids(): IterableIterator<string> {
    return this.#pods.keys();
  }

  get sum(): Amounts {
    return this.#sum;
  }

  /** A pod as it is now. True: the sum changed. */
  set(uid: string, pod: Pod): boolean {
    const before = this.#pods.get(uid);
    const now = holdsResources(pod) ? this.#shared(podRequests(pod)) : undefined;
    if (now === before) return false;
    if (before !== undefined) addTo(this.#sum, before, -1n);
    if (now === undefined) this.#pods.delete(uid);
    else {
      this.#pods.set(uid, now);
      addTo(this.#sum, now);
    }
    return true;
  }

  /** It is gone, or does not count. True: the sum changed. */
  delete(uid: string): boolean {
    const before = this.#pods.get(uid);
    if (before === undefined) return false;
    this.#pods.delete(uid);
    addTo(this.#sum, before, -1n);
    return true;
  }

  #shared(requests: Amounts): Amounts {
    const key = [...requests].map(([name, nanos]) => `${name}=${nanos}`).join();
    const known = this.#shapes.get(key);
    if (known !== undefined) return known;
    if (this.#shapes.size >= MAX_SHAPES) this.#shapes.clear();
    this.#shapes.set(key, requests);
    return requests;
  }
}
