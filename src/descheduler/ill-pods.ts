import { isActive, isFinished } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { PODS_UNHEALTHY } from '../placement/avoided.ts';
import type { RefusedThere } from '../placement/avoided.ts';
import { revisionOf } from '../placement/owner-chain.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { HealthAges } from './health-ages.ts';
import type { MoveRecords } from './move-records.ts';
import type { Mover } from './mover.ts';
import type { MovingOptions } from './moving-options.ts';
import { whyRehearsed } from './rehearsal.ts';
import { whyNotMovedAtWill } from './replaceable.ts';
import { illGroups, unhealthyAfterMs } from './unhealthy-in-member.ts';
import type { IllGroup, PodHealth } from './unhealthy-in-member.ts';

/** A mark that ends sooner is made anew while pods are ill (ms). */
const RENEW_MS = 60_000;

export interface IllPodsOptions extends Pick<MovingOptions, 'dryRun' | 'clock'> {
  placed: Pick<PlacedPods, 'ofWorkload' | 'rulesOf' | 'clusterOf' | 'member' | 'showsRefusal' | 'avoided' | 'avoid'>;
  ages: HealthAges;
  mover: Pick<Mover, 'wasSent'>;
  records: Pick<MoveRecords, 'leftLately'>;
}

/** A workload whose policy lets pods that are ill be moved. */
export interface IllPodsLook {
  readonly workload: TypedObject;
  /** Pods it has now. */
  readonly count: number;
  readonly groups: readonly IllGroup[];
  /** Clusters that have to be avoided before pods of `groups` go, so that what comes instead goes to none of them. */
  readonly toAvoid: readonly string[];
  /** Nothing is avoided: what stays anyway must not lead new pods elsewhere. */
  readonly isRehearsed: boolean;
  /** All pods are well, and stay so as long as none of them changes. */
  readonly isCalm: boolean;
}

/** Why a cluster is avoided that pods leave. */
export function notWellThere(cluster: string): RefusedThere {
  const message = 'they were not well there, while others like them were elsewhere';
  return { cluster, reason: PODS_UNHEALTHY, message };
}

/**
 * Follows which pods of workloads are ill, and has the members avoided where they are. Every replica does, as pods that come instead are
 * placed by whichever is asked, and any may be the next to move pods.
 */
export class IllPods {
  readonly #o: IllPodsOptions;

  constructor(options: IllPodsOptions) {
    this.#o = options;
  }

  /** Undefined when pods of the workload are not moved for that. */
  look(workloadKey: string): IllPodsLook | undefined {
    const { placed, ages } = this.#o;
    const known = placed.ofWorkload(workloadKey);
    // Of most workloads one pod says that nothing is asked for.
    const first = known.find(isActive);
    const rules = first === undefined ? undefined : placed.rulesOf(first);
    const afterMs = unhealthyAfterMs(rules?.failover);
    if (first === undefined || rules === undefined || afterMs === undefined) {
      ages.forget(workloadKey);
      return undefined;
    }
    const pods = known.filter(isActive);
    const seen = pods.map((pod) => this.#seen(pod));
    ages.observe(workloadKey, seen);
    const all = seen.map(({ pod, uid, cluster, isReady: ready }): PodHealth => {
      const health = ready === undefined && cluster !== undefined ? undefined : ages.of(workloadKey, uid);
      return { pod, cluster, revision: revisionOf(pod), health, isLeaving: this.#o.mover.wasSent(pod) };
    });
    const groups = illGroups(all, afterMs, (rules.replicas ?? 0) - pods.length);
    const toAvoid = this.#toAvoid(rules.workload, groups);
    const isRehearsed = whyRehearsed('UnhealthyInMember', rules.failover, this.#o.dryRun) !== undefined;
    if (!isRehearsed) this.#avoid(first, rules.workload, toAvoid);
    return {
      workload: rules.workload,
      count: pods.length,
      groups,
      toAvoid,
      isRehearsed,
      isCalm: all.every(({ health }) => health?.isWell === true),
    };
  }

  #seen(pod: Pod): { pod: Pod; uid: string; cluster: string | undefined; isReady: boolean | undefined } {
    const { placed } = this.#o;
    const { nodeName } = pod.spec;
    const cluster = nodeName === undefined ? undefined : placed.clusterOf(nodeName);
    const isClosed = (name: string): boolean => placed.member(name)?.unavailable !== undefined;
    // What a member does not run is another strategy's business, and what one that is silent does is not known.
    const isKnown = cluster !== undefined && !isClosed(cluster) && !placed.showsRefusal(pod) && !isFinished(pod);
    return { pod, uid: pod.metadata.uid ?? '', cluster, isReady: isKnown ? isReady(pod) : undefined };
  }

  /** None while nothing is to be moved. Those that pods left for the same reason lately, too: no pod comes back to where it was ill. */
  #toAvoid(workload: TypedObject, groups: readonly IllGroup[]): string[] {
    const leaving = groups.filter(
      ({ wellElsewhere, pods }) => wellElsewhere > 0 && pods.some((pod) => whyNotMovedAtWill(pod) === undefined),
    );
    if (leaving.length === 0) return [];
    return [
      ...new Set([
        ...leaving.map(({ cluster }) => cluster),
        ...this.#o.records.leftLately(workload, 'UnhealthyInMember'),
      ]),
    ];
  }

  #avoid(pod: Pod, workload: TypedObject, clusters: readonly string[]): void {
    const { placed, clock } = this.#o;
    const known = new Map(placed.avoided(workload).map(({ cluster, until }) => [cluster, until]));
    for (const cluster of clusters) {
      if ((known.get(cluster) ?? 0) - clock() >= RENEW_MS) continue;
      placed.avoid(pod, notWellThere(cluster));
    }
  }
}
