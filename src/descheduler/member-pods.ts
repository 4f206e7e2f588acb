import { isActive, isFinished } from '../api/pod-phase.ts';
import { SILENT_MS } from '../api/fencing.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { byUid } from '../kube/object.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { controllerOrOwnKeyOf, ownerKeyOf } from '../kube/owner-references.ts';
import { lostMembers } from '../placement/lost-members.ts';
import { drainWords, isOnDrained, whyItStaysDrained } from './drain.ts';
import type { LossAges } from './loss-ages.ts';
import { lostWords, replacedAfterMs, whyItStaysLost } from './member-lost.ts';
import type { Mover } from './mover.ts';
import type { MovingOptions } from './moving-options.ts';
import { isOutOfService, outOfServiceWords, whyItStaysOutOfService, withWordsThatCount } from './out-of-service.ts';
import type { MoveRules, PlacedMember, PlacedPods } from '../placement/placed-pods.ts';
import type { TaintAges } from './taint-ages.ts';
import { taintsAgainst, taintWords, whyItStaysTainted } from './taint-no-execute.ts';
import type { MoveWords, Recheck, WantedMove } from './wanted-move.ts';

/** Most pods tried in one round; then the member's pods are listed and sorted again. */
const AT_ONCE = 50;
/** A workload that is held for no longer (ms) waits for its turn only: it is asked for again in the next round. */
const SHORTLY_MS = 2_500;
/** Interval of rounds while nothing can be moved (ms). */
const LOOK_MS = 5_000;

export interface MemberPodsOptions extends Pick<MovingOptions, 'stop'> {
  placed: Pick<PlacedPods, 'members' | 'member' | 'inMember' | 'clusterOf' | 'rulesOf'>;
  mover: Pick<Mover, 'asRead' | 'wasSent' | 'restMs' | 'turnOf' | 'inTurn' | 'keeps' | 'move'>;
  taints: Pick<TaintAges, 'againstMs'>;
  losses: Pick<LossAges, 'lostForMs' | 'unpausedForMs' | 'countedMs'>;
}

/** Of a pod of a member, both as they are by now. */
type WhyItStays = (live: Pod, rules: MoveRules, member: PlacedMember) => Recheck;

/** Moves pods out of a lost or tainted member and off virtual nodes that are drained or out of service: highest priority first, one at a time, paced. */
export class MemberPods {
  readonly #o: MemberPodsOptions;
  /**
   * By member, keys of workloads and controllers whose pods of one kind were held, as by a disruption budget, in rounds that did little else: the next round leaves them out,
   * so that those after them have their turn, however many they are.
   */
  readonly #held = new Map<string, ReadonlySet<string>>();

