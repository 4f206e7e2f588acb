import type { Pod } from '../kube/core-v1.ts';
import type { SentDeletion } from './deletion-pace.ts';
import type { Corrections } from './status-corrections.ts';
import type { UnansweredCreation } from './unanswered-creation.ts';

/** What this process remembers of one host pod's key between two looks, with monotonic times. Lost on restart without harm. */
export interface PodMemory {
  /** Newest answer of the host's API server to one of our writes, used until the cache has caught up. */
  host?: Pod;
  /** Newest answer of the member's API server to one of our writes, used until the cache has caught up. */
  member?: Pod;
  /**
   * UID of a member pod that is known to have existed for the host pod with UID `of`: created, or seen. Kept until the
   * watch has shown it and the host pod remembers it itself. `at`: when it was made, or read past the cache, in ms; -Infinity once
   * the watch has reported its end.
   */
  created?: { of: string; uid: string; at: number };
  /**
   * The namespace of the member in which a copy for the host pod with UID `of` was asked for last, or was found: the mapping
   * may be edited meanwhile, and what may come to life or run there is to be looked for there.
   */
  place?: { of: string; namespace: string };
  /** Creations that the member may carry out still, all in the same {@link place}. */
  unanswered?: UnansweredCreation;
  /**
   * What is known of the intent on the host pod with UID `of`: when it was written, in ms; whether something may have come
   * of it; up to which resourceVersion nothing has, while something may yet; how often in a row that could not be found out.
   */
  intent?: { of: string; at: number; open: boolean; absentUpTo?: string; unclear: number };
  /** Last state of a member pod that the watch reported as deleted. */
  departed?: Pod;
  /** UIDs of host pods whose deletion the watch reported. */
  hostDeletions?: Set<string>;
  /** First time, in ms, the host pod was not found although nobody saw it being deleted. */
  hostMissingSince?: number;
  /** The DELETEs that were sent for the member pod of this UID. */
  deleteSent?: SentDeletion;
  /** UID and time, in ms, of the host pod whose final DELETE was sent. */
  finishSent?: { uid: string; at: number };
  /** When, in ms, the key was last looked at. */
  lookedAt?: number;
  /** Failed or refused attempts in a row, for the backoff. */
  attempts: number;
  /** What was sent of a change and did not get into the copy, until when, in ms, it is not sent again, and how often in a row. */
  failedUpdate?: { updates: readonly unknown[]; until: number; attempts: number };
  /** Since when, in ms, the member does not take the pod. */
  refusedSince?: number;
  /** Since when, in ms, an unimportant status difference is waiting to be written together with the next one. */
  statusDueSince?: number;
  /** Which version of the host pod with UID `of` a status was too late for, last at `at` (ms), and how often in a row. */
  conflict?: { of: string; version: string | undefined; times: number; at: number };
  /** How often its status had to be written although nothing was new. */
  corrections?: Corrections;
}

/** The copy exists, which the cache may not show for a moment. `at`: monotonic, in ms. */
export function copyFound(memory: PodMemory, hostPod: Pod, memberPod: Pod, at: number): void {
  memory.member = memberPod;
  memory.created = { of: hostPod.metadata.uid ?? '', uid: memberPod.metadata.uid ?? '', at };
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
