import type { Pod } from '../kube/core-v1.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { ENOUGH_LEFT_MS, PATIENCE_MS } from '../placement/refused-pod.ts';
import type { HealthAges } from './health-ages.ts';
import { notWellThere } from './ill-pods.ts';
import type { IllPods, IllPodsLook } from './ill-pods.ts';
import type { MoveRecords } from './move-records.ts';
import type { Mover } from './mover.ts';
import type { MovingOptions } from './moving-options.ts';
import { whyRehearsed } from './rehearsal.ts';
import { whyNotMovedAtWill } from './replaceable.ts';
import { illnessOf, isIllInMember, unhealthyAfterMs, unhealthyMove } from './unhealthy-in-member.ts';
import type { IllGroup } from './unhealthy-in-member.ts';
import type { Recheck } from './wanted-move.ts';

/** Between two looks at a workload that has pods which are not well (ms). */
const LOOK_MS = 5_000;
/** Most pods tried in one round; then it is looked at all of them anew. */
const AT_ONCE = 20;

export interface UnhealthyPodsOptions extends Pick<MovingOptions, 'dryRun' | 'clock'> {
  placed: Pick<PlacedPods, 'rulesOf' | 'clusterOf' | 'member' | 'avoided'>;
  mover: Pick<Mover, 'restMs' | 'inTurn' | 'keeps' | 'move'>;
  records: Pick<MoveRecords, 'withinAnHour'>;
  ill: IllPods;
  ages: HealthAges;
}

/**
 * Moves pods that are ill in their member, while others of their revision are well elsewhere, where a policy asks for that
 * (`failover.application`).
 */
export class UnhealthyPods {
  readonly #o: UnhealthyPodsOptions;

  constructor(options: UnhealthyPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers. */
  async bringUpToDate(workloadKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const found = this.#o.ill.look(workloadKey);
    if (found === undefined) return undefined;
    /** How many went, by revision. */
    const went = new Map<string, number>();
    for (const group of found.groups) {
      const { revision } = group;
      const before = went.get(revision) ?? 0;
      const left = { ...group, atMost: Math.max(0, group.atMost - before) };
      const { count, isMore } = await this.#move(left, found, workloadKey, signal);
      if (isMore) return { requeueAfterMs: 0 };
      went.set(revision, before + count);
    }
    return found.isCalm ? undefined : { requeueAfterMs: LOOK_MS };
  }

  /** Returns how many went, and whether there is more to do than is done in one round. */
  async #move(
    group: IllGroup,
    look: IllPodsLook,
    workloadKey: string,
    signal: AbortSignal,
  ): Promise<{ count: number; isMore: boolean }> {
    const { mover, ages } = this.#o;
    const { cluster, atMost } = group;
    // In earnest nothing goes before that is so. Without it, a place elsewhere would be asked for while all pods still go to this member.
    const wouldAvoid = look.isRehearsed ? look.toAvoid.map(notWellThere) : [];
    let count = 0;
    // One is told why all stay.
    const pods = atMost === 0 ? group.pods.slice(0, 1) : this.#thoseToGo(group, look);
    for (const pod of mover.inTurn(pods)) {
      if (signal.aborted) break;
      if (mover.restMs(pod) > 0) continue;
      const { illForMs } = ages.of(workloadKey, pod.metadata.uid ?? '');
      const recheck = (live: Pod): Recheck => this.#recheck(live, group, look, workloadKey);
      const wanted = { ...unhealthyMove(pod, cluster, illForMs, recheck), wouldAvoid };
      if (mover.keeps(wanted)) continue;
      const outcome = await mover.move(wanted, signal);
      // Those of one revision are of one controller.
      if (outcome === 'workloadHeld' || outcome === 'controllerHeld') break;
      if (outcome === 'moved') count += 1;
      if (count === atMost) break;
      if (count >= AT_ONCE) return { count, isMore: true };
    }
    return { count, isMore: false };
  }

  /**
   * None before all replicas know that the cluster is avoided; and none that came when it was: it went there in spite of that, by the word
   * of somebody who does not ask here, and so would the next one, for ever.
   */
  #thoseToGo({ cluster, pods }: IllGroup, { workload, toAvoid, isRehearsed }: IllPodsLook): readonly Pod[] {
    if (isRehearsed) return pods;
    const now = this.#o.clock();
    const avoided = new Map(this.#o.placed.avoided(workload).map((one) => [one.cluster, one]));
    const isKnown = toAvoid.every((name) => {
      const entry = avoided.get(name);
      return entry !== undefined && entry.since + PATIENCE_MS <= now && entry.until - now >= ENOUGH_LEFT_MS;
    });
    const since = avoided.get(cluster)?.since;
    if (!isKnown || since === undefined) return [];
    return pods.filter(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') < since + PATIENCE_MS);
  }

  /** Asked of each pod once or twice: it looks at none but those that are well, up to the first. */
  #recheck(
    live: Pod,
    { cluster, well, wellElsewhere, atMost }: IllGroup,
    { workload, count, isRehearsed }: IllPodsLook,
    workloadKey: string,
  ): Recheck {
    const { placed, ages, records, dryRun } = this.#o;
    if (placed.clusterOf(live.spec.nodeName ?? '') !== cluster || !isIllInMember(live)) return 'notWanted';
    const { failover } = placed.rulesOf(live);
    // In earnest by now, and nothing is avoided yet.
    if ((whyRehearsed('UnhealthyInMember', failover, dryRun) !== undefined) !== isRehearsed) return 'notWanted';
    const afterMs = unhealthyAfterMs(failover);
    const { illForMs } = ages.of(workloadKey, live.metadata.uid ?? '');
    if (afterMs === undefined || illForMs < afterMs) return 'notWanted';
    const ill = `(${illnessOf(live)})`;
    const own = whyNotMovedAtWill(live);
    if (own !== undefined) return { why: `${own} ${ill}` };
    const why = placed.member(cluster)?.unavailable;
    if (why !== undefined)
      return { why: `what ${clusterInWords(cluster)} said last may be old, as ${why}`, ofWorkload: true };
    const isWellElsewhere = [...well].some(
      ([name, uids]) =>
        name !== cluster &&
        placed.member(name)?.unavailable === undefined &&
        uids.some((uid) => ages.of(workloadKey, uid).isWell),
    );
    if (!isWellElsewhere) {
      return {
        why: `no other pod of its revision is well in another cluster, so its image or its settings may be at fault ${ill}`,
        ofWorkload: true,
      };
    }
    if (atMost === 0) {
      return {
        why: `others of its revision elsewhere have yet to be well ${ill} (${String(wellElsewhere)} are)`,
        ofWorkload: true,
      };
    }
    return records.withinAnHour(workload, ['UnhealthyInMember']) < count
      ? undefined
      : { why: 'each of its pods, on the average, was moved for that once within the last hour', ofWorkload: true };
  }
}
