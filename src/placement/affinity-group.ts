import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement, Group } from './compiled-placement.ts';
import type { Counts } from './share.ts';

export interface GroupFacts {
  readonly placement: CompiledPlacement;
  readonly clusters: readonly Cluster[];
  /** Pods of the workload by cluster, of every revision. */
  readonly pods: Counts;
  /** The group the workload was in last. */
  readonly remembered: string | undefined;
  /** Pods still to be placed. */
  readonly need: number;
  /** Somebody ordered its pods out of a cluster: which group they left behind is no reason to stay away from those before it. */
  readonly isMoved: boolean;
  /** How many of these a group could take; undefined when none of its clusters can be used at all. */
  readonly fits: (group: Group) => number | undefined;
}

/**
 * The one group of `clusterAffinities` a workload lives in. While it has pods in a group it stays there, unless none of the
 * group's clusters can be used; then only later groups are looked at, or all of them where its pods are moved by order. Otherwise
 * it is the first that has room for all pods, else the first that has room for any.
 */
export function chooseGroup(facts: GroupFacts): Group {
  const { groups } = facts.placement;
  const [first] = groups;
  if (groups.length === 1) return first;
  const current = currentGroup(facts);
  if (current >= 0) {
    const group = groups[current];
    if (group !== undefined && (facts.need === 0 || facts.fits(group) !== undefined)) return group;
  }
  const options = groups.slice(facts.isMoved ? 0 : current + 1).map((group) => ({ group, fits: facts.fits(group) }));
  const found =
    options.find(({ fits }) => (fits ?? 0) >= facts.need) ??
    options.find(({ fits }) => (fits ?? 0) > 0) ??
    options.find(({ fits }) => fits !== undefined);
  return found?.group ?? groups[current] ?? first;
}

/** Index of the group that the pods are in; -1 without pods. A cluster can be in several groups, so memory comes first. */
function currentGroup({ placement, clusters, pods, remembered }: GroupFacts): number {
  const held = placement.groups.map(({ tiers }) =>
    clusters
      .filter((cluster) => tiers.some(({ whyNot }) => whyNot(cluster) === undefined))
      .reduce((all, { name }) => all + (pods.get(name) ?? 0), 0),
  );
  const known = placement.groups.findIndex(({ name }) => name === remembered);
  if (known >= 0 && (held[known] ?? 0) > 0) return known;
  const most = Math.max(...held);
  return most === 0 ? -1 : held.indexOf(most);
}
