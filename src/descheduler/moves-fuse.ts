import { isActive } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MoveRecords } from './move-records.ts';
import type { MovingOptions } from './moving-options.ts';

export interface MovesFuseOptions extends Pick<MovingOptions, 'perPodPerHour'> {
  placed: Pick<PlacedPods, 'rulesOf' | 'ofWorkload'>;
  records: Pick<MoveRecords, 'withinAnHour' | 'fewEnoughInMs'>;
}

/** What becomes of a move that was sent is known by then in most cases (ms). */
const ANSWERED_MS = 2_000;

/** What holds pods of a workload up. */
export interface MovedTooOften {
  /** Pods of it that were moved within the last hour, or are to be by what was sent, and how many may be. */
  readonly count: number;
  readonly most: number;
  /** In words: why so many. */
  readonly limit: string;
  /** Until as many may be moved as were asked about, in ms, if no others are. */
  readonly forMs: number;
}

/** Rate limit against pods that move in circles, whatever the cause. */
export class MovesFuse {
  readonly #o: MovesFuseOptions;
  /** By key of the workload, its moves that were sent and of which nothing stands in the records yet. */
  readonly #sent = new Map<string, number>();

  constructor(options: MovesFuseOptions) {
    this.#o = options;
  }

  /**
   * Whether this one, and others of its workload, `more` in all, would be too many for this hour; of more than ever may be moved within one,
   * as many as may be. Undefined: they would not.
   */
  tooOften(pod: Pod, more = 1): MovedTooOften | undefined {
    const { placed, records, perPodPerHour } = this.#o;
    const { workload, replicas = 1 } = placed.rulesOf(pod);
    // Not those on their way out: of a member that does not answer each move leaves one, for as long as that lasts.
    const key = ownerKeyOf(workload);
    const pods = placed.ofWorkload(key).filter(isActive).length;
    const most = Math.ceil(perPodPerHour * Math.max(replicas, pods));
    const sent = this.#sent.get(key) ?? 0;
    const count = records.withinAnHour(workload) + sent;
    const before = Math.max(0, most - more);
    if (count <= before) return undefined;
    const limit = `descheduler.movesPerPodPerHour is ${String(perPodPerHour)}`;
    const forMs = records.fewEnoughInMs(workload, before);
    return { count, most, limit, forMs: sent === 0 ? forMs : Math.max(forMs, ANSWERED_MS) };
  }

  /**
   * The pod is about to be evicted or released, and counts from now on: to be called in the same breath as {@link tooOften}, as pods of several members may be moved at
   * once. Returns what is to be called when it stands in the records, or is known not to have been moved.
   */
  sending(pod: Pod): () => void {
    const key = ownerKeyOf(this.#o.placed.rulesOf(pod).workload);
    const add = (more: number): void => {
      const sent = (this.#sent.get(key) ?? 0) + more;
      if (sent > 0) this.#sent.set(key, sent);
      else this.#sent.delete(key);
    };
    add(1);
    return () => add(-1);
  }
}
