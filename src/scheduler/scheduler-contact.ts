import type { Logger } from 'pino';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isAlreadyExists, isNotFound } from '../kube/errors.ts';
import type { Lease } from '../kube/lease.ts';
import { LEASES } from '../kube/resource.ts';
import { microTime } from '../kube/timestamps.ts';
import { create, get } from '../kube/verbs.ts';

/** Lease that tells all replicas that a scheduler has asked one of them. */
const ASKED_LEASE = 'spillway-asked';
/** Between two looks at it as long as nobody has asked, in ms. */
const PERIOD_MS = 30_000;

export interface SchedulerContactOptions {
  host: KubeClient;
  namespace: string;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * Whether any kube-scheduler has ever asked any replica about a pod. A scheduler keeps asking one replica, and another one
 * may be it that says so on policies: hence a Lease, written once. One read at a start, and nothing more once it is there.
 */
export class SchedulerContact {
  readonly #o: SchedulerContactOptions;
  readonly #wakeUp = new AutoResetEvent();
  readonly #listeners = new Set<() => void>();
  #heard = false;
  #recorded = false;

  constructor(options: SchedulerContactOptions) {
    this.#o = options;
  }

  get ever(): boolean {
    return this.#heard || this.#recorded;
  }

  /** A scheduler asks about a pod. */
  heard(): void {
    if (this.#heard) return;
    this.#heard = true;
    this.#wakeUp.set();
    this.#tell();
  }

  /** Calls the listener once, when it turns out that one has asked. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Works until the signal aborts, or all is said; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let complained = false;
    while (!signal.aborted && !this.#recorded) {
      try {
        await this.#look(signal);
      } catch (error) {
        if (!complained && !signal.aborted) {
          this.#o.logger.warn(`Lease ${ASKED_LEASE} cannot be used: ${describeError(error)}. It is tried again`);
        }
        complained = true;
      }
      if (!this.#recorded) await this.#wakeUp.wait(signal, PERIOD_MS);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    if (await this.#isThere(signal)) {
      this.#recorded = true;
      if (!this.#heard) this.#tell();
    } else if (this.#heard) {
      await this.#write(signal);
      this.#recorded = true;
    }
  }

  async #isThere(signal: AbortSignal): Promise<boolean> {
    const { host, namespace } = this.#o;
    try {
      await get<Lease>(host, LEASES, { namespace, name: ASKED_LEASE }, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { host, namespace, clock } = this.#o;
    const lease: Lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name: ASKED_LEASE },
      spec: { holderIdentity: 'kube-scheduler', acquireTime: microTime(clock()) },
    };
    try {
      await create(host, LEASES, lease, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