  constructor(options: MemberPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(member: string, signal: AbortSignal): Promise<HandlerResult> {
    const { mover, stop } = this.#o;
    const held = new Set(this.#held.get(member));
    this.#held.delete(member);
    if (!this.#isToLeave(member)) return undefined;
    const wanted = this.#wanted(member);
    const passedOver = new Set(held);
    let tried = 0;
    let inVain = 0;
    for (const move of wanted.moves) {
      // What holds a pod that is Ready, as another one of its own that has found no node, or a disruption budget, need not hold one that is not, or that goes for another reason.
      const kind = `${move.strategy} ${String(isReady(move.pod))}`;
      const workload = `${kind} ${ownerKeyOf(this.#o.placed.rulesOf(move.pod).workload)}`;
      const controller = `${kind} ${controllerOrOwnKeyOf(move.pod)}`;
      // One pod of each workload says that moves are stopped: no other one is tried while it rests.
      if (stop.why !== undefined && mover.restMs(move.pod) > 0) passedOver.add(workload);
      if (passedOver.has(workload) || passedOver.has(controller)) continue;
      if (mover.restMs(move.pod) > 0 || mover.keeps(move)) continue;
      // The member may have recovered since the round began.
      if (signal.aborted || !this.#isToLeave(member)) return { requeueAfterMs: 0 };
      const outcome = await mover.move(move, signal);
      if (outcome === 'workloadHeld' || outcome === 'controllerHeld') {
        const together = outcome === 'workloadHeld' ? workload : controller;
        passedOver.add(together);
        // Nothing was asked of the host for a move that people have stopped: all are gone through in one round.
        if (stop.why !== undefined || mover.restMs(move.pod) <= SHORTLY_MS) continue;
        held.add(together);
        inVain += 1;
      }
      tried += 1;
      if (tried < AT_ONCE) continue;
      if (inVain > AT_ONCE / 2) this.#held.set(member, held);
      return { requeueAfterMs: 0 };
    }
    return wanted.left === 0 ? undefined : { requeueAfterMs: Math.min(wanted.soonestMs, LOOK_MS) };
  }

  /** Also while a word that it is out of service does not count yet: nobody else would look again when it does. */
  #isToLeave(name: string): boolean {
    const member = this.#o.placed.member(name);
    return member !== undefined && (this.#lostSince(name) !== undefined || isToBeEmptied(member));
  }

  #member(name: string): PlacedMember | undefined {
    const found = this.#o.placed.member(name);
    return found && withWordsThatCount(found, this.#o.losses.lostForMs(name));
  }

  /** Since when it is lost, if pods are to be moved for that at present. */
  #lostSince(name: string): number | undefined {
    const { lost, paused } = lostMembers(this.#o.placed.members());
    return paused === undefined ? lost.get(name) : undefined;
  }

  /** `soonestMs`: time until another pod may qualify. */
  #wanted(name: string): { moves: WantedMove[]; left: number; soonestMs: number } {
    const { placed, mover, losses } = this.#o;
    const member = this.#member(name);
    const since = this.#lostSince(name);
    const lostMs = losses.lostForMs(name);
    const countedMs = losses.countedMs(name);
    const pods = placed.inMember(name).filter((pod) => isActive(pod) && !mover.wasSent(pod));
    const rechecks = this.#rechecks(name);
    const moves: WantedMove[] = [];
    // From then on a word that nothing runs there counts.
    let soonestMs = lostMs < SILENT_MS ? Math.min(SILENT_MS - lostMs, LOOK_MS) : LOOK_MS;
    for (const pod of this.#inOrder(pods)) {
      const rest = since === undefined ? Infinity : replacedAfterMs(placed.rulesOf(pod)) - countedMs;
      const found: WantedMove[] = [];
      const want = (strategy: keyof typeof rechecks, words: MoveWords): void => {
        found.push({ strategy, pod, from: name, recheck: rechecks[strategy], ...words });
      };
      // That word says more than the loss: what would hold the pod while it may serve does not.
      if (member !== undefined && isOutOfService(pod, member)) want('OutOfService', outOfServiceWords(pod, name));
      if (since !== undefined && rest <= 0) want('MemberLost', lostWords(name, since));
      if (member !== undefined && taintsAgainst(pod, member).length > 0)
        want('TaintNoExecute', taintWords(pod, member));
      if (member !== undefined && isOnDrained(pod, member)) want('Drain', drainWords(pod));
      // A reason that holds the pod for one strategy need not hold it for another.
      const asRead = mover.asRead(pod);
      const move = found.find((one) => one.recheck(asRead) === undefined) ?? found[0];
      if (move !== undefined) moves.push(move);
      soonestMs = Math.min(soonestMs, rest > 0 ? rest : LOOK_MS, mover.restMs(pod) || LOOK_MS);
    }
    return { moves, left: pods.length, soonestMs };
  }

  /** By their priority, then by their turns. One that was tried in vain counts as the least important pod of its workload: the others of that have their turns before it. */
  #inOrder(pods: readonly Pod[]): Pod[] {
    const { mover, placed } = this.#o;
    const workloadOf = (pod: Pod): string => ownerKeyOf(placed.rulesOf(pod).workload);
    const inVain = pods.filter((pod) => mover.turnOf(pod) > 0);
    const least = new Map(inVain.map((pod) => [workloadOf(pod), Infinity]));
    for (const pod of least.size === 0 ? [] : pods) {
      const known = least.get(workloadOf(pod));
      if (known !== undefined) least.set(workloadOf(pod), Math.min(known, priorityOf(pod)));
    }
    const counted = new Map(inVain.map((pod) => [pod, least.get(workloadOf(pod))]));
    const importance = (pod: Pod): number => counted.get(pod) ?? priorityOf(pod);
    return mover.inTurn(pods.toSorted(byUid)).toSorted((a, b) => importance(b) - importance(a));
  }

  /** Why a pod that was to leave the member stays, by what was to move it, as all is by then. */
  #rechecks(name: string): Record<'MemberLost' | 'OutOfService' | 'TaintNoExecute' | 'Drain', WantedMove['recheck']> {
    const { placed, taints, losses } = this.#o;
    const stillThere =
      (whyItStays: WhyItStays): WantedMove['recheck'] =>
      (live) => {
        const member = this.#member(name);
        const isGone = placed.clusterOf(live.spec.nodeName ?? '') !== name || isFinished(live);
        return member === undefined || isGone ? 'notWanted' : whyItStays(live, placed.rulesOf(live), member);
      };
    return {
      MemberLost: stillThere((live, rules) =>
        this.#lostSince(name) === undefined ? 'notWanted' : whyItStaysLost(live, rules, losses.countedMs(name)),
      ),
      OutOfService: stillThere((live, rules, member) =>
        whyItStaysOutOfService(live, rules, member, (taint) => taints.againstMs(live, name, live.spec.nodeName, taint)),
      ),
      TaintNoExecute: stillThere((live, rules, member) => {
        const pause = { why: lostMembers(placed.members()).paused, unpausedForMs: losses.unpausedForMs() };
        return whyItStaysTainted(
          live,
          rules,
          member,
          (taint, node) => taints.againstMs(live, name, node, taint),
          pause,
        );
      }),
      Drain: stillThere(whyItStaysDrained),
    };
  }
}

function isToBeEmptied({ nodeTaints, outOfService, clusterTaints, drained }: PlacedMember): boolean {
  return nodeTaints.size + outOfService.size + clusterTaints.length + drained.size > 0;
}

function priorityOf({ spec: { priority = 0 } }: Pod): number {
  return priority;
}
