import { isFinished } from '../api/pod-phase.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOrOwnKeyOf } from '../kube/owner-references.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { clusterInWords } from '../api/cluster.ts';
import { NEXT_POD_WAIT_MS } from '../placement/next-pod-wait.ts';
import { hasBegun, PATIENCE_MS, refusedPodsStep } from '../placement/refused-pod.ts';
import type { Mover } from './mover.ts';
import type { PlacedPods, PodRefusal } from '../placement/placed-pods.ts';
import { whyNotMovedUnstarted } from './replaceable.ts';
import type { Recheck, WantedMove } from './wanted-move.ts';

/** Check interval of a workload with refused pods (ms). */
const LOOK_MS = 2_000;
/** Retry delay for a pod that fits in no other cluster (ms). */
const NO_PLACE_MS = 15_000;

export interface RefusedInMemberOptions {
  placed: Pick<PlacedPods, 'ofWorkload' | 'avoided' | 'refusalOf' | 'clusterOf' | 'member'>;
  mover: Pick<Mover, 'wasSent' | 'restMs' | 'inTurn' | 'keeps' | 'move'>;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
}

interface Candidate {
  readonly pod: Pod;
  readonly uid: string;
  readonly refusal: PodRefusal;
}

/**
 * Under a policy with `onRefusal: TryNext` or `failover.onUnschedulable`: moves pods that a member refuses, or has no node for, a few at a time, so that their controllers make
 * others, which go elsewhere while the member is avoided. A pod that is bound cannot be bound anew. Only what surely never
 * ran goes.
 */
export class RefusedInMember {
  readonly #o: RefusedInMemberOptions;

  constructor(options: RefusedInMemberOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(workloadKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, mover, clock } = this.#o;
    const pods = placed.ofWorkload(workloadKey);
    const refused = pods.flatMap((pod) => this.#candidate(pod));
    const [first] = refused;
    if (first === undefined) return undefined;
    const { ready, atMost } = refusedPodsStep({
      refused: refused.map(({ pod, uid, refusal: { cluster, at } }) => ({
        uid,
        cluster,
        at,
        createdAt: Date.parse(pod.metadata.creationTimestamp ?? ''),
      })),
      avoided: placed.avoided(first.refusal.workload),
      underWay: pods.filter((pod) => this.#isUnderWay(pod)).length,
      now: clock(),
    });
    // Nothing may be left to do but to ask again whether there is room elsewhere.
    let lookAfterMs = atMost > 0 && ready.length === refused.length ? NO_PLACE_MS : LOOK_MS;
    let left = atMost;
    const passedOver = new Set<string>();
    const known = new Map(refused.map((one) => [one.uid, one]));
    for (const pod of mover.inTurn(ready.flatMap((uid) => known.get(uid)?.pod ?? []))) {
      if (left === 0 || signal.aborted) break;
      const found = known.get(pod.metadata.uid ?? '');
      if (found === undefined || mover.restMs(pod) > 0) continue;
      const controller = controllerOrOwnKeyOf(pod);
      if (passedOver.has(controller)) continue;
      const wanted = this.#wanted(found);
      if (mover.keeps(wanted)) continue;
      const outcome = await mover.move(wanted, signal);
      if (outcome === 'workloadHeld') break;
      if (outcome === 'controllerHeld') passedOver.add(controller);
      if (outcome === 'moved') {
        left -= 1;
        lookAfterMs = LOOK_MS;
      }
    }
    return { requeueAfterMs: lookAfterMs };
  }

  #candidate(pod: Pod): Candidate[] {
    const refusal = this.#o.mover.wasSent(pod) || isFinished(pod) ? undefined : this.#o.placed.refusalOf(pod);
    return refusal?.triesNext === true ? [{ pod, uid: pod.metadata.uid ?? '', refusal }] : [];
  }

  /** It has no node, or made way and is not gone: one in a member that does not answer, or on a node that is dead, may end for days. */
  #isUnderWay(pod: Pod): boolean {
    const { placed, mover, clock } = this.#o;
    const { deletionTimestamp } = pod.metadata;
    const { nodeName = '' } = pod.spec;
    if (isFinished(pod)) return false;
    if (deletionTimestamp === undefined) return nodeName === '' || mover.wasSent(pod);
    // As long as places are kept for the next ones; that time has the grace period in it.
    if (clock() >= Date.parse(deletionTimestamp) + NEXT_POD_WAIT_MS) return false;
    return nodeName !== '' && placed.clusterOf(nodeName) !== LOCAL && pod.status?.phase === 'Pending';
  }

  #wanted({ pod, refusal }: Candidate): WantedMove {
    const { cluster, reason, message, isUnschedulable } = refusal;
    const there = clusterInWords(cluster);
    const goes = `which goes elsewhere: ${cluster} is avoided for a while`;
    const own = isUnschedulable
      ? ({
          strategy: 'UnschedulableInMember',
          cause: `${there} has had no node for it for too long, and it never started there`,
          outcome: `${goes}. The member's scheduler said: ${message}`,
          stays: `it waits in ${there}, which has no node for it, and starts there once there is one`,
        } as const)
      : ({
          strategy: 'RefusedInMember',
          cause: `${there} refuses it (${reason}), and it never started there`,
          outcome: `${goes}. The refusal: ${message}`,
          stays: `it stays in ${there}, which refuses it, and starts there once it is taken`,
        } as const);
    return { pod, from: cluster, recheck: (live) => this.#recheck(live, refusal), ...own };
  }

  #recheck(live: Pod, { cluster }: PodRefusal): Recheck {
    const { placed, clock } = this.#o;
    const still = hasBegun(live) ? undefined : placed.refusalOf(live);
    if (still?.cluster !== cluster || !still.triesNext || still.at + PATIENCE_MS > clock()) return 'notWanted';
    const own = whyNotMovedUnstarted(live);
    if (own !== undefined) return { why: own };
    // The cached status may be outdated.
    const member = placed.member(cluster);
    const silent = member === undefined ? 'it is not known' : member.silent;
    if (silent === undefined) return undefined;
    return { why: `what ${cluster} said last may be old, as ${silent}`, ofWorkload: true };
  }
}
