import { LRUCache } from 'lru-cache';
import { isActive } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { controllerKeyOf } from '../kube/owner-references.ts';
import { durationInWords } from '../placement/duration.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { ordinalOf, unmadePods } from './unmade-pods.ts';
import type { Held } from './wanted-move.ts';

/** A controller that is to make a pod, and makes none for so long (ms), is kept from it. */
const IDLE_MS = 60_000;
/** Between two looks at one that makes none, in ms. */
const LOOK_MS = 15_000;

export interface IdleControllersOptions {
  placed: Pick<PlacedPods, 'workloadByKey' | 'ofController'>;
  /** In ms. */
  monotonic: () => number;
}

/** A controller that has fewer pods than it asks for, or could make none after one that it waits for. Times in monotonic ms. */
interface Short {
  /** Since when it was seen to make none that it could make. */
  readonly since: number;
  /** UIDs of pods that it had then. */
  readonly had: ReadonlySet<string>;
  /** The last look that did not show yet what it has made. */
  readonly madeAt: number;
  readonly lookedAt: number;
}

/**
 * Controllers that have fewer pods than they ask for and make none, as a quota, a webhook or PodSecurity refuses each: what is evicted of these has nobody in
 * its place. One that this process has not seen to make any, nor to have all of them, within the last minute counts as one of them: a former process
 * may have taken its pods, and nobody looks while nothing is to be moved. So with those that make their pods in order, and wait for one: that counts for those after it.
 */
export class IdleControllers {
  readonly #o: IdleControllersOptions;
  /** By key of the controller, when it was last seen to have all its pods, and to wait for none (monotonic ms). */
  readonly #wholeAt = new LRUCache<string, number>(atMost());
  /** Until nobody has looked for so long: what was made since then says nothing of now. */
  readonly #short: LRUCache<string, Short>;

  constructor(options: IdleControllersOptions) {
    this.#o = options;
    const perf = { now: options.monotonic };
    this.#short = new LRUCache({ ...atMost(), ttl: IDLE_MS, ttlResolution: 0, perf });
  }

  /** Why no other pod is made for one that its controller loses, as this look finds it; undefined: one may well be. `ends`: it counts only with pods on their way out. */
  whyNoneComes(pod: Pod, ends = false): Held | undefined {
    const { placed, monotonic } = this.#o;
    const key = controllerKeyOf(pod) ?? '';
    const controller = placed.workloadByKey(key);
    if (controller === undefined) return undefined;
    const pods = placed.ofController(key);
    const unmade = unmadePods(controller, pods);
    if (unmade === undefined) return undefined;
    const { count, waitsFor } = unmade;
    const now = monotonic();
    if (count === 0 && waitsFor === undefined) {
      this.#wholeAt.set(key, now);
      this.#short.delete(key);
      return undefined;
    }
    const { since, madeAt } = this.#seenShort(key, pods, waitsFor !== undefined);
    const wholeAt = this.#wholeAt.get(key) ?? -Infinity;
    if (waitsFor !== undefined) {
      // That it makes that one again and again is nothing to those after it; those before it are made, and one that is not Ready is not missed.
      const isKept = (one: Pod): boolean =>
        isReady(one) && ordinalOf(one, controller) > ordinalOf(waitsFor, controller);
      if (!isKept(pod) || now - wholeAt <= IDLE_MS) return undefined;
      return { ...heldInOrder(controller, waitsFor), ofThese: pods.filter(isKept) };
    }
    if (now - Math.max(wholeAt, madeAt) <= IDLE_MS) return undefined;
    if (ends && pods.every(({ metadata }) => metadata.deletionTimestamp === undefined)) return undefined;
    return held(controller, count, now - since);
  }

  /** `waits`: it could make none now. */
  #seenShort(key: string, pods: readonly Pod[], waits: boolean): Short {
    const lookedAt = this.#o.monotonic();
    const known = this.#short.get(key);
    const isNew = ({ metadata: { uid = '' } }: Pod): boolean => known?.had.has(uid) === false;
    const isSame = known !== undefined && !pods.some(isNew);
    const short = {
      since: isSame && !waits ? known.since : lookedAt,
      had: isSame ? known.had : new Set(pods.map(({ metadata: { uid = '' } }) => uid)),
      madeAt: (isSame ? known.madeAt : known?.lookedAt) ?? -Infinity,
      lookedAt,
    };
    this.#short.set(key, short);
    return short;
  }
}

function heldInOrder({ kind, metadata: { name } }: TypedObject, waitsFor: Pod): Held {
  const state = isActive(waitsFor) ? 'is not Ready' : 'is on its way out';
  return {
    why: `${kind} ${name} makes its pods in order, and none in the place of this one before an earlier one is Ready (${waitsFor.metadata.name} ${state})`,
    forMs: LOOK_MS,
  };
}

function held({ kind, metadata: { name } }: TypedObject, unmade: number, forMs: number): Held {
  const few = `${kind} ${name} has fewer pods than it asks for`;
  if (forMs <= IDLE_MS) return { why: `${few}, and it is yet to be seen whether it makes others`, ofController: true };
  const missing = `${String(unmade)} missing, for ${durationInWords(forMs)}`;
  return {
    why: `${few}, and makes none: its Events say why, such as FailedCreate (${missing})`,
    forMs: LOOK_MS,
    ofController: true,
  };
}
