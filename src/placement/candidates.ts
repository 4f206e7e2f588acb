import { HARD_EFFECTS, taintInWords, toleratesForGood } from '../kube/taints.ts';
import type { Toleration } from '../kube/taints.ts';
import { timestamp } from '../kube/timestamps.ts';
import { PODS_UNHEALTHY } from './avoided.ts';
import type { Avoided } from './avoided.ts';
import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement, Division, Group } from './compiled-placement.ts';
import { type Migrating, whyNotOnTheWay } from './migrating.ts';
import type { Refusal, RefusalReason } from './placement-refusal.ts';

/** Room for pods of one shape in a cluster. */
export interface Room {
  /** How many more fit now; undefined when nobody knows, which counts as enough. */
  readonly fits: number | undefined;
  /** Why none fits, for people. */
  readonly why?: string | undefined;
  /** None is known to fit because nodes, overrides or the like are not known yet, as `why` says; it may be otherwise in a moment. */
  readonly notKnown?: true | undefined;
  /** Why the pod can never run there, whatever the room, such as a node selector that no node has; for people. */
  readonly impossible?: string;
  /** How much of the pod's images the nodes there have, 0 to 100; undefined when not known. */
  readonly images?: number | undefined;
}

/** By cluster. */
export type Rooms = Pick<ReadonlyMap<string, Room>, 'get'>;

/** A cluster that may get pods of a workload, room aside. */
export interface Candidate {
  readonly cluster: Cluster;
  readonly name: string;
  readonly tier: number;
  /** Pods that fit besides those that are there; never infinite. */
  readonly room: number;
  readonly whyNoRoom: string;
  /** Pods of the revision in question that are there. */
  readonly here: number;
  /** Whether pods of any revision of the workload are there. */
  readonly inUse: boolean;
}

/** More room than any workload needs, but still fit for exact arithmetic with weights. */
const PLENTY = 1_000_000;

export interface CandidateFacts {
  readonly placement: CompiledPlacement;
  readonly group: Group;
  readonly clusters: readonly Cluster[];
  /** What the pod tolerates itself. */
  readonly avoided: readonly Avoided[];
  readonly migrating: Migrating | undefined;
  readonly rooms: Rooms;
  /** Pods of the revision by cluster. */
  readonly here: ReadonlyMap<string, number>;
  /** Clusters with pods of any revision. */
  readonly inUse: Pick<ReadonlySet<string>, 'has'>;
  /** Pods the workload will have, the one in question included. Room that nobody knows counts as enough for these. */
  readonly replicas: number;
}

/** Sorts clusters into those of the group that can be used, and the others, with the reason. `tiers`: of all clusters of the group. */
export function findCandidates(facts: CandidateFacts): {
  candidates: Candidate[];
  refusals: Refusal[];
  tiers: Map<string, number>;
} {
  const tiers = new Map<string, number>();
  const candidates: Candidate[] = [];
  const refusals: Refusal[] = [];
  for (const cluster of facts.clusters) {
    const tier = tierOf(facts.group, cluster);
    if (tier >= 0) tiers.set(cluster.name, tier);
    const refused = tier < 0 ? notSelected(cluster, facts) : whyUnusable(cluster, facts);
    if (refused !== undefined) {
      refusals.push({ cluster: cluster.name, ...refused });
      continue;
    }
    const room = facts.rooms.get(cluster.name);
    candidates.push({
      cluster,
      name: cluster.name,
      tier,
      room: Math.max(0, Math.min(room?.fits ?? facts.replicas, PLENTY)),
      whyNoRoom: room?.why ?? 'it has no room for the pod',
      here: facts.here.get(cluster.name) ?? 0,
      inUse: facts.inUse.has(cluster.name),
    });
  }
  return { tiers, ...dropThoseWithoutShare(facts, candidates, refusals) };
}

/** The first tier of the group that chooses the cluster; -1: none does. */
function tierOf({ tiers }: Group, cluster: Cluster): number {
  let index = 0;
  for (const { whyNot } of tiers) {
    if (whyNot(cluster) === undefined) return index;
    index += 1;
  }
  return -1;
}

