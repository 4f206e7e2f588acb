import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { apiVersionOf } from '../kube/resource.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { lostMembers } from '../placement/lost-members.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MovingOptions } from './moving-options.ts';
import { ToldCauses } from './told-causes.ts';

/** Between two looks at a pause that lasts, in ms. */
const LOOK_MS = 60_000;

export interface ToldPauseOptions extends Pick<MovingOptions, 'events' | 'metrics' | 'logger' | 'monotonic'> {
  placed: Pick<PlacedPods, 'members'>;
}

/** Tells each lost member while its pods are not moved, as most members do not answer, again from time to time. */
export class ToldPause {
  readonly #o: ToldPauseOptions;
  readonly #told: ToldCauses;
  #isPaused = false;

  constructor(options: ToldPauseOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  look(): HandlerResult {
    const { placed, events, metrics, logger } = this.#o;
    const { lost, paused } = lostMembers(placed.members());
    metrics.paused.set(paused === undefined ? 0 : 1);
    if (this.#isPaused !== (paused !== undefined)) {
      if (paused === undefined)
        logger.info(
          'enough members answer: pods of those that stay lost are moved when their time is over, which begins now',
        );
      else logger.warn(paused);
    }
    this.#isPaused = paused !== undefined;
    this.#told.keepOnly((name) => paused !== undefined && lost.has(name));
    if (paused === undefined) return undefined;
    for (const name of lost.keys()) {
      if (!this.#told.isToBeTold(name, 'paused')) continue;
      const about = { apiVersion: apiVersionOf(MEMBER_CLUSTERS), kind: MEMBER_CLUSTERS.kind, name };
      const advice = `to move them all the same, give ${name} a taint of effect NoExecute (spec.clusterTaints)`;
      events.record(about, 'Warning', 'MovesPaused', `${paused}; ${advice}`);
    }
    return { requeueAfterMs: LOOK_MS };
  }

  /** Another replica goes on, and says what is so there. */
  end(): void {
    this.#isPaused = false;
    this.#told.keepOnly(() => false);
    this.#o.metrics.paused.set(0);
  }
}
