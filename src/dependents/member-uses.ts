import { HOST_LABEL } from '../api/marks.ts';
import type { Pod } from '../api/wire.ts';
import { entryKeyOf } from './entry.ts';
import type { HostRef } from './host-objects.ts';
import { findReferences } from './references.ts';

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
  readonly #clock: () => number;
  #keys: ReadonlySet<string> = new Set();
  #at = Number.NEGATIVE_INFINITY;

  constructor(hostId: string, pods: MemberPods | undefined, clock: () => number) {
    this.#hostId = hostId;
    this.#pods = pods;
    this.#clock = clock;
  }

  /** True while it is not known. */
  has(place: HostRef): boolean {
    if (this.#pods === undefined) return false;
    if (!this.#pods.hasSynced) return true;
    const now = this.#clock();
    if (now - this.#at >= FRESH_MS) {
      this.#keys = this.#read(this.#pods);
      this.#at = now;
    }
    return this.#keys.has(entryKeyOf(place));
  }

  #read(pods: MemberPods): Set<string> {
    const keys = new Set<string>();
    for (const pod of pods.values()) {
      if (pod.metadata.labels?.[HOST_LABEL] !== this.#hostId) continue;
      const { namespace = '' } = pod.metadata;
      for (const reference of findReferences(pod)) keys.add(entryKeyOf({ ...reference, namespace }));
    }
    return keys;
  }
}
