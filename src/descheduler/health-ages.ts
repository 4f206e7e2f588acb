import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';

/** A pod that is never Ready for so long on end is not well: one that crashes over and over is Ready in between (ms). */
export const STEADY_MS = 60_000;
const WORKLOADS = 10_000;

/** A pod of a workload as the caches show it. `isReady` undefined: nobody knows at present. */
export interface SeenHealth {
  readonly uid: string;
  readonly isReady: boolean | undefined;
}

export interface Health {
  /** It has been Ready for {@link STEADY_MS} without a break. */
  readonly isWell: boolean;
  /** Of one that is not Ready now how long it has not been well, in ms; else 0. */
  readonly illForMs: number;
}

interface Since {
  readonly ready: number | undefined;
  readonly ill: number | undefined;
}

const UNKNOWN: Health = { isWell: false, illForMs: 0 };

/**
 * How long pods have been well or ill, measured by this process on its monotonic clock: times on pods are those of members, whose clocks
 * may be wrong. The cost is that it begins anew when all replicas restart, and when a pod's member was silent.
 */
export class HealthAges {
  readonly #monotonic: () => number;
  /** By UID of the workload, by that of the pod, in monotonic ms. */
  readonly #seen = new LRUCache<string, ReadonlyMap<string, Since>>(atMost(WORKLOADS));

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** All pods of a workload as they are now. */
  observe(workloadKey: string, pods: readonly SeenHealth[]): void {
    const now = this.#monotonic();
    const before = this.#seen.get(workloadKey);
    const next = new Map<string, Since>();
    for (const { uid, isReady } of pods) {
      if (isReady === undefined) continue;
      const known = before?.get(uid);
      const wasWell = known?.ready !== undefined && now - known.ready >= STEADY_MS;
      const ill = wasWell ? undefined : known?.ill;
      next.set(uid, isReady ? { ready: known?.ready ?? now, ill } : { ready: undefined, ill: ill ?? now });
    }
    if (next.size === 0) this.#seen.delete(workloadKey);
    else this.#seen.set(workloadKey, next);
  }

  forget(workloadKey: string): void {
    this.#seen.delete(workloadKey);
  }

  of(workloadKey: string, podUid: string): Health {
    const since = this.#seen.get(workloadKey)?.get(podUid);
    if (since === undefined) return UNKNOWN;
    const now = this.#monotonic();
    if (since.ready !== undefined) return { isWell: now - since.ready >= STEADY_MS, illForMs: 0 };
    return { isWell: false, illForMs: now - (since.ill ?? now) };
  }
}
