import { fnv32 } from '../kube/fnv.ts';

export interface RemainderShare {
  readonly name: string;
  readonly weight: number;
  /** Pods that it gets before any other gets its minimum. */
  readonly first: number;
  readonly min: number;
  readonly max: number | undefined;
  /** Pods that run there now. */
  readonly current: number;
  /** Pods it can hold in all; undefined when that is not known or does not matter. */
  readonly capacity: number | undefined;
}

interface State {
  readonly share: RemainderShare;
  readonly limit: number;
  planned: number;
  /** Pods kept where they are that are not yet counted against the share by weight. */
  kept: number;
}

/**
 * KubeFed's division: each cluster gets its minimum (and before that `first`, which KubeFed does not have); without
 * `rebalance` it keeps what it has; the rest is shared by weight, each share rounded up, until nothing is left or nobody can
 * take more. Shares are served by weight, heaviest first, equals by the FNV-1 hash of their name and `key`. What does not
 * fit anywhere is `unplaced`: unlike KubeFed nothing beyond the total is asked for to probe full clusters.
 */
export function divideRemainder(
  total: number,
  shares: readonly RemainderShare[],
  options: { rebalance: boolean; key: string },
): { counts: Map<string, number>; unplaced: number } {
  let left = total;
  const states = shares
    .toSorted((a, b) => b.weight - a.weight || fnv32(a.name + options.key) - fnv32(b.name + options.key))
    .map((share): State => {
      const limit = Math.min(share.max ?? Number.POSITIVE_INFINITY, share.capacity ?? Number.POSITIVE_INFINITY);
      return { share, limit, planned: 0, kept: 0 };
    });
  for (const least of ['first', 'min'] as const) {
    for (const state of states) {
      const wanted = Math.min(state.share[least], state.limit) - state.planned;
      const given = Math.max(0, Math.min(wanted, left));
      state.planned += given;
      left -= given;
    }
  }
  if (!options.rebalance) {
    for (const state of states) {
      state.kept = Math.max(0, Math.min(Math.min(state.share.current, state.limit) - state.planned, left));
      state.planned += state.kept;
      left -= state.kept;
    }
  }
  let open = states;
  for (let moved = true; moved && left > 0;) {
    moved = false;
    const weights = open.reduce((all, { share }) => all + share.weight, 0);
    if (weights === 0) break;
    const round = left;
    const dueOf = ({ share }: State): number => Math.ceil((round * share.weight) / weights);
    const alike = roundsAlike(open, dueOf);
    for (const state of open) state.kept -= alike * dueOf(state);
    const stillOpen: State[] = [];
    for (const state of open) {
      const due = Math.min(dueOf(state), left);
      const covered = Math.min(due, state.kept);
      state.kept -= covered;
      const wanted = state.planned + due - covered;
      const planned = Math.max(state.planned, Math.min(wanted, state.limit));
      if (wanted <= state.limit) stillOpen.push(state);
      if (covered > 0 || planned > state.planned) moved = true;
      left -= planned - state.planned;
      state.planned = planned;
    }
    open = stillOpen;
  }
  return { counts: new Map(states.map(({ share, planned }) => [share.name, planned])), unplaced: left };
}

/** Rounds in which everybody's share is covered by what is kept, so that each is like the one before. */
function roundsAlike(open: readonly State[], dueOf: (state: State) => number): number {
  const rounds = open.filter((state) => dueOf(state) > 0).map((state) => Math.floor(state.kept / dueOf(state)));
  return rounds.length === 0 ? 0 : Math.min(...rounds);
}
