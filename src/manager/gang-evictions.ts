import { gangMove } from '../descheduler/gang-timed-out.ts';
import type { Mover } from '../descheduler/mover.ts';
import type { MovesStop } from '../descheduler/moves-stop.ts';
import type { GangEvictions } from '../scheduler/gangs/gang-evictions.ts';

/** Pods of gangs that give up go by the descheduler, as all do. */
export function gangEvictions(
  mover: Pick<Mover, 'move' | 'restMs' | 'inTurn'>,
  stop: Pick<MovesStop, 'why'>,
): GangEvictions {
  return {
    inTurn: (pods) => mover.inTurn(pods),
    giveBack: async (pod, at, isStillToGo, signal) => {
      // It would take a turn of its member from pods that can go. What stops all moves is told all the same.
      if (stop.why === undefined && mover.restMs(pod) > 0) return 'held';
      const outcome = await mover.move(gangMove(pod, at, isStillToGo), signal);
      if (outcome === 'moved') return 'gone';
      if (outcome === 'notWanted') return 'notWanted';
      if (stop.why !== undefined) return 'stopped';
      return outcome === 'held' ? 'held' : 'controllerHeld';
    },
  };
}
