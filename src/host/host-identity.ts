import type { Logger } from 'pino';
import type { Invariants } from '../api/invariants.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import { pause, systemTimers, type Timers } from '../kube/timers.ts';

export interface HostIdentityOptions {
  /** UID of the host's kube-system namespace when the program started: what is in every mark comes from it. */
  pinned: string;
  /** Reads that UID now, over a connection that nothing has used before: kept ones may lead to a former cluster. */
  read: () => Promise<string>;
  invariants: Invariants;
  logger: Logger;
  /** Milliseconds. */
  monotonic?: () => number;
  timers?: Timers;
}

/** Between two looks when nothing gives reason for one, and while another cluster answers, in ms. */
const LOOK_MS = 60_000;
const AGAIN_MS = 5_000;

/**
 * Whether the cluster that answers under the host's address is the one that the program started with (I3). Another one
 * knows none of our pods, and what it lacks is no reason to delete anything: until the first one answers again nothing is
 * written, neither to it nor to any member. It is asked once a minute, and by caches and deletions when they need to know.
 */
export class HostIdentity {
  readonly #o: HostIdentityOptions;
  readonly #monotonic: () => number;
  readonly #listeners = new Set<() => void>();
  /** The UID of the other cluster that answers. */
  #other: string | undefined;
  #lookedAt: number;
  #underWay: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;

  constructor(options: HostIdentityOptions) {
    this.#o = options;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#lookedAt = this.#monotonic();
  }

  /** Why nothing may be written, in words for people; undefined while the host is the one it was. */
  get problem(): string | undefined {
    if (this.#other === undefined) return undefined;
    return (
      `another cluster answers in the place of the host (its kube-system namespace has UID ${this.#other}, not ` +
      `${this.#o.pinned}): nothing is written to it or to any member until the former one answers again, which is ` +
      `looked for every ${AGAIN_MS / 1000} s. If the host was built anew on purpose, restart Spillway`
    );
  }

  /** Called when it became another cluster, or the former one again. Returns how to stop that. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /**
   * Whether it is the former cluster, by an answer that was asked for after this call. All who ask while another question
   * is under way share the next one. Rejects when the host does not answer.
   */
  async confirm(): Promise<boolean> {
    this.#next ??= this.#askNext();
    return await this.#next;
  }

  /** {@link confirm} for those that can do nothing else than fail: rejects in words for people. */
  async expect(): Promise<void> {
    if (!(await this.confirm())) throw new Error(this.problem ?? 'another cluster answers in the place of the host');
  }

  /** Looks from time to time until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const timers = this.#o.timers ?? systemTimers;
    while (!signal.aborted) {
      const rest = this.#lookedAt + (this.#other === undefined ? LOOK_MS : AGAIN_MS) - this.#monotonic();
      if (rest > 0) {
        await pause(rest, signal, timers);
        continue;
      }
      try {
        await this.confirm();
      } catch (error) {
        if (signal.aborted) return;
        this.#lookedAt = this.#monotonic();
        this.#o.logger.debug(`whether the host is the same cluster cannot be told: ${describeError(error)}`);
      }
    }
  }

  async #askNext(): Promise<boolean> {
    await this.#underWay?.catch(() => undefined);
    this.#underWay = this.#next;
    this.#next = undefined;
    const found = await this.#o.read();
    if (found === '') throw new Error('the kube-system namespace of the host has no UID');
    this.#lookedAt = this.#monotonic();
    this.#found(found);
    return this.#other === undefined;
  }

  #found(uid: string): void {
    const { pinned, invariants, logger } = this.#o;
    const other = uid === pinned ? undefined : uid;
    if (other === this.#other) return;
    this.#other = other;
    if (other === undefined) logger.warn('the host is the cluster that it was: writes go on');
    // Counted once for each time, not for each write: heartbeats would go on by the clock.
    else
      invariants.violated('I3', 'everything, while another cluster answers in the place of the host', {
        pinned,
        found: uid,
      });
    for (const listener of this.#listeners) listener();
  }
}
