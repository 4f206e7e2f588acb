import type { Logger } from 'pino';
import { AutoResetEvent } from '../../kube/auto-reset-event.ts';
import { Breath } from '../../kube/breath.ts';
import { monotonic } from '../../kube/clock.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { describeError } from '../../kube/errors.ts';
import { pause } from '../../kube/timers.ts';
import type { HostView } from '../host-view.ts';
import { type GivenPlace, givenPlace } from './gang.ts';

/** Between two rounds, in ms, in which it is tried to hold room for pods that have none yet. */
const ROUND_MS = 3_000;
/** A pod is left out of twice as many rounds after each try, and of so many at the most. */
const MOST_ROUNDS = 20;
/** How often it is looked whether rooms have become known that are not, in ms. */
const LOOK_MS = 100;

/** What is asked of whoever knows rules and room. */
export interface PlaceKeeper {
  /** Whether room is held for the pod, whoever has seen to that; it counts there then, for `forMs`. */
  keeps(pod: Pod, cluster: string, forMs: number): boolean;
  /**
   * True: room is held for the pod by this call, for `forMs`. False: there is none, or the pod would not be let in.
   *
   * @param refused remembers kinds of pods that rules did not let in, which are not asked about again.
   */
  holdAsGiven(pod: Pod, cluster: string, forMs: number, refused: Set<string>): boolean;
  release(pods: readonly Pod[]): void;
  /** Virtual nodes of that cluster, or `local`, behind which the room is not known. */
  unknownNodes(cluster: string): readonly string[];
}

export interface GangHoldsOptions {
  readonly view: Pick<HostView, 'onPod' | 'whenSynced' | 'hasSynced'>;
  readonly places: PlaceKeeper;
  /** Told when room is for others, too, that was {@link GangHolds.isPending pending}. */
  readonly opened: () => void;
  readonly logger: Pick<Logger, 'error'>;
  /** Wall clock in ms. */
  readonly clock: () => number;
}

interface Waiting {
  readonly pod: Pod;
  readonly place: GivenPlace;
  /** Wall clock in ms; from then on nothing is held for it. */
  readonly until: number;
  /** Rounds until it is tried again, and how many these were after the last try. */
  left: number;
  pause: number;
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
  /** By node (or `local`) the cluster: behind it no room was known when pods were tried there that hold none. */
  readonly #pending = new Map<string, string>();
  /** There is a node in {@link #pending} now. */
  readonly #becamePending = new AutoResetEvent();
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

  /** Whether pods have yet to be tried behind that node (or `local`) since its room is known: until then it is nobody else's. */
  isPending(node: string): boolean {
    return this.#pending.has(node);
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#o.view.whenSynced(signal);
    let nextRound = monotonic();
    while (!signal.aborted) {
      const known = this.#becameKnown();
      const clusters = new Set(known.values());
      if (monotonic() >= nextRound) {
        await this.#round(clusters);
        // From its end: one that takes long leaves others their time.
        nextRound = monotonic() + ROUND_MS;
        this.#hasTriedAll = true;
      } else if (clusters.size > 0) {
        await this.#tryIn(clusters);
      }
      this.#open(known);
      // Nothing becomes known while nothing is unknown: between two rounds there is nothing to look at.
      if (this.#pending.size > 0) await pause(LOOK_MS, signal);
      else await this.#becamePending.wait(signal, nextRound - monotonic());
    }
  }

  /** All pods whose turn it is, and all in these clusters. */
  async #round(clusters: ReadonlySet<string>): Promise<void> {
    const without = new Set<string>();
    for (const waiting of this.#waiting.values()) {
      waiting.left -= 1;
      if (!this.#isKept(waiting)) without.add(waiting.place.cluster);
    }
    for (const cluster of without) this.#notePending(cluster);
    await this.#tryThose(({ left, place }) => left <= 0 || clusters.has(place.cluster));
  }

  async #tryIn(clusters: ReadonlySet<string>): Promise<void> {
    await this.#tryThose(({ place }) => clusters.has(place.cluster));
  }

  async #tryThose(isAsked: (waiting: Waiting) => boolean): Promise<void> {
    const breath = new Breath();
    const refused = new Set<string>();
    for (const [uid, waiting] of this.#waiting) {
      if (isAsked(waiting)) this.#try(uid, waiting, refused);
      await breath.take();
    }
  }

  #becameKnown(): ReadonlyMap<string, string> {
    const { places } = this.#o;
    return new Map([...this.#pending].filter(([node, cluster]) => !places.unknownNodes(cluster).includes(node)));
  }

  /** All pods that wait there have been tried. */
  #open(nodes: ReadonlyMap<string, string>): void {
    const { places, opened } = this.#o;
    const before = this.#pending.size;
    for (const [node, cluster] of nodes) if (!places.unknownNodes(cluster).includes(node)) this.#pending.delete(node);
    if (this.#pending.size < before) opened();
  }

  #try(uid: string, waiting: Waiting, refused: Set<string>): void {
    const { cluster } = waiting.place;
    const forMs = waiting.until - this.#o.clock();
    if (forMs <= 0 || this.#isKept(waiting)) return;
    if (this.#holds(waiting, forMs, refused)) {
      this.#held.add(uid);
      return;
    }
    waiting.pause = Math.min(MOST_ROUNDS, Math.max(1, 2 * waiting.pause));
    waiting.left = waiting.pause;
    this.#notePending(cluster);
  }

  #notePending(cluster: string): void {
    for (const node of this.#o.places.unknownNodes(cluster)) {
      this.#pending.set(node, cluster);
      this.#becamePending.set();
    }
  }

  #isKept({ pod, place: { cluster }, until }: Waiting): boolean {
    return this.#o.places.keeps(pod, cluster, until - this.#o.clock());
  }

  /** One pod that cannot be asked about keeps nobody else from their room. */
  #holds({ pod, place: { cluster } }: Waiting, forMs: number, refused: Set<string>): boolean {
    const { places, logger } = this.#o;
    try {
      return places.holdAsGiven(pod, cluster, forMs, refused);
    } catch (error) {
      const { namespace, name, uid = '' } = pod.metadata;
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
    if (until <= now) {
      // What is held from here ends by itself. Whoever places gangs may keep it for longer.
      this.#forget(pod);
      return;
    }
    const waiting = { pod, place, until, left: 0, pause: isSame ? known.pause : 0 };
    this.#waiting.set(uid, waiting);
    if (this.#o.view.hasSynced) this.#try(uid, waiting, new Set());
  }

  #forget({ metadata: { uid = '' } }: Pod): void {
    this.#waiting.delete(uid);
    this.#held.delete(uid);
    this.#told.delete(uid);
  }
}
