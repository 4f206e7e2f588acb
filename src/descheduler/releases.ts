import { releasedFrom, TEMPLATE_HASH } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyFor } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { CAUGHT_UP_MS } from '../kube/reflector-timings.ts';

type Release = {
  readonly setKey: string;
  /** Its member did not answer when it was released. */
  readonly lost: boolean;
  /** From when on its time counts, in monotonic ms. */
  readonly since: number;
} & (
  | { readonly kind: 'released'; readonly pod: Pod }
  /** `until`: the caches may not show it before, in monotonic ms. */
  | { readonly kind: 'sent'; readonly until: number }
  /** `until`: its ReplicaSet should have adopted it by then, in monotonic ms. */
  | { readonly kind: 'givenBack'; readonly pod: Pod; readonly replicaSet: string; readonly until: number }
);

/** A pod that was given back, to the ReplicaSet of that name. */
export interface Unadopted {
  readonly pod: Pod;
  readonly replicaSet: string;
}

/** Pods that are out of their ReplicaSets while others come up in their places: what stands on the pods, and what was just written. */
export class Releases {
  readonly #monotonic: () => number;
  /** By UID of the pod. */
  readonly #pods = new Map<string, Release>();
  /** UIDs of pods by the key of their ReplicaSet (owner-references.ts). */
  readonly #sets = new Map<string, Set<string>>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** It is being released. */
  sent({ metadata: { uid = '' } }: Pod, setKey: string, lost = false): void {
    // Two strategies may want the same pod at once: what was seen of the first one stays.
    if (this.#pods.get(uid)?.kind === 'released') return;
    const since = this.#monotonic();
    this.#put(uid, { kind: 'sent', setKey, lost, since, until: since + CAUGHT_UP_MS });
  }

  /** The host did not take what was sent. It may have taken it from another one before. */
  notSent(pod: Pod): void {
    if (this.#pods.get(pod.metadata.uid ?? '')?.kind === 'sent') this.forget(pod);
  }

  /** It was not released after all, or is gone. Returns the ReplicaSet that it was released from. */
  forget({ metadata: { uid = '' } }: Pod): string | undefined {
    const release = this.#pods.get(uid);
    if (release !== undefined) this.#drop(uid, release);
    return release?.setKey;
  }

  /** The pod as it is now. Returns the ReplicaSet that it was released from, or that has it again. */
  seen(pod: Pod): string | undefined {
    const { uid = '' } = pod.metadata;
    const { uid: setUid, lost = false } = releasedFrom(pod) ?? {};
    const before = this.#pods.get(uid);
    const now = this.#monotonic();
    if (setUid !== undefined) {
      const setKey = keyFor(pod.metadata.namespace, setUid);
      this.#put(uid, { kind: 'released', setKey, lost, since: before?.since ?? now, pod });
      return setKey;
    }
    if (before === undefined || (before.kind === 'sent' && before.until > now)) return undefined;
    const isChosen = pod.metadata.labels?.[TEMPLATE_HASH] !== undefined;
    if (before.kind === 'sent' || !isChosen || controllerOf(pod) !== undefined) return this.forget(pod);
    // Given back, and the ReplicaSet has yet to adopt it.
    const { replicaSet, until } =
      before.kind === 'givenBack'
        ? before
        : { replicaSet: releasedFrom(before.pod)?.replicaSet ?? '', until: now + CAUGHT_UP_MS };
    this.#put(uid, { ...before, kind: 'givenBack', pod, replicaSet, until });
    return before.setKey;
  }

  /** Whether any pod of the ReplicaSet is out of it, as far as the caches show, or was given back and is not adopted. */
  has(setKey: string): boolean {
    return this.#current(setKey).length > 0;
  }

  /** Those that are released, as the caches show them. */
  of(setKey: string): Pod[] {
    return this.#current(setKey).flatMap((one) => (one.kind === 'released' ? [one.pod] : []));
  }

  /**
   * Those given back that the ReplicaSet has not adopted yet. They are its pods, though no controller reference says so: who does
   * not count them takes it for one that has fewer pods Ready than it has.
   */
  givenBack(setKey: string): Pod[] {
    const now = this.#monotonic();
    return this.#current(setKey).flatMap((one) => (one.kind === 'givenBack' && one.until > now ? [one.pod] : []));
  }

  /** Those that should have been adopted by now. They stay until somebody says {@link forget}. */
  unadopted(setKey: string): Unadopted[] {
    const now = this.#monotonic();
    return this.#current(setKey).flatMap((one) => (one.kind === 'givenBack' && one.until <= now ? [one] : []));
  }

  /**
   * Those that make room for others: those included that the caches do not show yet, and those that wait to be adopted, and none that
   * waits for its member, or is being deleted: it is replaced, or nobody asks whether it is, and in a member that does not answer it may end for days.
   */
  count(setKey: string): number {
    const now = this.#monotonic();
    const isOverdue = (one: Release): boolean => one.kind === 'givenBack' && one.until <= now;
    return this.#current(setKey).filter((one) => !one.lost && !isOverdue(one) && !isEnding(one)).length;
  }

  /** One that the caches should show by now was never released: its request got lost. */
  #current(setKey: string): Release[] {
    for (const uid of this.#sets.get(setKey) ?? []) {
      const release = this.#pods.get(uid);
      if (release?.kind === 'sent' && release.until <= this.#monotonic()) this.#drop(uid, release);
    }
    return [...(this.#sets.get(setKey) ?? [])].flatMap((uid) => this.#pods.get(uid) ?? []);
  }

  /** Its time begins anew. */
  countAnew({ metadata: { uid = '' } }: Pod): void {
    const release = this.#pods.get(uid);
    if (release !== undefined) this.#pods.set(uid, { ...release, since: this.#monotonic() });
  }

  /** How much of its time has passed before the eyes of this process, in ms, whatever wall clocks say. */
  passedMs({ metadata: { uid = '' } }: Pod): number {
    const now = this.#monotonic();
    return now - (this.#pods.get(uid)?.since ?? now);
  }

  clear(): void {
    this.#pods.clear();
    this.#sets.clear();
  }

  get total(): number {
    return this.#pods.size;
  }

  #drop(uid: string, { setKey }: Release): void {
    this.#pods.delete(uid);
    const set = this.#sets.get(setKey);
    set?.delete(uid);
    if (set?.size === 0) this.#sets.delete(setKey);
  }

  #put(uid: string, release: Release): void {
    this.#pods.set(uid, release);
    const set = this.#sets.get(release.setKey) ?? new Set();
    this.#sets.set(release.setKey, set.add(uid));
  }
}

function isEnding(one: Release): boolean {
  return one.kind !== 'sent' && one.pod.metadata.deletionTimestamp !== undefined;
}