type Reason = { reason: RefusalReason; message: string };

function notSelected(cluster: Cluster, { placement, group }: CandidateFacts): Reason {
  const other = placement.groups.find(({ tiers }) => tiers.some(({ whyNot }) => whyNot(cluster) === undefined));
  if (other !== undefined) {
    return {
      reason: 'OtherGroup',
      message: `the workload lives in group ${group.name ?? ''}, not ${other.name ?? ''}`,
    };
  }
  const [first] = group.tiers;
  return { reason: 'NotSelected', message: first?.whyNot(cluster) ?? 'the policy does not choose it' };
}

/**
 * The first taint of the cluster that the rules of a pod do not tolerate, in words; a pod without rules tolerates none. What is
 * tolerated for a time only keeps new pods away, too: they would be moved out again when it is over, and so on for ever.
 */
export function whyTainted({ taints }: Cluster, tolerations: readonly Toleration[]): string | undefined {
  for (const taint of taints) {
    if (!HARD_EFFECTS.includes(taint.effect) || toleratesForGood(tolerations, taint)) continue;
    return `it has cluster taint ${taintInWords(taint)}, which no policy of the pod tolerates`;
  }
  return undefined;
}

function whyUnusable(cluster: Cluster, { placement, avoided, migrating, rooms }: CandidateFacts): Reason | undefined {
  if (cluster.unavailable !== undefined) return { reason: 'Unavailable', message: cluster.unavailable };
  const impossible = rooms.get(cluster.name)?.impossible;
  if (impossible !== undefined) return { reason: 'Impossible', message: impossible };
  const taint = whyTainted(cluster, placement.tolerations);
  if (taint !== undefined) return { reason: 'Tainted', message: taint };
  const elsewhere = migrating === undefined ? undefined : whyNotOnTheWay(cluster.name, migrating);
  if (elsewhere !== undefined) return { reason: 'Migrating', message: elsewhere };
  for (const { cluster: name, reason, until, message } of avoided) {
    if (name !== cluster.name) continue;
    const what = reason === PODS_UNHEALTHY ? 'was left by pods of the workload' : 'refused a pod of the workload';
    return { reason: 'Avoided', message: `it ${what} and is avoided until ${timestamp(until)}: ${message}` };
  }
  for (const rule of placement.spread) {
    if (rule.hard && rule.groupsOf(cluster).length === 0) {
      return { reason: 'Spread', message: `pods are spread over ${rule.by}, which it does not have` };
    }
  }
  return undefined;
}

export const NO_SHARE = 'the policy gives it no share';

/** Which clusters of the group the division gives anything. Whether any is listed at all is asked of all, usable at the moment or not. */
export function sharesIn(
  group: Group,
  division: Division,
  clusters: readonly Cluster[],
): (cluster: Cluster) => boolean {
  if (division.kind === 'preferences') return (cluster) => division.limitsOf(cluster) !== undefined;
  if (division.kind !== 'static') return () => true;
  const listed = (cluster: Cluster): boolean => division.weightOf(cluster) !== undefined;
  const inGroup = clusters.filter((cluster) => group.tiers.some(({ whyNot }) => whyNot(cluster) === undefined));
  return inGroup.some(listed) ? listed : () => true;
}

function dropThoseWithoutShare(
  { placement: { division }, group, clusters }: CandidateFacts,
  candidates: Candidate[],
  refusals: Refusal[],
): { candidates: Candidate[]; refusals: Refusal[] } {
  const hasShare = sharesIn(group, division, clusters);
  const without = candidates
    .filter(({ cluster }) => !hasShare(cluster))
    .map(({ name }): Refusal => ({ cluster: name, reason: 'NoShare', message: NO_SHARE }));
  if (without.length === 0) return { candidates, refusals };
  return { candidates: candidates.filter(({ cluster }) => hasShare(cluster)), refusals: [...refusals, ...without] };
}
