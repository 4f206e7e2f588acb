import { firstUntolerated } from '../kube/taints.ts';
import type { Toleration } from '../kube/taints.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Avoided } from './avoided.ts';
import type { Cluster } from './cluster.ts';
import type { CompiledPlacement, Group } from './compiled-placement.ts';
import type { Refusal, RefusalReason } from './refusal.ts';

/** Room for pods of one shape in a cluster. */
export interface Room {
  /** How many more fit now; undefined when nobody knows, which counts as enough. */
  readonly fits: number | undefined;
  /** Why none fits, for people. */
  readonly why?: string;
  /** Why the pod can never run there, whatever the room, such as a node selector that no node has; for people. */
  readonly impossible?: string;
  /** How much of the pod's images the nodes there have, 0 to 100; undefined when not known. */
  readonly images?: number;
}

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
  readonly tolerations: readonly Toleration[];
  readonly avoided: readonly Avoided[];
  readonly rooms: ReadonlyMap<string, Room>;
  /** Pods of the revision by cluster. */
  readonly here: ReadonlyMap<string, number>;
  /** Clusters with pods of any revision. */
  readonly inUse: ReadonlySet<string>;
  /** Pods the workload will have, the one in question included. Room that nobody knows counts as enough for these. */
  readonly replicas: number;
}

/** Sorts clusters into those of the group that can be used, with their tier, and the others, with the reason. */
export function findCandidates(facts: CandidateFacts): { candidates: Candidate[]; refusals: Refusal[] } {
  const candidates: Candidate[] = [];
  const refusals: Refusal[] = [];
  for (const cluster of facts.clusters) {
    const tier = facts.group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined);
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
  return dropThoseWithoutShare(facts, candidates, refusals);
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

function whyUnusable(cluster: Cluster, { placement, tolerations, avoided, rooms }: CandidateFacts): Reason | undefined {
  if (cluster.unavailable !== undefined) return { reason: 'Unavailable', message: cluster.unavailable };
  const impossible = rooms.get(cluster.name)?.impossible;
  if (impossible !== undefined) return { reason: 'Impossible', message: impossible };
  const taint = firstUntolerated([...placement.tolerations, ...tolerations], cluster.taints);
  if (taint !== undefined) {
    const value = taint.value === undefined || taint.value === '' ? '' : `=${taint.value}`;
    return { reason: 'Tainted', message: `it has taint ${taint.key}${value}:${taint.effect}, which is not tolerated` };
  }
  const refusal = avoided.find(({ cluster: name }) => name === cluster.name);
  if (refusal !== undefined) {
    const message = `it refused a pod of the workload and is avoided until ${timestamp(refusal.until)}: ${refusal.message}`;
    return { reason: 'Avoided', message };
  }
  for (const rule of placement.spread) {
    if (rule.hard && rule.groupsOf(cluster).length === 0) {
      return { reason: 'Spread', message: `pods are spread over ${rule.by}, which it does not have` };
    }
  }
  return undefined;
}

/** Clusters that the division gives nothing to. Whether any is listed at all is asked of all, usable at the moment or not. */
function dropThoseWithoutShare(
  { placement: { division }, group, clusters }: CandidateFacts,
  candidates: Candidate[],
  refusals: Refusal[],
): { candidates: Candidate[]; refusals: Refusal[] } {
  if (division.kind !== 'static' && division.kind !== 'preferences') return { candidates, refusals };
  const listed = (cluster: Cluster): boolean =>
    division.kind === 'static' ? division.weightOf(cluster) !== undefined : division.limitsOf(cluster) !== undefined;
  const inGroup = clusters.filter((cluster) => group.tiers.some(({ whyNot }) => whyNot(cluster) === undefined));
  if (division.kind === 'static' && !inGroup.some(listed)) return { candidates, refusals };
  const without = candidates
    .filter(({ cluster }) => !listed(cluster))
    .map(({ name }): Refusal => ({ cluster: name, reason: 'NoShare', message: 'the policy gives it no share' }));
  return { candidates: candidates.filter(({ cluster }) => listed(cluster)), refusals: [...refusals, ...without] };
}
