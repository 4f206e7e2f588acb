import { isActive } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerKeyOf } from '../kube/owner-references.ts';
import type { PlacedPods, SurgingSet } from '../placement/placed-pods.ts';
import { IdleControllers, type IdleControllersOptions } from './idle-controllers.ts';
import type { LivePods } from './live-pods.ts';
import type { MovesFuse } from './moves-fuse.ts';
import type { MovesUnderWay } from './moves-under-way.ts';
import type { MovingOptions } from './moving-options.ts';
import { goesGracefully, staysByPolicy, waitsForHeal } from './purge-mode.ts';
import { STRATEGIES } from './strategies.ts';
import type { Held, WantedMove } from './wanted-move.ts';

/** Retry delay for a pod that fits in no other cluster (ms). */
const NO_PLACE_MS = 15_000;
/** The same when the free capacity is for pods that come earlier, and soon (ms). */
const TAKEN_MS = 2_000;
/** Retry delay while all moves are stopped (ms). */
const STOPPED_MS = 5_000;
export const NEVER = 'its policy says purgeMode: Never';

export interface MoveCheckOptions extends Pick<MovingOptions, 'stop' | 'monotonic'> {
  live: LivePods;
  underWay: MovesUnderWay;
  placed: IdleControllersOptions['placed'] &
    Pick<PlacedPods, 'problem' | 'rulesOf' | 'whyRulesUnknown' | 'whyNotElsewhere' | 'surgingSetOf' | 'member'>;
  fuse: Pick<MovesFuse, 'tooOften'>;
}

/** A pod that may be moved now. `set`: the ReplicaSet that makes a replacement first; undefined: evict at once. */
export interface Found {
  readonly live: Pod;
  readonly set: SurgingSet | undefined;
  /** It waits for its member, which does not answer, beside the replacement: only with a ReplicaSet that makes that. */
  readonly lost?: boolean;
}

/** Whether a pod that a strategy wants elsewhere may go now, by what the host says of it at this moment, and how. */
export class MoveCheck {
  readonly #o: MoveCheckOptions;
  readonly #idle: IdleControllers;

  constructor(options: MoveCheckOptions) {
    this.#o = options;
    this.#idle = new IdleControllers(options);
  }

  /** The live pod, if it should still be moved and fits elsewhere. @throws what the host answers that says nothing of the pod */
  async look(wanted: WantedMove, signal: AbortSignal): Promise<Found | { stays: 'notWanted' | Held }> {
    const { live: pods } = this.#o;
    const read = await pods.readNow(wanted.pod, signal);
    if (!('live' in read)) return read;
    const { live } = read;
    if ((await wanted.isOrdered?.(signal)) === false) return { stays: 'notWanted' };
    const { stopped } = this;
    return stopped === undefined ? this.judge(wanted, live) : { stays: stopped };
  }

  /** The same whatever people say of all moves, of a pod that was read: from caches. */
  judge(wanted: WantedMove, live: Pod): Found | { stays: 'notWanted' | Held } {
    const { placed, live: pods, underWay } = this.#o;
    // After an outage of the host the pod can be read before the watches have caught up with taints and members.
    if (placed.problem !== undefined)
      return { stays: { why: `the host cannot be followed now (${placed.problem})`, ofWorkload: true } };
    const found = wanted.recheck(live);
    if (found !== undefined) {
      pods.remember(live);
      if (found === 'notWanted') return { stays: found };
      // For how long is the business of this strategy, which asks again from what was read: others may have their own reasons meanwhile.
      const { forMs: _, ...held } = found;
      return { stays: held };
    }
    if (staysByPolicy(wanted.strategy, placed.rulesOf(live).failover)) return { stays: { why: NEVER } };
    // Its policy may keep it where it is, or leave its successor nowhere to go. A gang that gives up goes whatever its policy says.
    const unknown = wanted.strategy === 'GangTimedOut' ? undefined : placed.whyRulesUnknown(live);
    if (unknown !== undefined) return { stays: { why: unknown, forMs: NO_PLACE_MS, ofWorkload: true } };
    if (wanted.leavesAnyway === true) return { live, set: undefined };
    const tooOften = this.tooOften(wanted, live);
    if (tooOften !== undefined) return { stays: tooOften };
    const { from, strategy, wouldAvoid = [] } = wanted;
    const { mayStayInMember: mayStay = false } = STRATEGIES[strategy];
    // At each look, whatever comes of it: by these it is known for how long none was made.
    const noneComes = this.#whyNoneComes(live, wanted);
    const noPlace = placed.whyNotElsewhere(live, from, underWay.sent(live), { mayStay, wouldAvoid });
    if (noPlace === undefined) {
      // Without a ReplicaSet that makes the other one first (Recreate) it cannot wait beside that, and goes as any pod does that is evicted at once.
      const lost = waitsForHeal(live, strategy, placed.rulesOf(live).failover);
      const set = lost ? placed.surgingSetOf(live) : this.setBefore(live, wanted);
      if (set !== undefined) return { live, set, lost };
      if (noneComes !== undefined) return { stays: noneComes };
      const waiting = isReady(live) ? this.#waitingInVain(live) : undefined;
      if (waiting === undefined) return { live, set: undefined };
      const why = `another pod of its workload has found no node (${waiting.metadata.name})`;
      return { stays: { why, ofController: true } };
    }
    const { why, isTaken } = noPlace;
    return { stays: { why, forMs: isTaken ? TAKEN_MS : NO_PLACE_MS, ofController: true } };
  }

  /** The ReplicaSet that makes a replacement first; undefined when the pod is evicted at once. */
  setBefore(pod: Pod, { from, strategy }: WantedMove): SurgingSet | undefined {
    const { placed } = this.#o;
    if (!goesGracefully(pod, strategy, placed.rulesOf(pod).failover)) return undefined;
    return placed.member(from)?.reachable === false ? undefined : placed.surgingSetOf(pod);
  }

  /** Why its workload may have no more moves within this hour: it is to be asked again right before one is sent, as others may have come first. */
  tooOften({ leavesAnyway }: WantedMove, live: Pod): Held | undefined {
    const found = leavesAnyway === true ? undefined : this.#o.fuse.tooOften(live);
    if (found === undefined) return undefined;
    const { count, limit, forMs } = found;
    const why = `pods of its workload were moved too often (${String(count)} times within an hour; ${limit})`;
    return { why, forMs, ofWorkload: true };
  }

  /** By the word of people, which may come while the move waits for its turn. */
  get stopped(): Held | undefined {
    const { why } = this.#o.stop;
    return why === undefined ? undefined : { why, forMs: STOPPED_MS, ofWorkload: true };
  }

  /**
   * Why nobody comes in its place, be there a place or not. Out of a member that does not answer others count that went before it and end as it would: the room in a
   * quota that its controller needs may be theirs, so without any it goes first.
   */
  #whyNoneComes(live: Pod, { from, strategy }: WantedMove): Held | undefined {
    const found = this.#idle.whyNoneComes(live, this.#o.placed.member(from)?.reachable === false);
    return STRATEGIES[strategy].servesNot === true ? undefined : found;
  }

  /**
   * A pod of its controller that has no node, nor a place that is kept for it: the next one that came would find none either, and this one serves.
   * What another ReplicaSet of its workload asks for, in a roll-out, may be otherwise.
   */
  #waitingInVain(live: Pod): Pod | undefined {
    const { placed, underWay } = this.#o;
    return placed
      .ofController(controllerKeyOf(live) ?? '')
      .find((pod) => pod.spec.nodeName === undefined && isActive(pod) && !underWay.isPlacing(pod));
  }
}
