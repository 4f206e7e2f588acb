import { isActive } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MoveRecords } from './move-records.ts';

export interface MovesFuseOptions {
  placed: Pick<PlacedPods, 'rulesOf' | 'ofWorkload'>;
  records: Pick<MoveRecords, 'withinAnHour' | 'fewEnoughInMs'>;
  /** Most moves per pod of a workload within an hour. */
  perPodPerHour: number;
}

/** What holds pods of a workload up. */
export interface MovedTooOften {
  /** Pods of it that were moved within the last hour, and how many may be. */
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
    const pods = placed.ofWorkload(ownerKeyOf(workload)).filter(isActive).length;
    const most = Math.ceil(perPodPerHour * Math.max(replicas, pods));
    const count = records.withinAnHour(workload);
    const before = Math.max(0, most - more);
    if (count <= before) return undefined;
    const limit = `descheduler.movesPerPodPerHour is ${String(perPodPerHour)}`;
    return { count, most, limit, forMs: records.fewEnoughInMs(workload, before) };
  }
}
