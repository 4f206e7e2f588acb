import type { Moment } from './view.ts';
import type { Workload } from './workloads.ts';

/** Moments by key of the workload, the oldest first. */
export type History = ReadonlyMap<string, readonly Moment[]>;

/** Of one workload; the oldest are forgotten. */
export const MOST_MOMENTS = 300;
/** Workloads that are remembered. */
const MOST_WORKLOADS = 1_000;

/** The history with what is seen now: a moment more for each workload whose pods are elsewhere than before. `at`: RFC 3339. */
export function remember(history: History, workloads: readonly Workload[], at: string): History {
  return new Map(
    workloads.slice(0, MOST_WORKLOADS).map(({ view: { key, places, waiting } }) => {
      const before = history.get(key) ?? [];
      const last = before.at(-1);
      const isSame = last?.waiting === waiting && JSON.stringify(last.places) === JSON.stringify(places);
      return [key, isSame ? before : [...before, { at, places, waiting }].slice(-MOST_MOMENTS)];
    }),
  );
}
