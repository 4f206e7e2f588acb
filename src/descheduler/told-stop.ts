import { MOVES_STOPPED_ANNOTATION } from '../api/marks.ts';
import { DESCHEDULER_LEASE, stopInWords } from '../api/moves-stopped.ts';
import { apiVersionOf, LEASES } from '../kube/resource.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import type { MovesStop } from './moves-stop.ts';
import type { MovingOptions } from './moving-options.ts';
import { ToldCauses } from './told-causes.ts';

/** Between two looks at a stop that lasts, in ms. */
const LOOK_MS = 60_000;

export interface ToldStopOptions extends Pick<MovingOptions, 'events' | 'logger' | 'monotonic'> {
  stop: Pick<MovesStop, 'said' | 'uid'>;
  /** Of the Lease. */
  namespace: string;
}

/** Says in log and Events of the Lease that people have stopped all moves, again from time to time, and that they may go on. */
export class ToldStop {
  readonly #o: ToldStopOptions;
  readonly #told: ToldCauses;
  #isStopped = false;

  constructor(options: ToldStopOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  look(): HandlerResult {
    const { stop, namespace, events, logger } = this.#o;
    const { said, uid } = stop;
    const wasStopped = this.#isStopped;
    this.#isStopped = said !== undefined;
    const about = { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, namespace, name: DESCHEDULER_LEASE, uid };
    if (said === undefined) {
      if (!wasStopped) return undefined;
      this.#told.forget(DESCHEDULER_LEASE);
      logger.info('moves of pods may begin again');
      events.record(about, 'Normal', 'MovesResumed', 'moves of pods may begin again');
      return undefined;
    }
    if (this.#told.isToBeTold(DESCHEDULER_LEASE, said)) {
      const undone = `kubectl annotate lease ${DESCHEDULER_LEASE} -n ${namespace} ${MOVES_STOPPED_ANNOTATION}-`;
      const words = `${stopInWords(said)}: those that have begun are finished or given back, no other one begins. To let them go on: ${undone}`;
      logger.warn(words);
      events.record(about, 'Warning', 'MovesStopped', words);
    }
    return { requeueAfterMs: LOOK_MS };
  }

  /** Another replica goes on, and says what is so there. */
  end(): void {
    this.#isStopped = false;
    this.#told.forget(DESCHEDULER_LEASE);
  }
}
