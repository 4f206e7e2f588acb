import { LRUCache } from 'lru-cache';
import { WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import { cut } from '../kube/cut-text.ts';
import { atMost } from '../kube/lru-limit.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { WrittenTimes } from '../kube/written-times.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import { SEVERAL_CLUSTERS } from '../placement/folded-moves.ts';
import {
  fewEnoughInMs,
  HOUR_MS,
  joinedMoves,
  type Move,
  type Moves,
  movesWithin,
  withMove,
} from '../placement/moves.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MovingOptions } from './moving-options.ts';
import type { Strategy } from './strategies.ts';

/** Delay that batches the moves of one workload into one write (ms). */
export const RECORD_MS = 1_000;
/** Retry delay after a conflict, or when the object is gone (ms). */
const AGAIN_MS = 2_000;
/** The same while there is none yet (ms): nothing is asked of the host for that. */
const MADE_MS = 10_000;
const MAX_MESSAGE = 1_000;

export interface MoveRecordsOptions extends Pick<MovingOptions, 'host' | 'clock' | 'monotonic'> {
  placed: Pick<PlacedPods, 'recordOf' | 'workloadByKey'>;
}

/**
 * Recent moves of each workload, kept in `status.moves` of its WorkloadPlacement: for users, and so that a restart does not
 * forget how many there were. Workloads without a WorkloadPlacement (no policy) are kept in memory only.
 */
export class MoveRecords {
  readonly #o: MoveRecordsOptions;
  /** By key of the workload (owner-references.ts). */
  readonly #known = new LRUCache<string, readonly Moves[]>(atMost());
  /** By workload and move. */
  readonly #times: WrittenTimes;
  readonly #handlers = new Set<(workloadKey: string) => void>();

  constructor(options: MoveRecordsOptions) {
    this.#o = options;
    this.#times = new WrittenTimes(options);
  }

  /** Calls the handler with the workload's key after each move; its record then needs a sync. */
  on(handler: (workloadKey: string) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** Pods of the workload that were moved within the last hour. `strategies`: only those that were moved by them. */
  withinAnHour(workload: TypedObject, strategies?: readonly string[]): number {
    const moves = this.#counted(workload).filter(({ strategy }) => strategies?.includes(strategy) ?? true);
    return movesWithin(moves, HOUR_MS, this.#o.clock());
  }

  /** In how many ms at most `most` pods of the workload will have been moved within an hour, if no more are. */
  fewEnoughInMs(workload: TypedObject, most: number): number {
    return fewEnoughInMs(this.#counted(workload), HOUR_MS, this.#o.clock(), most);
  }

  /** Clusters that pods of the workload left for that reason within the last hour, but for those of moves that were folded (placement/folded-moves.ts). */
  leftLately(workload: TypedObject, strategy: Strategy): ReadonlySet<string> {
    const now = this.#o.clock();
    const lately = this.#counted(workload).filter((one) => one.strategy === strategy && now - one.last < HOUR_MS);
    return new Set(lately.map(({ from }) => from).filter((from) => from !== SEVERAL_CLUSTERS));
  }

  add(workload: TypedObject, move: Move): void {
    const key = ownerKeyOf(workload);
    const lastOf = (one: Moves): number => this.#lastOf(workload, one);
    const told = { ...move, message: cut(move.message, MAX_MESSAGE) };
    this.#known.set(key, withMove(this.#of(workload), told, this.#o.clock(), lastOf));
    for (const handler of this.#handlers) handler(key);
  }

  /** Throws what the host answers. */
  async bringUpToDate(workloadKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const { host, placed } = this.#o;
    const workload = placed.workloadByKey(workloadKey);
    const record = workload === undefined ? undefined : placed.recordOf(workload);
    if (workload === undefined) return undefined;
    const all = this.#of(workload);
    // The first pod of a workload may go before its object is written; without a policy it has none, ever.
    if (record === undefined)
      return movesWithin(all, HOUR_MS, this.#o.clock()) === 0 ? undefined : { requeueAfterMs: MADE_MS };
    const moves = all.map(({ since, last, ...rest }) => ({
      ...rest,
      since: timestamp(since),
      last: timestamp(last),
    }));
    const isWritten = await patchStatusAsRead(host, WORKLOAD_PLACEMENTS, record, { moves }, { signal });
    return isWritten ? undefined : { requeueAfterMs: AGAIN_MS };
  }

  /** With times that can be compared. */
  #counted(workload: TypedObject): readonly Moves[] {
    return this.#of(workload).map((one) => ({ ...one, last: this.#lastOf(workload, one) }));
  }

  /**
   * Of moves that a clock wrote that was ahead, when they were first seen here: they must not hold others up for longer than an hour from then on,
   * nor again when that time has come.
   */
  #lastOf(workload: TypedObject, { strategy, from, last }: Moves): number {
    const key = `${ownerKeyOf(workload)} ${strategy} ${from} ${String(Math.floor(last / 1_000))}`;
    return this.#times.at(key, last);
  }

  #of(workload: TypedObject): readonly Moves[] {
    const stored = this.#o.placed.recordOf(workload)?.moves ?? [];
    const lastOf = (one: Moves): number => this.#lastOf(workload, one);
    return joinedMoves(this.#known.get(ownerKeyOf(workload)) ?? [], stored, this.#o.clock(), lastOf);
  }
}
