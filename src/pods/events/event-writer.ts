import { LRUCache } from 'lru-cache';
import type { KubeClient } from '../../kube/client.ts';
import { isAlreadyExists, isForbidden, isNotFound } from '../../kube/errors.ts';
import { atMost } from '../../kube/lru-limit.ts';
import { EVENTS } from '../../kube/resource.ts';
import { create, get, patch } from '../../kube/verbs.ts';
import type { HostEvent } from './host-event.ts';

/** `present`: the host had it already, from an earlier life of this program or another replica. */
export type WriteOutcome = 'created' | 'patched' | 'present';

export interface WrittenEvent {
  count: number;
  message: string;
  /** Time of the write in ms. */
  at: number;
}

const REMEMBERED = 4096;

/**
 * Puts Events on the host: each once, and again only with a higher count or other words. What the host has wins over
 * memory, so that restarts and replicas write nothing twice.
 */
export class EventWriter {
  readonly #host: KubeClient;
  readonly #clock: () => number;
  readonly #written = new LRUCache<string, WrittenEvent>(atMost(REMEMBERED));

  constructor(host: KubeClient, clock: () => number) {
    this.#host = host;
    this.#clock = clock;
  }

  /** What is known to be on the host under that name. */
  written(event: HostEvent): WrittenEvent | undefined {
    return this.#written.get(keyOf(event));
  }

  /** `readFirst`: it is likely to be there already. Rejects with what the host's API server said. */
  async write(event: HostEvent, readFirst: boolean, signal: AbortSignal): Promise<WriteOutcome> {
    const outcome = await this.#put(event, readFirst, signal);
    if (outcome !== 'present') this.#remember(event, event.count);
    return outcome;
  }

  async #put(event: HostEvent, readFirst: boolean, signal: AbortSignal): Promise<WriteOutcome> {
    if (this.written(event) !== undefined) {
      try {
        return await this.#patch(event, signal);
      } catch (error) {
        // The host keeps Events for an hour or so: this one is gone and starts anew.
        if (!isNotFound(error)) throw error;
      }
    } else if (readFirst) {
      const compared = await this.#compare(event, signal);
      if (compared !== undefined) return compared;
    }
    try {
      await create(this.#host, EVENTS, event, { signal });
      return 'created';
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    return (await this.#compare(event, signal)) ?? (await this.#patch(event, signal));
  }

  /** Brings what the host has up to date; undefined when it has nothing, or will not show it. */
  async #compare(event: HostEvent, signal: AbortSignal): Promise<WriteOutcome | undefined> {
    try {
      const there = await get<HostEvent>(this.#host, EVENTS, event.metadata, { signal });
      if ((there.count ?? 1) < event.count) return await this.#patch(event, signal);
      this.#remember(event, there.count ?? 1);
      return 'present';
    } catch (error) {
      if (isNotFound(error) || isForbidden(error)) return undefined;
      throw error;
    }
  }

  async #patch(event: HostEvent, signal: AbortSignal): Promise<'patched'> {
    const { count, message, lastTimestamp } = event;
    await patch(this.#host, EVENTS, event.metadata, { count, message, lastTimestamp }, { type: 'merge' }, { signal });
    return 'patched';
  }

  #remember(event: HostEvent, count: number): void {
    this.#written.set(keyOf(event), { count, message: event.message, at: this.#clock() });
  }
}

function keyOf({ metadata }: HostEvent): string {
  return `${metadata.namespace}/${metadata.name}`;
}
