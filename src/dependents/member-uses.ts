import { hostKeyOf } from '../api/host-key.ts';
import { HOST_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { dependentKeyOf } from './dependent.ts';
import type { HostRef } from './host-objects.ts';
import { findReferences } from '../pods/references.ts';

/** A cache of the member's pods; ours are whole in it, and only those count. */
export interface MemberPods {
  readonly hasSynced: boolean;
  values(): Iterable<Pod>;
}

/** How old an answer may be, in ms: it is needed only where something is about to be deleted. */
const FRESH_MS = 1_000;

/** Which objects of the member our pods there refer to. Copies have the names that the host's objects have. */
export class MemberUses {
  readonly #hostId: string;
  readonly #pods: MemberPods | undefined;
  readonly #monotonic: () => number;
  /** Keys of the host pods that they run for, by object. */
  #users: ReadonlyMap<string, readonly string[]> = new Map();
  #at = Number.NEGATIVE_INFINITY;

  constructor(hostId: string, pods: MemberPods | undefined, monotonic: () => number) {
    this.#hostId = hostId;
    this.#pods = pods;
    this.#monotonic = monotonic;
  }

  /** True while it is not known. */
  has(place: HostRef): boolean {
    if (this.#pods === undefined) return false;
    return !this.#pods.hasSynced || this.#usersOf(place, this.#pods).length > 0;
  }

  /** Whether pods there refer to it, and only such as run for these pods of the host. False while it is not known. */
  hasOnly(place: HostRef, podKeys: ReadonlySet<string>): boolean {
    if (this.#pods?.hasSynced !== true) return false;
    const users = this.#usersOf(place, this.#pods);
    return users.length > 0 && users.every((podKey) => podKeys.has(podKey));
  }

  #usersOf(place: HostRef, pods: MemberPods): readonly string[] {
    const now = this.#monotonic();
    if (now - this.#at >= FRESH_MS) {
      this.#users = this.#read(pods);
      this.#at = now;
    }
    return this.#users.get(dependentKeyOf(place)) ?? [];
  }

  #read(pods: MemberPods): Map<string, string[]> {
    const all = new Map<string, string[]>();
    for (const pod of pods.values()) {
      const { namespace = '', labels } = pod.metadata;
      if (labels?.[HOST_LABEL] !== this.#hostId) continue;
      // One that names no pod of the host uses it all the same.
      const podKey = hostKeyOf(pod) ?? '';
      for (const reference of findReferences(pod)) {
        const key = dependentKeyOf({ ...reference, namespace });
        const users = all.get(key);
        if (users === undefined) all.set(key, [podKey]);
        else users.push(podKey);
      }
    }
    return all;
  }
}
