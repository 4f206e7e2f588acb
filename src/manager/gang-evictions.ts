import { gangMove } from '../descheduler/gang-timed-out.ts';
import type { Mover } from '../descheduler/mover.ts';
import type { MovesStop } from '../descheduler/moves-stop.ts';
import type { GangEvictions } from '../scheduler/gangs/gang-evictions.ts';

/** Pods of gangs that give up go by the descheduler, as all do. */
export function gangEvictions(mover: Pick<Mover, 'move'>, stop: Pick<MovesStop, 'why'>): GangEvictions {
  return {
    giveBack: async (pod, at, isStillToGo, signal) => {
      const outcome = await mover.move(gangMove(pod, at, isStillToGo), signal);
      if (outcome === 'moved') return 'gone';
      if (outcome === 'notWanted') return 'notWanted';
      return stop.why === undefined ? 'held' : 'stopped';
    },
  };
}
