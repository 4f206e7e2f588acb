import { isActive, isFinished } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import type { Displacement } from '../placement/better-place.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { displacedPod } from './displaced-pod.ts';
import { displacedAfterMs, displacedMove } from './displaced.ts';
import type { MoveRecords } from './move-records.ts';
import type { Mover } from './mover.ts';
import { whyNotMovedAtWill } from './replaceable.ts';
import type { Recheck } from './wanted-move.ts';

/** Between two looks at a workload whose rules let its pods move for better places, in ms. */
const LOOK_MS = 15_000;
const STRATEGIES: readonly Displacement[] = ['Repatriate', 'DivisionDrift', 'PolicyChanged', 'SpreadViolation'];

export interface DisplacedPodsOptions {
  placed: Pick<PlacedPods, 'member' | 'ofWorkload' | 'rulesOf' | 'clusterOf' | 'betterPlace'>;
  mover: Pick<Mover, 'read' | 'wasSent' | 'isGoing' | 'inTurn' | 'restMs' | 'keeps' | 'move'>;
  records: Pick<MoveRecords, 'withinAnHour' | 'leftLately'>;
  /** In ms. */
  monotonic: () => number;
}

/** Since when a better place has been there at every look, in monotonic ms. */
interface Sight {
  readonly strategy: Displacement;
  /** Where it would have gone at each look since. */
  readonly to: ReadonlySet<string>;
  readonly since: number;
}

/**
 * Moves pods that would be elsewhere if they came now, where a policy asks for that: home again, by the shares of today, by a
 * policy that was edited, spread as it asks. One pod of a workload at a time, only while all of them are Ready and the better place has been there
 * for as long as the policy says, and within an hour at most as many as it has: nothing that runs well is in a hurry.
 */
export class DisplacedPods {
  readonly #o: DisplacedPodsOptions;
  /** By UID of the workload. */
  readonly #seen = new Map<string, Sight>();

  constructor(options: DisplacedPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(workloadKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, mover, monotonic } = this.#o;
    const pods = placed.ofWorkload(workloadKey).filter((pod) => !isFinished(pod));
    const [first] = pods;
    const after = first === undefined ? undefined : displacedAfterMs(placed.rulesOf(first).failover);
    if (after === undefined || after.size === 0) {
      this.#seen.delete(workloadKey);
      return undefined;
    }
    const found = await displacedPod(pods, this.#o, (strategy) => after.has(strategy), signal);
    const now = monotonic();
    const known = this.#seen.get(workloadKey);
    if (found === undefined || found === 'unread' || 'unknown' in found) {
      this.#seen.delete(workloadKey);
      return { requeueAfterMs: LOOK_MS };
    }
    const { pod, from, better } = found;
    const { strategy } = better;
    // What pods went to is to be left now: rules have turned round, and none goes back for what was seen before.
    const goesOn = known?.strategy === strategy && !known.to.has(from);
    const since = goesOn ? known.since : now;
    const to = new Set(goesOn ? known.to : []).add(better.cluster);
    this.#seen.set(workloadKey, { strategy, since, to });
    const rest = since + (after.get(strategy) ?? 0) - now;
    if (rest > 0) return { requeueAfterMs: Math.min(rest, LOOK_MS) };
    const move = displacedMove(found, now - since, (live) => this.#recheck(live, from, strategy));
    if (mover.restMs(pod) === 0 && !mover.keeps(move)) await mover.move(move, signal);
    return { requeueAfterMs: LOOK_MS };
  }

  #recheck(live: Pod, from: string, strategy: Displacement): Recheck {
    const { placed, mover, records } = this.#o;
    if (placed.clusterOf(live.spec.nodeName ?? '') !== from || isFinished(live)) return 'notWanted';
    if (placed.member(from)?.silent !== undefined) return 'notWanted';
    const { workload, replicas, failover } = placed.rulesOf(live);
    const better = placed.betterPlace(live, from, (one) => one === strategy);
    if (better === undefined || 'unknown' in better) return 'notWanted';
    if (!displacedAfterMs(failover).has(strategy) || better.strategy !== strategy) return 'notWanted';
    const own = whyNotMovedAtWill(live);
    if (own !== undefined) return { why: own };
    const there = placed.ofWorkload(ownerKeyOf(workload)).filter(isActive);
    // One is on its way, be it that the caches do not show it yet, or does not run well: it will be looked at again.
    const areAllWell = there.every((pod) => isReady(pod) && !mover.isGoing(pod));
    if (there.length < (replicas ?? 0) || !areAllWell) return 'notWanted';
    if (records.leftLately(workload, 'UnhealthyInMember').has(better.cluster))
      return { why: `pods of its workload were not well in ${clusterInWords(better.cluster)} within the last hour` };
    const count = records.withinAnHour(workload, STRATEGIES);
    return count < there.length
      ? undefined
      : { why: 'each of its pods, on the average, was moved once within the last hour' };
  }
}
