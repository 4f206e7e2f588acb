import type { Logger } from 'pino';
import type { Pod } from '../../kube/core-v1.ts';
import { Breath } from '../../kube/breath.ts';
import { describeError } from '../../kube/errors.ts';
import { pause } from '../../kube/timers.ts';
import type { HostView } from '../host-view.ts';
import { type GivenPlace, givenPlace } from './gang.ts';

/** Between two tries to hold room for pods that have none yet, in ms. */
const TRY_MS = 3_000;
/** How often it is looked whether rooms have become known, in ms. */
const LOOK_MS = 100;

/** What is asked of whoever knows rules and room. */
export interface PlaceKeeper {
  /** True: room is held for the pod by this call, for `forMs`. False: somebody holds it already, or the pod would not be let in. */
  holdAsGiven(pod: Pod, cluster: string, forMs: number): boolean;
  release(pods: readonly Pod[]): void;
  /** Whether the room in that cluster is known. */
  knows(cluster: string): boolean;
}

export interface GangHoldsOptions {
  readonly view: Pick<HostView, 'onPod' | 'whenSynced' | 'hasSynced'>;
  readonly places: PlaceKeeper;
  readonly logger: Pick<Logger, 'error'>;
  /** Wall clock in ms. */
  readonly clock: () => number;
}

interface Waiting {
  readonly pod: Pod;
  readonly place: GivenPlace;
  /** Wall clock in ms; from then on nothing is held for it. */
  readonly until: number;
}

/**
 * Room of pods whose gang has its place and that are not bound yet, by what these pods say. One replica gives gangs their places, but
 * a scheduler asks any of them: each one keeps others out of that room, and from the first answer of a new process on.
 */
export class GangHolds {
  readonly #o: GangHoldsOptions;
  /** By UID. */
  readonly #waiting = new Map<string, Waiting>();
  /** Pods that room is held for from here, by UID. */
  readonly #held = new Set<string>();
  /** Clusters with pods that wait, of which the room was not known when they were tried. */
  readonly #unknown = new Set<string>();
  /** UIDs of pods that it was told of that no room could be looked for. */
  readonly #told = new Set<string>();
  #hasTriedAll = false;

  constructor(options: GangHoldsOptions) {
    this.#o = options;
    options.view.onPod({ changed: (pod) => this.#seen(pod), gone: (pod) => this.#forget(pod) });
  }

  /** Why questions about room cannot be answered yet, in words; undefined when they can. */
  get problem(): string | undefined {
    return this.#hasTriedAll ? undefined : 'the places of gangs are not known yet';
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { view, places } = this.#o;
    await view.whenSynced(signal);
    let rested = TRY_MS;
    while (!signal.aborted) {
      const hasCome = [...this.#unknown].some((cluster) => places.knows(cluster));
      if (rested >= TRY_MS || hasCome) {
        rested = 0;
        await this.#tryAll();
      }
      await pause(LOOK_MS, signal);
      rested += LOOK_MS;
    }
  }

  async #tryAll(): Promise<void> {
    const breath = new Breath();
    this.#unknown.clear();
    for (const [uid, waiting] of this.#waiting) {
      this.#try(uid, waiting);
      await breath.take();
    }
    this.#hasTriedAll = true;
  }

  #try(uid: string, { pod, place: { cluster }, until }: Waiting): void {
    const { places, clock } = this.#o;
    const forMs = until - clock();
    if (forMs <= 0) return;
    if (this.#holds(uid, pod, cluster, forMs)) this.#held.add(uid);
    else if (!places.knows(cluster)) this.#unknown.add(cluster);
  }

  /** One pod that cannot be asked about keeps nobody else from their room. */
  #holds(uid: string, pod: Pod, cluster: string, forMs: number): boolean {
    const { places, logger } = this.#o;
    try {
      return places.holdAsGiven(pod, cluster, forMs);
    } catch (error) {
      const { namespace, name } = pod.metadata;
      if (!this.#told.has(uid))
        logger.error({ pod: `${namespace ?? ''}/${name}`, cluster }, `its room is not held: ${describeError(error)}`);
      this.#told.add(uid);
      return false;
    }
  }

  #seen(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const now = this.#o.clock();
    const place = givenPlace(pod, now);
    if (place === undefined) {
      // What a bound pod holds ends by itself, when everybody has heard of it.
      const isBound = (pod.spec.nodeName ?? '') !== '';
      if (this.#held.has(uid) && !isBound) this.#o.places.release([pod]);
      this.#forget(pod);
      return;
    }
    const known = this.#waiting.get(uid);
    // By a clock that is ahead it got its place later than now: its time is not begun anew at each look.
    const isSame = known?.place.at === place.at;
    const until = isSame ? known.until : Math.min(place.at, now) + place.timeoutMs;
    const waiting = { pod, place, until };
    this.#waiting.set(uid, waiting);
    if (this.#o.view.hasSynced) this.#try(uid, waiting);
  }

  #forget({ metadata: { uid = '' } }: Pod): void {
    this.#waiting.delete(uid);
    this.#held.delete(uid);
    this.#told.delete(uid);
  }
}
