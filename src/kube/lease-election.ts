import type { Logger } from 'pino';
import type { KubeClient } from './client.ts';
import { type Moment, monotonic } from './clock.ts';
import { describeError, isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import type { Lease } from './lease.ts';
import { leaseIsHeldByOther } from './lease.ts';
import { LEASES } from './resource.ts';
import { microTime } from './timestamps.ts';
import { pause, systemTimers } from './timers.ts';
import type { Timers } from './timers.ts';
import { create, get, remove, replace } from './verbs.ts';

export interface LeaseElectionOptions {
  client: KubeClient;
  namespace: string;
  name: string;
  /**
   * Of one living process at a time: a lease under this identity is taken over at once, as a dead predecessor's. Should
   * two live after all, `incarnation` makes the one that had the lease first stop when it next renews.
   */
  identity: string;
  /** Annotation, and its value, that tells this process from others of its identity. */
  incarnation?: { annotation: string; value: string };
  /** How long others wait after the last change they saw before they take over; 15,000 ms, written in whole seconds. */
  leaseMs?: number;
  /** A holder that has not renewed for so long stops; 10,000 ms, less than `leaseMs`. It renews when half of that is over. */
  renewMs?: number;
  /** The longest time between two tries to get the lease, or to renew it; 2,000 ms. */
  retryMs?: number;
  /** Wall clock, for the times in the record. */
  clock?: () => number;
  /** Milliseconds that no one can set, for all decisions. */
  monotonic?: () => number;
  timers?: Timers;
  random?: () => number;
  logger?: Logger;
  /** Told the Lease each time it was read or written here, whoever holds it. */
  onSeen?: (lease: Lease) => void;
}

const JITTER = 1.2;
/** The shortest time between two tries to renew a lease that is nearly lost, in ms. */
const LEAST_RETRY_MS = 250;

/**
 * Holds a coordination.k8s.io/v1 Lease against others, by the rules of client-go's leader election. Others' clocks are
 * never trusted: a record counts as alive for its duration after the last change of it that was seen here.
 */
export class LeaseElection {
  readonly #o: Required<Omit<LeaseElectionOptions, 'logger' | 'incarnation' | 'onSeen'>> &
    Pick<LeaseElectionOptions, 'incarnation' | 'onSeen'>;
  readonly #logger: Logger | undefined;
  #observed: { lease: Lease; at: number } | undefined;
  #renewed: Moment | undefined;
  /** UID of the Lease that was seen first, of whichever cluster. */
  #seenUid: string | undefined;
  /** UID of the Lease of the confirmed cluster. */
  #confirmedUid: string | undefined;
  /** This process has had the lease: whoever has it now under the same identity came later, and lives. */
  #hasHeld = false;

  constructor(options: LeaseElectionOptions) {
    const { logger, ...rest } = options;
    this.#logger = logger;
    this.#o = {
      leaseMs: 15_000,
      renewMs: 10_000,
      retryMs: 2_000,
      clock: Date.now,
      monotonic,
      timers: systemTimers,
      random: Math.random,
      ...rest,
    };
    const { leaseMs, renewMs, retryMs } = this.#o;
    if (!(leaseMs >= 1_000 && leaseMs > renewMs && renewMs > retryMs && retryMs > 0)) {
      throw new RangeError(`lease ${leaseMs} ms, renewal ${renewMs} ms and retry ${retryMs} ms do not fit together`);
    }
  }

  /**
   * Whether acting as the holder is safe now. It turns false by itself when the last successful renewal is `renewMs` old,
   * even if this process hung meanwhile, and so before anyone else may take over.
   */
  get held(): boolean {
    return this.#remainingMs() > 0;
  }

  /** Who holds the lease as far as is known here; undefined before the first look and when nobody does. */
  get holder(): string | undefined {
    return this.#observed?.lease.spec?.holderIdentity;
  }

  /**
   * Competes until the signal aborts. Each time the lease is won, `onAcquired` runs; its signal aborts when the lease is
   * lost or everything stops. The lease is renewed until it has ended and then given back, so its successor need not wait.
   * When it ends or throws by itself the lease is given back too and competed for again. Never rejects.
   */
  async run(o: { signal: AbortSignal; onAcquired: (signal: AbortSignal) => Promise<void> }): Promise<void> {
    const { retryMs, timers, random } = this.#o;
    while (!o.signal.aborted) {
      if (await this.#tryAcquireOrRenew()) {
        if (!o.signal.aborted) await this.#lead(o.signal, o.onAcquired);
        this.#renewed = undefined;
        await this.#release();
      }
      await pause(retryMs * (1 + JITTER * random()), o.signal, timers);
    }
  }

  /** Removes the Lease, once nothing that it guards is left, unless somebody holds it. Never rejects. */
  async discard(): Promise<void> {
    const { client, namespace, name } = this.#o;
    const options = { deadlineMs: 5_000 };
    try {
      const { metadata, spec } = await get<Lease>(client, LEASES, { namespace, name }, options);
      const { uid, resourceVersion } = metadata;
      if ((spec?.holderIdentity ?? '') !== '') return;
      await remove(client, LEASES, { namespace, name }, { uid, resourceVersion }, options);
    } catch (error) {
      if (isNotFound(error)) return;
      this.#logger?.info({ lease: `${namespace}/${name}` }, `lease not removed: ${describeError(error)}`);
    }
  }

  async #lead(signal: AbortSignal, onAcquired: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { namespace, name, renewMs, timers } = this.#o;
    const about = { lease: `${namespace}/${name}` };
    this.#logger?.info(about, 'lease acquired');
    const term = new AbortController();
    const stop = (): void => term.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const workEnd = new AbortController();
    const work = this.#contained(onAcquired, term.signal).finally(() => workEnd.abort());
    // While the work ends after a stop it still needs the lease.
    let waitMs = renewMs / 2;
    while (!workEnd.signal.aborted) {
      await pause(Math.min(waitMs, this.#remainingMs()), workEnd.signal, timers);
      if (workEnd.signal.aborted) break;
      if (this.held) waitMs = (await this.#tryAcquireOrRenew()) ? renewMs / 2 : this.#beforeNextTryMs();
      if (!this.held) {
        this.#logger?.warn({ ...about, holder: this.holder }, 'lease lost');
        term.abort(new Error(`lease ${about.lease} is lost`));
        break;
      }
    }
    await work;
    signal.removeEventListener('abort', stop);
  }

  async #contained(onAcquired: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await onAcquired(signal);
    } catch (error) {
      if (!signal.aborted) this.#logger?.error({ err: error, lease: this.#o.name }, 'the holder of a lease failed');
    }
  }

  /** The sooner the lease is lost the more often is tried to renew it. */
  #beforeNextTryMs(): number {
    return Math.max(LEAST_RETRY_MS, Math.min(this.#o.retryMs, this.#remainingMs() / 2));
  }

  /** Milliseconds for which the lease is surely ours. */
  #remainingMs(): number {
    if (this.#renewed === undefined) return 0;
    const elapsed = Math.max(
      this.#o.monotonic() - this.#renewed.monotonic,
      // The monotonic clock stands still while a machine sleeps; the wall clock does not.
      this.#o.clock() - this.#renewed.wall,
    );
    return Math.max(0, this.#o.renewMs - elapsed);
  }

  /** One try; false means that the lease is not (or no longer surely) ours. */
  async #tryAcquireOrRenew(): Promise<boolean> {
    const started = { wall: this.#o.clock(), monotonic: this.#o.monotonic() };
    try {
      const written = await this.#write(started.wall);
      const lease = written === undefined ? undefined : await this.#confirm(written);
      if (lease === undefined) {
        this.#renewed = undefined;
        return false;
      }
      this.#observe(lease);
      // Counted from before the request: nobody can have seen the new record earlier.
      this.#renewed = started;
      this.#hasHeld = true;
      return this.held;
    } catch (error) {
      this.#logger?.debug({ lease: this.#o.name }, `lease not renewed: ${describeError(error)}`);
      return false;
    }
  }

  /**
   * Another cluster in the place of this one has no such Lease, or one of its own: who wins it there may act nowhere. One that is not the
   * Lease from before counts only once it is found, over new connections, in the cluster that was confirmed after it was written.
   */
  async #confirm(lease: Lease): Promise<Lease> {
    const { client, clock, name } = this.#o;
    const { uid } = lease.metadata;
    if (uid === this.#confirmedUid) return lease;
    const before = this.#confirmedUid ?? this.#seenUid;
    await client.confirmCluster();
    let found = lease;
    if (before !== undefined && uid !== before) {
      await client.reconnect();
      found = await replace(client, LEASES, this.#record(lease, clock()), this.#callOptions());
      this.#logger?.warn({ lease: name }, 'the lease is another one than before, of the same cluster');
    }
    this.#confirmedUid = uid;
    return found;
  }

  /** Writes our record; undefined when somebody else's is alive. */
  async #write(now: number): Promise<Lease | undefined> {
    const { client, namespace, name, identity } = this.#o;
    const options = this.#callOptions();
    const known = this.#observed?.lease;
    if (this.held && known?.spec?.holderIdentity === identity) {
      try {
        return await replace(client, LEASES, this.#record(known, now), options);
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    let current: Lease;
    try {
      current = await get<Lease>(client, LEASES, { namespace, name }, { ...options, retry: false });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      try {
        return await create(client, LEASES, this.#record(undefined, now), options);
      } catch (e) {
        if (isAlreadyExists(e)) return undefined;
        throw e;
      }
    }
    this.#observe(current);
    const since = this.#observed?.at ?? this.#o.monotonic();
    const own = this.#isTwins(current) ? undefined : identity;
    if (leaseIsHeldByOther(current, own, this.#o.monotonic() - since, this.#o.leaseMs)) return undefined;
    try {
      return await replace(client, LEASES, this.#record(current, now), options);
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Held by another process of our identity that took it after us. */
  #isTwins({ metadata, spec }: Lease): boolean {
    const { identity, incarnation } = this.#o;
    if (incarnation === undefined || !this.#hasHeld || spec?.holderIdentity !== identity) return false;
    return metadata.annotations?.[incarnation.annotation] !== incarnation.value;
  }

  /** A half-open connection must leave time for a second try before the deadline. */
  #callOptions(): { deadlineMs: number } {
    return { deadlineMs: Math.max(1, (this.held ? this.#remainingMs() : this.#o.renewMs) / 2) };
  }

  #observe(lease: Lease): void {
    const known = this.#observed?.lease;
    const same =
      known !== undefined &&
      known.metadata.uid === lease.metadata.uid &&
      known.metadata.resourceVersion === lease.metadata.resourceVersion;
    if (!same) this.#observed = { lease, at: this.#o.monotonic() };
    this.#seenUid ??= lease.metadata.uid;
    // What people write on the Lease of another cluster is not meant for this one.
    if (lease.metadata.uid === (this.#confirmedUid ?? lease.metadata.uid)) this.#o.onSeen?.(lease);
  }

  /** Our record over what is there; fields we do not know stay. */
  #record(current: Lease | undefined, now: number): Lease {
    const { namespace, name, identity, incarnation, leaseMs } = this.#o;
    const old = current?.spec;
    const ours = old?.holderIdentity === identity;
    const time = microTime(now);
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      ...current,
      metadata: {
        ...(current?.metadata ?? { namespace, name }),
        ...(incarnation === undefined
          ? {}
          : { annotations: { ...current?.metadata.annotations, [incarnation.annotation]: incarnation.value } }),
      },
      spec: {
        ...old,
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
        acquireTime: ours ? (old.acquireTime ?? time) : time,
        renewTime: time,
        leaseTransitions: old === undefined ? 0 : (old.leaseTransitions ?? 0) + (ours ? 0 : 1),
      },
    };
  }

  /** Empties the record, if it is still ours, so that others need not wait for it to run out. */
  async #release(): Promise<void> {
    const { client, namespace, name, identity, clock } = this.#o;
    const options = { deadlineMs: 2_000 };
    try {
      const current = await get<Lease>(client, LEASES, { namespace, name }, { ...options, retry: false });
      if (current.spec?.holderIdentity !== identity || this.#isTwins(current)) return;
      const { holderIdentity: _, ...spec } = current.spec;
      const time = microTime(clock());
      const released = { ...current, spec: { ...spec, leaseDurationSeconds: 1, acquireTime: time, renewTime: time } };
      this.#observe(await replace(client, LEASES, released, options));
      this.#logger?.info({ lease: `${namespace}/${name}` }, 'lease released');
    } catch (error) {
      this.#logger?.info({ lease: `${namespace}/${name}` }, `lease not released: ${describeError(error)}`);
    }
  }
}
