import { MOVES_STOPPED_ANNOTATION } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { DESCHEDULER_LEASE, stopInWords } from '../api/moves-stopped.ts';
import { apiVersionOf, LEASES } from '../kube/resource.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { lostMembers } from '../placement/lost-members.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MovesStop } from './moves-stop.ts';
import type { MovingOptions } from './moving-options.ts';
import { ToldCauses } from './told-causes.ts';

/** Between two looks at a halt that lasts, in ms. */
const LOOK_MS = 60_000;
/** What is told of the Lease; no member has such a name. */
const LEASE = `Lease ${DESCHEDULER_LEASE}`;
const ENOUGH_ANSWER =
  'enough members answer: pods of those that stay lost are moved when their time is over, which begins now';

export interface ToldHaltsOptions extends Pick<MovingOptions, 'events' | 'metrics' | 'logger' | 'monotonic'> {
  placed: Pick<PlacedPods, 'members'>;
  stop: Pick<MovesStop, 'said' | 'uid'>;
  /** Of the Lease. */
  namespace: string;
}

/**
 * Tells of what holds up all moves, again from time to time, and in the log that it is over: each lost member while its pods are not moved, as most
 * members do not answer, and the Lease while people have stopped all moves.
 */
export class ToldHalts {
  readonly #o: ToldHaltsOptions;
  readonly #told: ToldCauses;
  #isPaused = false;
  #isStopped = false;

  constructor(options: ToldHaltsOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  look(): HandlerResult {
    this.#lookAtPause();
    this.#lookAtStop();
    return this.#isPaused || this.#isStopped ? { requeueAfterMs: LOOK_MS } : undefined;
  }

  #lookAtPause(): void {
    const { placed, events, metrics, logger } = this.#o;
    const { lost, paused } = lostMembers(placed.members());
    const wasPaused = this.#isPaused;
    this.#isPaused = paused !== undefined;
    metrics.paused.set(this.#isPaused ? 1 : 0);
    this.#told.keepOnly((about) => about === LEASE || (this.#isPaused && lost.has(about)));
    if (paused === undefined) {
      if (wasPaused) logger.info(ENOUGH_ANSWER);
      return;
    }
    if (!wasPaused) logger.warn(paused);
    for (const name of lost.keys()) {
      if (!this.#told.isToBeTold(name, 'paused')) continue;
      const about = { apiVersion: apiVersionOf(MEMBER_CLUSTERS), kind: MEMBER_CLUSTERS.kind, name };
      const advice = `to move them all the same, give ${name} a taint of effect NoExecute (spec.clusterTaints)`;
      events.record(about, 'Warning', 'MovesPaused', `${paused}; ${advice}`);
    }
  }

  #lookAtStop(): void {
    const { stop, namespace, events, logger } = this.#o;
    const { said, uid } = stop;
    const wasStopped = this.#isStopped;
    this.#isStopped = said !== undefined;
    const about = { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, namespace, name: DESCHEDULER_LEASE, uid };
    if (said === undefined) {
      if (!wasStopped) return;
      this.#told.forget(LEASE);
      logger.info('moves of pods may begin again');
      events.record(about, 'Normal', 'MovesResumed', 'moves of pods may begin again');
    } else if (this.#told.isToBeTold(LEASE, said)) {
      const undone = `kubectl annotate lease ${DESCHEDULER_LEASE} -n ${namespace} ${MOVES_STOPPED_ANNOTATION}-`;
      const words = `${stopInWords(said)}: those that have begun are finished or given back, no other one begins. To let them go on: ${undone}`;
      logger.warn(words);
      events.record(about, 'Warning', 'MovesStopped', words);
    }
  }

  /** Another replica goes on, and says what is so there. */
  end(): void {
    [this.#isPaused, this.#isStopped] = [false, false];
    this.#told.keepOnly(() => false);
    this.#o.metrics.paused.set(0);
  }
}
