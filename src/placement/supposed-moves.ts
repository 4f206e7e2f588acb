import type { Rooms } from './candidates.ts';
import { type PodCounts, withMore, withoutOne } from './workload.ts';

/** A pod of a workload that is taken to be in another cluster, where it is not yet. */
export interface SupposedMove {
  /** UID of the pod. */
  readonly uid: string;
  readonly from: string;
  readonly to: string;
}

/** Pods of the workload as they would be after the moves. `revisionOf` a pod, by its UID. */
export function podsAfter(
  pods: PodCounts,
  moves: readonly SupposedMove[],
  revisionOf: (uid: string) => string | undefined,
): PodCounts {
  return moves.reduce((all, { uid, from, to }) => {
    const revision = revisionOf(uid);
    return withMore(withoutOne(all, revision, from), revision, to, 1);
  }, pods);
}

/** Rooms for another pod of the workload as they would be after the moves: its pods are taken to be alike. */
export function roomsAfter(rooms: Rooms, moves: readonly SupposedMove[]): Rooms {
  if (moves.length === 0) return rooms;
  const change = new Map<string, number>();
  for (const { from, to } of moves) {
    change.set(from, (change.get(from) ?? 0) + 1);
    change.set(to, (change.get(to) ?? 0) - 1);
  }
  return {
    get: (cluster) => {
      const room = rooms.get(cluster);
      const more = change.get(cluster) ?? 0;
      if (room?.fits === undefined || room.impossible !== undefined || more === 0) return room;
      const fits = Math.max(0, room.fits + more);
      return fits > 0 ? { ...room, fits } : { ...room, fits, why: 'what is free there is for pods that go before it' };
    },
  };
}
