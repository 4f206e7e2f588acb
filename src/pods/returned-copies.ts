import { UID_LABEL } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, describeError, isAnotherObject, isTransient, TransportError } from '../kube/errors.ts';
import { keyOf } from '../kube/object.ts';
import { HOST_UID_INDEX } from './pod-indexes.ts';
import type { FencingPort, MemberPort } from './pod-ports.ts';

/** So long the others wait for a deletion that fails in a way that may pass, in ms. */
const PATIENCE_MS = 30_000;

/** A copy that its member does not let be deleted: namespace and name there, and why, in the member's words. */
export interface NotEnded {
  copy: string;
  why: string;
}

export interface ReturnedCopiesOptions {
  fencing: Pick<FencingPort, 'told'>;
  member: Pick<MemberPort, 'reachable'> & { pods: Pick<MemberPort['pods'], 'byIndex'> };
  /** It is a copy of this virtual node. */
  isOurs: (memberPod: Pod) => boolean;
  /** The deletion breaker keeps the copy with that UID. */
  isKept: (uid: string) => boolean;
  /** Looks at a host pod's key again. */
  requeue: (key: string) => void;
  /** In ms. */
  monotonic: () => number;
}

/**
 * Copies of pods that were ended by an administrator's word, of one virtual node, which are back with their member: until each
 * has been told to end, or has ended by itself, nothing is made there, or told of others. Told is also one whose deletion the member
 * refused: that is tried again, and only what is to take its place waits for it.
 */
export class ReturnedCopies {
  readonly #o: ReturnedCopiesOptions;
  /** The pods that were ended, as they were when {@link #open} was worked out; undefined: it is to be worked out anew. */
  #told: FencingPort['told'] | undefined;
  /** UIDs of copies that run, or may, and have not been told to end. */
  readonly #open = new Set<string>();
  /** By UID of the copy: since when its deletion fails, in ms; `why`: the others wait for it no more. */
  readonly #failed = new Map<string, { since: number; copy: string; why?: string }>();
  /** Keys of host pods that wait for that. */
  readonly #waiting = new Set<string>();

  constructor(options: ReturnedCopiesOptions) {
    this.#o = options;
  }

  /** There are some that have not been told to end. */
  get comeFirst(): boolean {
    const { fencing, member } = this.#o;
    if (fencing.told.size === 0 || !member.reachable()) return false;
    if (this.#told !== fencing.told) this.#lookAt(fencing.told);
    return this.#isAnyOpen;
  }

  /** Others of them are kept than before. */
  keptChanged(): void {
    this.#wake();
  }

  /** Those that have been told in vain. */
  get notEnded(): readonly NotEnded[] {
    if (!this.#o.member.reachable()) return [];
    return [...this.#failed.values()].flatMap(({ copy, why }) => (why === undefined ? [] : { copy, why }));
  }

  /** A host pod's key waits: it is looked at again once all have been told. */
  heldBack(key: string): void {
    this.#waiting.add(key);
  }

  /** The cache has a member pod, or what it has may not be all that there is to know of it. */
  seen(memberPod: Pod): void {
    if (!this.#o.member.reachable()) {
      // Whatever comes back then is told anew.
      this.#told = undefined;
      this.#failed.clear();
      return;
    }
    if (this.#told === undefined) return;
    this.#take(memberPod, this.#told);
    this.#wake();
  }

  gone({ metadata: { uid = '' } }: Pod): void {
    this.#failed.delete(uid);
    if (this.#open.delete(uid)) this.#wake();
  }

  /** Its deletion failed. */
  failed(memberPod: Pod, error: unknown): void {
    const { fencing, monotonic } = this.#o;
    const { uid = '', labels } = memberPod.metadata;
    const isAnswer = error instanceof ApiError || error instanceof TransportError;
    if (!isAnswer || !fencing.told.has(labels?.[UID_LABEL] ?? '')) return;
    const now = monotonic();
    const since = this.#failed.get(uid)?.since ?? now;
    // What is gone already the watch will tell, but a webhook may answer anything.
    const mayPass = isTransient(error) || isAnotherObject(error);
    const waits = mayPass && now - since < PATIENCE_MS;
    this.#failed.set(uid, { since, copy: keyOf(memberPod), ...(waits ? {} : { why: describeError(error) }) });
    if (!waits && this.#open.delete(uid)) this.#wake();
  }

  #lookAt(told: FencingPort['told']): void {
    this.#told = told;
    this.#open.clear();
    for (const uid of told.keys())
      for (const memberPod of this.#o.member.pods.byIndex(HOST_UID_INDEX, uid)) this.#take(memberPod, told);
    this.#wake();
  }

  #take(memberPod: Pod, told: FencingPort['told']): void {
    const { uid = '', labels, deletionTimestamp } = memberPod.metadata;
    if (deletionTimestamp !== undefined) this.#failed.delete(uid);
    const isOpen =
      deletionTimestamp === undefined &&
      // Nothing of it runs any more, and how it ended is told before it is deleted.
      !isFinished(memberPod) &&
      this.#failed.get(uid)?.why === undefined &&
      told.has(labels?.[UID_LABEL] ?? '') &&
      this.#o.isOurs(memberPod);
    if (isOpen) this.#open.add(uid);
    else this.#open.delete(uid);
  }

  get #isAnyOpen(): boolean {
    for (const uid of this.#open) if (!this.#o.isKept(uid)) return true;
    return false;
  }

  #wake(): void {
    if (this.#waiting.size === 0 || this.#isAnyOpen) return;
    const keys = [...this.#waiting];
    this.#waiting.clear();
    for (const key of keys) this.#o.requeue(key);
  }
}
