import {
  movesListed,
  type ObservedWorkload,
  WORKLOAD_REBALANCERS,
  type WorkloadRebalancer,
  type WorkloadReference,
} from '../api/workload-rebalancer.ts';
import { isActive, isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isReady } from '../kube/conditions.ts';
import type { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import type { PlaceUnknown } from '../placement/better-place.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { rebalanceMove } from './displaced.ts';
import { displacedPod } from './displaced-pod.ts';
import type { MovingOptions } from './moving-options.ts';
import { deletedInMs, isSameOrder, NO_SUCH_WORKLOAD, OrderMemory, whyNotFollowed } from './order.ts';
import { OrderFailures } from './order-failures.ts';
import { isOrdered, removeFinished, writeOrderStatus } from './order-requests.ts';
import type { Mover } from './mover.ts';
import type { MovesFuse } from './moves-fuse.ts';
import { rehearse } from './rebalance-rehearsal.ts';
import { rebalanceStatus, rehearsalInWords, resultsOf } from './rebalance-status.ts';
import { whyNotMoved } from './replaceable.ts';
import type { Held, Recheck } from './wanted-move.ts';

/** Between two looks at workloads that are being rebalanced, in ms. */
const LOOK_MS = 2_000;
/** A workload of which no pod could be moved for so long is given up, in ms. */
const PATIENCE_MS = 600_000;
/** Until it is told that a workload waits for its pods to be Ready, as after each move it does for a moment, in ms. */
const SLOW_MS = 30_000;
/** Workloads and policies that were written just before may not be known yet: a result is one that every look finds for so long, in ms. */
const SETTLED_MS = 5_000;
const UNREAD = 'its pods could not be read for ten minutes (apply manifests/scheduler/descheduler.yaml)';
const NOT_WELL = 'not all of its pods are there and Ready';

export interface RebalancersOptions extends Pick<MovingOptions, 'host' | 'stop' | 'dryRun' | 'clock' | 'monotonic'> {
  placed: Pick<
    PlacedPods,
    | 'problem'
    | 'member'
    | 'workloadNamed'
    | 'hasRules'
    | 'whyRulesUnknown'
    | 'ofWorkload'
    | 'rulesOf'
    | 'clusterOf'
    | 'betterPlace'
  >;
  mover: Pick<
    Mover,
    'read' | 'wasSent' | 'isGoing' | 'inTurn' | 'restMs' | 'keeps' | 'move' | 'whyHeld' | 'whyHeldNow'
  > & {
    readonly fuse: Pick<MovesFuse, 'tooOften'>;
  };
  /** All there are; `problem`: why they cannot be followed now. */
  rebalancers: Pick<Informer<WorkloadRebalancer>, 'get' | 'problem'>;
}

type Outcome = Omit<ObservedWorkload, 'workload'>;

/** What a look found. Without a result the message is for when it is given up. */
interface Found extends Outcome {
  /** What keeps it now. */
  readonly waitsFor?: string | undefined;
  /** The limit of moves within an hour holds its pods back: a wait that ends by itself. */
  readonly rests?: boolean;
}

/** What is known of one workload of a rebalancer. */
interface Sight {
  /** When it was first looked at, a pod of it was moved, or something held it that ends by itself, whichever was last, in monotonic ms. */
  progress: number;
  /** Its result, if that is the same at each look from then on, in monotonic ms. */
  found?: { reason: Outcome['reason']; since: number };
}

/** By the place of the workload in the spec. */
type Sights = Map<number, Sight>;

/**
 * Carries WorkloadRebalancers out: moves pods that would be elsewhere if they came now, whatever their policies let happen by itself. One pod
 * of a workload at a time, and only while all of them are Ready. Says what became of each workload.
 */
export class Rebalancers {
  readonly #o: RebalancersOptions;
  /** Forgotten in a restart, which only makes them take longer. */
  readonly #sights = new OrderMemory<Sights>();
  /** UIDs of workloads of which a pod is being moved: several rebalancers may name one. */
  readonly #moving = new Set<string>();

  constructor(options: RebalancersOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(name: string, signal: AbortSignal): Promise<HandlerResult> {
    const { rebalancers, clock, host } = this.#o;
    const object = rebalancers.get(name);
    if (object === undefined) return this.#sights.forget(name);
    const deletedIn = deletedInMs(object, clock());
    if (deletedIn !== undefined && deletedIn > 0) return { requeueAfterMs: deletedIn };
    if (deletedIn === 0) {
      await removeFinished(host, WORKLOAD_REBALANCERS, object, signal);
      return this.#sights.forget(name);
    }
    const done = resultsOf(object, this.#isDry(object));
    const sights = this.#sights.of(name, object, () => new Map());
    const observed: ObservedWorkload[] = [];
    const failures = new OrderFailures();
    for (const [index, workload] of object.spec.workloads.entries()) {
      const known = done.find((one) => jsonEqual(one.workload, workload));
      const look = async (sight: Sight): Promise<Found> => {
        const looked = await failures.at(async () => await this.#look(object, workload, sight, signal));
        if ('done' in looked) return looked.done;
        const { failed } = looked;
        return { reason: 'Progressing', message: failed, waitsFor: failed, rests: failures.ofHost !== undefined };
      };
      observed.push(known ?? { workload, ...(await this.#step(object, this.#sight(sights, index), look)) });
    }
    const status = rebalanceStatus(object, observed, { now: clock(), isDry: this.#isDry(object) });
    await failures.afterwards(() => writeOrderStatus(host, WORKLOAD_REBALANCERS, object, status, signal));
    if (status.finishTime === undefined) return { requeueAfterMs: LOOK_MS };
    return this.#sights.forget(name);
  }

  async #step(object: WorkloadRebalancer, sight: Sight, look: (sight: Sight) => Promise<Found>): Promise<Outcome> {
    const { waitsFor, rests = false, ...outcome } = await look(sight);
    const { result, reason } = outcome;
    const now = this.#o.monotonic();
    if (result === undefined) delete sight.found;
    else if (sight.found?.reason !== reason) sight.found = { reason, since: now };
    if (sight.found !== undefined && now - sight.found.since >= SETTLED_MS) return outcome;
    const { why: stopped } = this.#o.stop;
    // What moves nothing is answered all the same.
    if (stopped !== undefined && result === undefined && !this.#isDry(object)) {
      sight.progress = now;
      return { reason: 'Progressing', message: stopped };
    }
    if (rests) sight.progress = now;
    if (now - sight.progress < PATIENCE_MS || outcome.result !== undefined) {
      return { reason: 'Progressing', ...(waitsFor === undefined ? {} : { message: waitsFor }) };
    }
    const { message = 'not all of its pods were Ready for ten minutes' } = outcome;
    return { result: 'Failed', reason: 'PodsStay', message };
  }

  /** Moves a pod if there is one to move. */
  async #look(
    object: WorkloadRebalancer,
    reference: WorkloadReference,
    sight: Sight,
    signal: AbortSignal,
  ): Promise<Found> {
    const { host, placed, mover, monotonic } = this.#o;
    // What was written since may say otherwise, and a result is for good.
    const { problem } = placed;
    if (problem !== undefined) {
      const message = `the host cannot be followed now (${problem})`;
      return { reason: 'Progressing', message, waitsFor: message, rests: true };
    }
    const workload = placed.workloadNamed(reference);
    if (workload === undefined) {
      return { result: 'Failed', reason: 'ReferencedWorkloadNotFound', message: NO_SUCH_WORKLOAD };
    }
    const key = ownerKeyOf(workload);
    const pods = this.#podsOf(key);
    const [first] = pods;
    const unknown = first === undefined ? undefined : placed.whyRulesUnknown(first);
    if (unknown !== undefined) return notKnown({ unknown });
    if (first !== undefined && !placed.hasRules(first)) {
      const message = 'no policy and no label of its namespace speaks about it';
      return { result: 'Failed', reason: 'NoPolicy', message };
    }
    if (this.#isDry(object)) return await this.#rehearse(object, pods, signal);
    if (this.#moving.has(key)) return { reason: 'Progressing' };
    if (!this.#areAllWell(pods)) {
      const isSlow = monotonic() - sight.progress >= SLOW_MS;
      return { reason: 'Progressing', waitsFor: isSlow ? NOT_WELL : undefined };
    }
    const found = await displacedPod(pods, this.#o, () => true, signal);
    if (found === undefined) return { result: 'Successful', reason: 'Rebalanced' };
    if (found === 'unread') return { reason: 'Progressing', message: UNREAD };
    if ('unknown' in found) return notKnown(found);
    const notFollowed = this.#whyNotFollowed();
    if (notFollowed !== undefined)
      return { reason: 'Progressing', waitsFor: `not moved now: ${notFollowed}`, rests: true };
    const move = rebalanceMove(found, object.metadata.name, {
      recheck: (live) => (this.#asksFor(object, reference) ? this.#recheck(live, key, found.from) : 'notWanted'),
      isOrdered: async (until) => await isOrdered(host, WORKLOAD_REBALANCERS, object, until),
    });
    if (mover.restMs(found.pod) === 0 && !mover.keeps(move) && !this.#moving.has(key)) {
      this.#moving.add(key);
      try {
        if ((await mover.move(move, signal)) === 'moved') sight.progress = monotonic();
      } finally {
        this.#moving.delete(key);
      }
    }
    const held = mover.whyHeld(found.pod, 'Rebalance');
    const message =
      'pods would be elsewhere if they came now, and none could be moved for ten minutes: their Events say why';
    if (held === undefined) return { reason: 'Progressing', message };
    const rests = placed.problem !== undefined || mover.fuse.tooOften(found.pod) !== undefined;
    return {
      reason: 'Progressing',
      message: `${message}; at last: ${held}`,
      waitsFor: `not moved now: ${held}`,
      rests,
    };
  }

  #isDry({ spec }: WorkloadRebalancer): boolean {
    return spec.dryRun || this.#o.dryRun;
  }

  /** Says which pods would be moved, and moves none. */
  async #rehearse({ metadata, spec }: WorkloadRebalancer, pods: readonly Pod[], signal: AbortSignal): Promise<Found> {
    const { placed, mover } = this.#o;
    const most = movesListed(spec.workloads.length);
    const found = await rehearse(
      pods,
      {
        placed,
        mover,
        most,
        whyHeld: (one) => mover.whyHeldNow(rebalanceMove(one, metadata.name, { recheck: heldByItself })),
      },
      signal,
    );
    if (found.moves.length === 0 && found.isUnread) {
      const waitsFor = 'its pods cannot be read now, or what the host shows of them may be old';
      return { reason: 'Progressing', message: UNREAD, waitsFor };
    }
    if (found.moves.length === 0 && found.unknown !== undefined) return notKnown({ unknown: found.unknown });
    if (found.moves.length === 0) return { result: 'Successful', reason: 'Rebalanced' };
    const held = this.#areAllWell(pods) ? found.held : [NOT_WELL, ...found.held];
    return { result: 'Successful', reason: 'DryRun', ...rehearsalInWords({ ...found, held }) };
  }

  /** Why no move begins now, as the object that asks for it may be gone or another one by now. */
  #whyNotFollowed(): string | undefined {
    return whyNotFollowed(WORKLOAD_REBALANCERS, this.#o.rebalancers.problem);
  }

  /** Not deleted, made anew or edited while the move waited for its turn. */
  #asksFor(asked: WorkloadRebalancer, reference: WorkloadReference): boolean {
    const now = this.#o.rebalancers.get(asked.metadata.name);
    return isSameOrder(asked, now) && now.spec.workloads.some((one) => jsonEqual(one, reference));
  }

  #recheck(live: Pod, workloadKey: string, from: string): Recheck {
    const { placed } = this.#o;
    if (placed.clusterOf(live.spec.nodeName ?? '') !== from || isFinished(live)) return 'notWanted';
    const notFollowed = this.#whyNotFollowed();
    if (notFollowed !== undefined) return { why: notFollowed, ofWorkload: true };
    const better = placed.betterPlace(live, from);
    if (placed.member(from)?.silent !== undefined || better === undefined || 'unknown' in better) return 'notWanted';
    const own = heldByItself(live);
    if (own !== undefined) return own;
    // One is on its way, or does not run well: it will be looked at again.
    return this.#areAllWell(this.#podsOf(workloadKey)) ? undefined : 'notWanted';
  }

  #podsOf(workloadKey: string): readonly Pod[] {
    return this.#o.placed.ofWorkload(workloadKey).filter((pod) => !isFinished(pod));
  }

  /**
   * All are there and Ready, and none is on its way. One that is being deleted may be so for days, in a member that does not answer: as many as are
   * wanted have to be there beside it, and that is all.
   */
  #areAllWell(pods: readonly Pod[]): boolean {
    const { placed, mover } = this.#o;
    const [first] = pods;
    const wanted = first === undefined ? 0 : (placed.rulesOf(first).replicas ?? 0);
    const there = pods.filter(isActive);
    return there.length >= wanted && there.every((pod) => isReady(pod) && !mover.isGoing(pod));
  }

  #sight(sights: Sights, index: number): Sight {
    const sight = sights.get(index) ?? { progress: this.#o.monotonic() };
    sights.set(index, sight);
    return sight;
  }
}

/** Whether its pods are where they would go. */
function notKnown({ unknown }: PlaceUnknown): Found {
  const message = `it is not known where its pods would go: ${unknown}`;
  return { reason: 'Progressing', message, waitsFor: message };
}

/** Of Jobs, too: somebody named this one. */
function heldByItself(live: Pod): Held | undefined {
  const why = whyNotMoved(live);
  return why === undefined ? undefined : { why };
}
