import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Taint } from '../kube/taints.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { lostMembers } from '../placement/lost-members.ts';
import { lostMove, replacedAfterMs, whyItStaysLost } from './member-lost.ts';
import type { Mover } from './mover.ts';
import type { PlacedMember, PlacedPods } from '../placement/placed-pods.ts';
import { taintMove, taintsAgainst, whyItStaysTainted } from './taint-no-execute.ts';
import type { Recheck, WantedMove } from './wanted-move.ts';

/** Pods that are tried before all of the member are looked at anew. */
const AT_ONCE = 50;
/** Nothing could be moved: all are looked at again after so long, in ms. */
const LOOK_MS = 5_000;
/**
 * A member has to be lost for so long before the eyes of this process, in ms: what the process before said of it stands until
 * somebody has asked it again.
 */
const CONFIRM_MS = 15_000;

export interface MemberPodsOptions {
  placed: PlacedPods;
  mover: Mover;
  /** How long a taint of a member has stood, in ms. */
  ageMs: (member: string, taint: Taint) => number;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** Moves pods out of a member that is lost or tainted, the most important first, one after the other as the pacer says. */
export class MemberPods {
  readonly #o: MemberPodsOptions;
  /** Since when members are lost as this process has seen it, in monotonic ms. */
  readonly #seenLost = new Map<string, number>();

  constructor(options: MemberPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(member: string, signal: AbortSignal): Promise<HandlerResult> {
    const { mover } = this.#o;
    if (!this.#isToLeave(member)) return undefined;
    const wanted = this.#wanted(member);
    const stopped = new Set<string>();
    let tried = 0;
    for (const move of wanted.moves) {
      const workload = this.#o.placed.rulesOf(move.pod).workload.metadata.uid ?? '';
      if (stopped.has(workload) || mover.restMs(move.pod) > 0) continue;
      // What was true a moment ago may be over: the member answers again.
      if (signal.aborted || !this.#isToLeave(member)) return { requeueAfterMs: 0 };
      if ((await mover.move(move, signal)) === 'stop') stopped.add(workload);
      tried += 1;
      if (tried === AT_ONCE) return { requeueAfterMs: 0 };
    }
    return wanted.left === 0 ? undefined : { requeueAfterMs: Math.min(wanted.soonestMs, LOOK_MS) };
  }

  #isToLeave(name: string): boolean {
    const member = this.#member(name);
    return member !== undefined && (this.#lostSince(name) !== undefined || hasTaints(member));
  }

  #member(name: string): PlacedMember | undefined {
    return this.#o.placed.members().find((one) => one.name === name);
  }

  /** Since when it is lost, if pods are to be moved for that at present. */
  #lostSince(name: string): number | undefined {
    const { placed, monotonic } = this.#o;
    const { lost, paused } = lostMembers(placed.members());
    const since = paused === undefined ? lost.get(name) : undefined;
    if (since === undefined) this.#seenLost.delete(name);
    else if (!this.#seenLost.has(name)) this.#seenLost.set(name, monotonic());
    return since;
  }

  /** Until the pod may be replaced, in ms; Infinity while its member is not lost. */
  #restMs(pod: Pod, name: string, since: number | undefined): number {
    const { placed, clock, monotonic } = this.#o;
    if (since === undefined) return Number.POSITIVE_INFINITY;
    const seen = this.#seenLost.get(name) ?? monotonic();
    return Math.max(since + replacedAfterMs(placed.rulesOf(pod)) - clock(), seen + CONFIRM_MS - monotonic(), 0);
  }

  /** `soonestMs`: until one more may be. */
  #wanted(name: string): { moves: WantedMove[]; left: number; soonestMs: number } {
    const { placed, mover } = this.#o;
    const member = this.#member(name);
    const since = this.#lostSince(name);
    const pods = placed.inMember(name).filter((pod) => isThere(pod) && !mover.wasSent(pod));
    const moves: WantedMove[] = [];
    let soonestMs = LOOK_MS;
    for (const pod of pods.toSorted(byImportance)) {
      const rest = this.#restMs(pod, name, since);
      if (since !== undefined && rest === 0) {
        moves.push(lostMove(pod, name, since, (live) => this.#recheckLost(live, name)));
      } else if (member !== undefined && taintsAgainst(pod, member).length > 0) {
        moves.push(taintMove(pod, member, (live) => this.#recheckTainted(live, name)));
      }
      soonestMs = Math.min(soonestMs, rest > 0 ? rest : LOOK_MS, mover.restMs(pod) || LOOK_MS);
    }
    return { moves, left: pods.length, soonestMs };
  }

  #recheckLost(live: Pod, name: string): Recheck {
    const since = this.#lostSince(name);
    if (since === undefined || this.#o.placed.clusterOf(live.spec.nodeName ?? '') !== name || isFinished(live))
      return 'void';
    return whyItStaysLost(live, this.#o.placed.rulesOf(live), since, this.#o.clock());
  }

  #recheckTainted(live: Pod, name: string): Recheck {
    const { placed, ageMs } = this.#o;
    const member = this.#member(name);
    if (member === undefined || placed.clusterOf(live.spec.nodeName ?? '') !== name || isFinished(live)) return 'void';
    return whyItStaysTainted(live, placed.rulesOf(live), member, (taint) => ageMs(name, taint));
  }
}

function hasTaints({ nodeTaints, clusterTaints }: PlacedMember): boolean {
  return nodeTaints.size + clusterTaints.length > 0;
}

function isThere(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinished(pod);
}

function byImportance(a: Pod, b: Pod): number {
  const [left, right] = [a.spec.priority ?? 0, b.spec.priority ?? 0];
  if (left !== right) return right - left;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1;
}
