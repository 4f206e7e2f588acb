import { MIRRORED_CONDITION } from '../api/marks.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Failover } from '../api/failover.ts';
import { isActive } from '../api/pod-phase.ts';
import { conditionOf, isReady, isTrue } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { byUid } from '../kube/object.ts';
import { clusterInWords } from '../api/cluster.ts';
import { durationInWords } from '../placement/duration.ts';
import type { Health } from './health-ages.ts';
import type { WantedMove } from './wanted-move.ts';

/**
 * Least time for which this process itself must have seen the pod ill (ms), whatever the policy says: a probe that fails once is no
 * illness, and all replicas know of it by then.
 */
const CONFIRM_MS = 15_000;

/** How long a pod may be ill in its member before it is moved, in ms; undefined: it is not moved for that. */
export function unhealthyAfterMs(failover: Failover | undefined): number | undefined {
  const seconds = failover?.application?.decisionConditions.tolerationSeconds;
  return seconds === undefined ? undefined : Math.max(CONFIRM_MS, seconds * 1_000);
}

/** An active pod of a workload, as the caches show it. */
export interface PodHealth {
  readonly pod: Pod;
  /** Undefined: it has no node yet. */
  readonly cluster: string | undefined;
  readonly revision: string | undefined;
  /** Undefined: nobody knows at present, as its member is silent. */
  readonly health: Health | undefined;
  /** It makes way already. */
  readonly isLeaving: boolean;
}

/** Pods of one revision that are ill in one cluster. */
export interface IllGroup {
  readonly revision: string;
  readonly cluster: string;
  /** The longest ill first. */
  readonly pods: readonly Pod[];
  /** By cluster, UIDs of those of the revision that are well. */
  readonly well: ReadonlyMap<string, readonly string[]>;
  /** How many of them are well in other clusters. */
  readonly wellElsewhere: number;
  /**
   * How many may make way now: as many as are well elsewhere, those counted in that went there and have yet to be. Fewer by those of its revision that
   * do so, out of whichever cluster: those that come instead have yet to be well, and the same ones vouch for all.
   */
  readonly atMost: number;
}

interface Revision {
  readonly well: Map<string, string[]>;
  /** Neither well nor ill for long, by cluster; the empty text: without a node, or on their way out. */
  readonly unproven: Map<string, number>;
  readonly ill: Map<string, { pod: Pod; forMs: number }[]>;
}

/**
 * Which pods have been ill for `afterMs`, by revision and cluster. A pod is the cluster's business only if others of its revision are well
 * in other clusters: if none is, its image or its settings are to blame, and no other place would mend that. So are those that come
 * instead: as long as they are not well, no more follow than others are. In one pass.
 *
 * @param missing pods that the workload asks for and that are not there yet.
 */
export function illGroups(pods: readonly PodHealth[], afterMs: number, missing: number): IllGroup[] {
  const revisions = new Map<string, Revision>();
  for (const { pod, cluster = '', revision, health, isLeaving } of pods) {
    // Without it nobody can tell whether pods are alike.
    if (revision === undefined) continue;
    const own = revisions.get(revision) ?? { well: new Map(), unproven: new Map(), ill: new Map() };
    revisions.set(revision, own);
    const { uid = '' } = pod.metadata;
    if (isLeaving || cluster === '') own.unproven.set('', (own.unproven.get('') ?? 0) + 1);
    else if (health === undefined) continue;
    else if (health.isWell) added(own.well, cluster, uid);
    else if (health.illForMs >= afterMs) added(own.ill, cluster, { pod, forMs: health.illForMs });
    else own.unproven.set(cluster, (own.unproven.get(cluster) ?? 0) + 1);
  }
  return [...revisions].flatMap(([revision, { well, unproven, ill }]) => {
    const allWell = sum([...well.values()].map(({ length }) => length));
    const wellBeside = (cluster: string): number => allWell - (well.get(cluster)?.length ?? 0);
    // Where nobody vouches for them, those that are ill may have come instead of others, and their cluster is not avoided.
    const inVain = [...ill].map(([cluster, found]) => (wellBeside(cluster) > 0 ? 0 : found.length));
    const allUnproven = sum(unproven.values()) + sum(inVain) + Math.max(0, missing);
    const inMembers = [...ill].filter(([cluster]) => cluster !== LOCAL);
    return inMembers.map(([cluster, found]): IllGroup => {
      const wellElsewhere = wellBeside(cluster);
      return {
        revision,
        cluster,
        pods: found.toSorted((a, b) => b.forMs - a.forMs || byUid(a.pod, b.pod)).map(({ pod }) => pod),
        well,
        wellElsewhere,
        atMost: Math.max(0, wellElsewhere - (allUnproven - (unproven.get(cluster) ?? 0))),
      };
    });
  });
}

function added<T>(lists: Map<string, T[]>, key: string, one: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [one]);
  else list.push(one);
}

function sum(numbers: Iterable<number>): number {
  let all = 0;
  for (const one of numbers) all += one;
  return all;
}

/** Whether its containers do not get ready in the member that took it. `live`: as it is in the host, whole. */
export function isIllInMember(live: Pod): boolean {
  if (!isActive(live) || isReady(live) || !isTrue(live, MIRRORED_CONDITION)) return false;
  // Only readiness gates are left, which are for controllers of the host.
  return !isTrue(live, 'ContainersReady');
}

/** What is wrong with it: the reason why a container waits, or that of its condition. */
export function illnessOf({ status }: Pod): string {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  const waiting = [...initContainerStatuses, ...containerStatuses].find(({ state }) => state?.waiting !== undefined);
  return waiting?.state?.waiting?.reason ?? conditionOf({ status }, 'Ready')?.reason ?? 'not Ready';
}

export function unhealthyMove(pod: Pod, from: string, forMs: number, recheck: WantedMove['recheck']): WantedMove {
  const there = `in ${clusterInWords(from)}`;
  return {
    strategy: 'UnhealthyInMember',
    pod,
    from,
    recheck,
    cause: `it has not been well ${there} for ${durationInWords(forMs)}, and others of its revision are well elsewhere`,
    outcome: `which goes elsewhere: ${from} is avoided for a while`,
    stays: `it has not been well ${there} for too long, and stays there`,
  };
}
