import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { KubeClient } from './client.ts';
import { monotonic } from './clock.ts';
import { describeError, isAlreadyExists, isNotFound, isTransient } from './errors.ts';
import { EventCorrelator } from './event-correlator.ts';
import type { CorrelatedEvent, EventSubject, EventType } from './event-correlator.ts';
import { atMost } from './lru-limit.ts';
import { keyFor, type KubeObject } from './object.ts';
import { EVENTS } from './resource.ts';
import { timestamp } from './timestamps.ts';
import { create, get, patch } from './verbs.ts';
import { WorkQueue } from './workqueue.ts';

export type { EventSubject, EventType } from './event-correlator.ts';

export type EventOutcome = 'created' | 'patched' | 'rate-limited' | 'overflow' | 'refused' | 'lost';

export interface EventRecorderOptions {
  client: KubeClient;
  /** Who speaks: shown as the Event's source. */
  component: string;
  /** How many Events may wait to be written; 4,096. */
  capacity?: number;
  /** Told what became of each occurrence or write, for metrics. */
  onOutcome?: (outcome: EventOutcome) => void;
  logger?: Logger;
}

/** core/v1 Event as far as it is written here. */
interface Event extends KubeObject {
  involvedObject: EventSubject;
  type: EventType;
  reason: string;
  message: string;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
  count?: number;
  firstTimestamp: string | null;
  lastTimestamp: string | null;
}

interface Pending {
  event: CorrelatedEvent;
  occurrences: number;
  at: number;
  tries: number;
}

const MAX_TRIES = 12;
const FLUSH_MS = 2_000;
const REMEMBERED = 4_096;

/**
 * Writes core/v1 Events about objects: occurrences of the same thing are counted in one Event, many similar ones are
 * combined, each object has a budget, and nothing ever waits for it or fails because of it.
 */
export class EventRecorder {
  readonly #o: EventRecorderOptions;
  readonly #capacity: number;
  readonly #correlator: EventCorrelator;
  readonly #queue: WorkQueue;
  readonly #pending = new Map<string, Pending>();
  /** Events known to be on the server, with what they said last. */
  readonly #written = new LRUCache<string, { count: number; first: string }>(atMost(REMEMBERED));

  constructor(options: EventRecorderOptions) {
    const { client, component } = options;
    this.#o = options;
    this.#capacity = options.capacity ?? 4_096;
    this.#correlator = new EventCorrelator(component, monotonic);
    this.#queue = new WorkQueue({
      name: `events-${client.cluster}`,
      concurrency: 4,
      handler: (key, signal) => this.#write(key, signal),
      backoff: { baseMs: 500, maxMs: 30_000 },
      graceMs: FLUSH_MS,
      // No logger: an API server that is away would otherwise be reported once per Event.
    });
  }

  /**
   * Records an occurrence. Returns at once and never throws; the Event is written later, once {@link run} runs. The
   * message is made one line of at most 1,024 bytes. Events about cluster-scoped objects go to namespace `default`.
   */
  record(subject: EventSubject, type: EventType, reason: string, message: string): void {
    try {
      const event = this.#correlator.correlate(subject, type, reason, message);
      if (event === undefined) {
        this.#o.onOutcome?.('rate-limited');
        return;
      }
      const key = keyFor(namespaceOf(subject), event.name);
      const waiting = this.#pending.get(key);
      if (waiting === undefined && this.#pending.size >= this.#capacity) {
        this.#o.onOutcome?.('overflow');
        return;
      }
      this.#pending.set(key, {
        event,
        occurrences: (waiting?.occurrences ?? 0) + 1,
        at: Date.now(),
        tries: waiting?.tries ?? 0,
      });
      this.#queue.add(key);
    } catch (error) {
      this.#o.logger?.error({ err: error, reason }, 'an event could not be recorded');
    }
  }

  /** Writes recorded Events until the signal aborts, then spends at most two seconds on those still waiting. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
    const deadline = AbortSignal.timeout(FLUSH_MS);
    for (const key of this.#pending.keys()) {
      if (deadline.aborted) return;
      try {
        await this.#write(key, deadline);
      } catch {
        // The API server is not there: the rest would fail the same way.
        return;
      }
    }
  }

  /** Throws when another try is worth it. */
  async #write(key: string, signal: AbortSignal): Promise<void> {
    const pending = this.#pending.get(key);
    if (pending === undefined) return;
    this.#pending.delete(key);
    try {
      // First the write, then the telling: an optional call that is not made does not evaluate its argument.
      const outcome = await this.#put(key, pending, signal);
      this.#o.onOutcome?.(outcome);
    } catch (error) {
      const tries = pending.tries + 1;
      if (!isTransient(error) || tries >= MAX_TRIES) {
        this.#o.onOutcome?.(isTransient(error) ? 'lost' : 'refused');
        this.#o.logger?.debug({ event: key }, `event not written: ${describeError(error)}`);
        return;
      }
      const newer = this.#pending.get(key);
      const occurrences = pending.occurrences + (newer?.occurrences ?? 0);
      this.#pending.set(key, { ...(newer ?? pending), occurrences, tries });
      throw error;
    }
  }

  async #put(key: string, pending: Pending, signal: AbortSignal): Promise<'created' | 'patched'> {
    const known = this.#written.get(key);
    if (known !== undefined) {
      try {
        return await this.#count(key, pending, known, signal);
      } catch (error) {
        // Events live for an hour: this one is gone, so it starts anew with the count it had.
        if (!isNotFound(error)) throw error;
        this.#written.delete(key);
      }
    }
    const event = this.#render(pending, known);
    try {
      await create(this.#o.client, EVENTS, event, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      // Written by an earlier life of this process, or by a try whose answer was lost.
      const ref = { namespace: event.metadata.namespace, name: event.metadata.name };
      const there = await get<Event>(this.#o.client, EVENTS, ref, { signal });
      const first = there.firstTimestamp ?? event.firstTimestamp ?? '';
      return this.#count(key, pending, { count: there.count ?? 1, first }, signal);
    }
    this.#written.set(key, { count: event.count ?? 1, first: event.firstTimestamp ?? '' });
    return 'created';
  }

  async #count(
    key: string,
    { event, occurrences, at }: Pending,
    known: { count: number; first: string },
    signal: AbortSignal,
  ): Promise<'patched'> {
    const count = known.count + occurrences;
    const body = { count, lastTimestamp: timestamp(at), message: event.message };
    const ref = { namespace: namespaceOf(event.subject), name: event.name };
    await patch(this.#o.client, EVENTS, ref, body, { type: 'merge' }, { signal });
    this.#written.set(key, { count, first: known.first });
    return 'patched';
  }

  #render({ event, occurrences, at }: Pending, known: { count: number; first: string } | undefined): Event {
    const { subject, type, reason, message, name } = event;
    const { component } = this.#o;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: namespaceOf(subject), name },
      involvedObject: subject,
      type,
      reason,
      message,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
      count: (known?.count ?? 0) + occurrences,
      firstTimestamp: known?.first ?? timestamp(at),
      lastTimestamp: timestamp(at),
    };
  }
}

function namespaceOf(subject: EventSubject): string {
  return subject.namespace ?? 'default';
}
