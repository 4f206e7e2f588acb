import type { Pod } from '../api/wire.ts';
import type { Corrections } from './status-corrections.ts';

/** What this process remembers of one host pod's key between two looks. Lost on restart without harm. */
export interface PodMemory {
  /** Newest answer of the host's API server to one of our writes, used until the cache has caught up. */
  host?: Pod;
  /** Newest answer of the member's API server to one of our writes, used until the cache has caught up. */
  member?: Pod;
  /** UID and time of a member pod that we created, or read past the cache, before the watch has shown it. */
  created?: { uid: string; at: number };
  /** Last state of a member pod that the watch reported as deleted. */
  departed?: Pod;
  /** UIDs of host pods whose deletion the watch reported. */
  hostDeletions?: Set<string>;
  /** First time, in ms, the host pod was not found although nobody saw it being deleted. */
  hostMissingSince?: number;
  /** Grace period of the DELETE that was sent for the member pod of this UID. */
  deleteSent?: { uid: string; gracePeriodSeconds: number | undefined; at: number };
  /** UID and time, in ms, of the host pod whose final DELETE was sent. */
  finishSent?: { uid: string; at: number };
  /** When, in ms, the key was last looked at. */
  lookedAt?: number;
  /** Failed or refused attempts in a row, for the backoff. */
  attempts: number;
  /** Since when, in ms, the member does not take the pod. */
  refusedSince?: number;
  /** Since when, in ms, an unimportant status difference is waiting to be written together with the next one. */
  statusDueSince?: number;
  /** How often its status had to be written although nothing was new. */
  corrections?: Corrections;
}

/** Memories by key of the host pod. */
export class PodMemories {
  readonly #memories = new Map<string, PodMemory>();

  of(key: string): PodMemory {
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = { attempts: 0 };
      this.#memories.set(key, memory);
    }
    return memory;
  }

  entries(): IterableIterator<[string, PodMemory]> {
    return this.#memories.entries();
  }

  forget(key: string): void {
    this.#memories.delete(key);
  }
}

/**
 * The newer of what the cache has and what a write of ours answered. Resource versions of one type in one cluster can
 * be compared as numbers (KEP-5504); objects of different UIDs are compared the same way.
 */
export function newest(cached: Pod | undefined, written: Pod | undefined): Pod | undefined {
  if (written === undefined) return cached;
  if (cached === undefined) return written;
  return versionOf(written) > versionOf(cached) ? written : cached;
}

function versionOf(pod: Pod): number {
  return Number(pod.metadata.resourceVersion ?? '0');
}
