import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

export interface MovesMetrics {
  readonly moves: Counter<'strategy' | 'member' | 'outcome'>;
  readonly paused: Gauge;
  readonly stopped: Gauge;
  readonly released: Gauge;
  readonly releasesEnded: Counter<'outcome'>;
}

/** One set for the process. */
export function movesMetrics(registry: Registry): MovesMetrics {
  const registers = [registry];
  return {
    moves: new Counter({
      name: 'spillway_descheduler_moves_total',
      help: 'Pods that a strategy wanted to move out of a member, by what came of it (moved; held, and wanted in a dry run: counted anew every 20 minutes)',
      labelNames: ['strategy', 'member', 'outcome'],
      registers,
    }),
    released: new Gauge({
      name: 'spillway_descheduler_released_pods',
      help: 'Pods that are out of their ReplicaSet now, while others come up in their places',
      registers,
    }),
    releasesEnded: new Counter({
      name: 'spillway_descheduler_releases_ended_total',
      help: 'Pods that were out of their ReplicaSet, by what became of them (Replaced, GivenBack, Kept and RanShorter: when a lost member was back; NotWell, HasToLeave and ForeignCost: when it was, and the other one stays; NoOther, OutOfService, TimedOut, Gone: the ReplicaSet; NoReplicas: it is scaled to 0; Finished)',
      labelNames: ['outcome'],
      registers,
    }),
    stopped: new Gauge({
      name: 'spillway_descheduler_stopped',
      help: '1 while no move begins, as people have stopped all moves by an annotation of the Lease',
      registers,
    }),
    paused: new Gauge({
      name: 'spillway_descheduler_paused',
      help: '1 while so many members do not answer at once that pods of none are moved for it',
      registers,
    }),
  };
}
