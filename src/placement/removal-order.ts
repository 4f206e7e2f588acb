import { LOCAL } from '../api/cluster-tiers.ts';
import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement, Division } from './compiled-placement.ts';
import { HighestAverages, sum } from './highest-averages.ts';
import type { Counts, Share } from './share.ts';
import { divideRemainder } from './remainder-division.ts';
import type { RemainderShare } from './remainder-division.ts';
import type { SpreadRule } from './spread-rule.ts';
import { staticWeights } from './static-weights.ts';
import { tiesDescend } from './ties.ts';

export interface RemovalFacts {
  readonly placement: CompiledPlacement;
  readonly clusters: readonly Cluster[];
  /** UID of the workload. */
  readonly uid: string | undefined;
  /** Group of `clusterAffinities` it lives in. */
  readonly affinityName: string | undefined;
  /** Pods of one revision by cluster: what a ReplicaSet has. */
  readonly pods: Counts;
  /** In proportion to what pods go with divisions by room: what each cluster was to have before the workload began to shrink, or is to have. */
  readonly shares: Counts | undefined;
}

/**
 * The clusters of all pods in the order in which the pods should go when a workload shrinks: first those that the policy
 * does not choose any more, then the tiers from the last to the first, but a tier that would have more than its percentage
 * of what is left before the others. Within a tier seats are given up in the reverse order in which division gives them;
 * without division the dearer and more distant clusters are emptied first and `local` last. The last pods of as many groups
 * as spread constraints ask for stay to the end.
 */
export function removalOrder(facts: RemovalFacts): string[] {
  const { placement, clusters, affinityName, pods } = facts;
  const group = placement.groups.find(({ name }) => name === affinityName) ?? placement.groups[0];
  const known = new Map(clusters.map((cluster) => [cluster.name, cluster]));
  const sections = new Map<number, Member[]>();
  for (const name of [...pods.keys()].toSorted()) {
    const cluster = known.get(name);
    const tier = cluster === undefined ? -1 : group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined);
    const section = tier < 0 ? group.tiers.length : tier;
    sections.set(section, [...(sections.get(section) ?? []), { name, cluster }]);
  }
  const queues = [...sections]
    .toSorted(([a], [b]) => b - a)
    .map(([section, members]) => ({ max: group.tiers[section]?.max ?? (() => 0), left: withinTier(facts, members) }));
  return keepSpread(merge(queues), placement.spread, known);
}

interface Queue {
  readonly max: (replicas: number) => number;
  readonly left: string[];
}

/** From queues that are in the order of removal: the first that would be above its maximum, else the first. */
function merge(queues: readonly Queue[]): string[] {
  const order: string[] = [];
  for (let pods = queues.reduce((all, { left }) => all + left.length, 0); pods > 0; pods -= 1) {
    const open = queues.filter(({ left }) => left.length > 0);
    const queue = open.find(({ left, max }) => left.length > max(pods - 1)) ?? open[0];
    const next = queue?.left.shift();
    if (next !== undefined) order.push(next);
  }
  return order;
}

/** Moves to the end what a spread rule needs: one pod in each of as many groups as it asks for, of those that stay longest. */
function keepSpread(
  order: readonly string[],
  rules: readonly SpreadRule[],
  known: ReadonlyMap<string, Cluster>,
): string[] {
  const kept = new Set<number>();
  for (const rule of rules) {
    const covered = new Set<string>();
    for (let index = order.length - 1; index >= 0 && covered.size < rule.min; index -= 1) {
      const cluster = known.get(order[index] ?? '');
      const groups = cluster === undefined ? [] : rule.groupsOf(cluster);
      if (groups.some((group) => !covered.has(group))) kept.add(index);
      for (const group of groups) covered.add(group);
    }
  }
  const names = [...order.entries()];
  return [...names.filter(([index]) => !kept.has(index)), ...names.filter(([index]) => kept.has(index))].map(
    ([, name]) => name,
  );
}

interface Member {
  readonly name: string;
  readonly cluster: Cluster | undefined;
}

function withinTier(facts: RemovalFacts, members: readonly Member[]): string[] {
  const { division } = facts.placement;
  if (division.kind === 'none') return byPreference(facts, members);
  if (division.kind === 'preferences' && division.remainder) return byRemainder(facts, members, division);
  const method = new HighestAverages(sharesOf(facts, members), tiesDescend(facts.uid));
  const counts = new Map(members.map(({ name }) => [name, facts.pods.get(name) ?? 0]));
  const order: string[] = [];
  for (let share = method.last(counts); share !== undefined; share = method.last(counts)) {
    order.push(share.name);
    counts.set(share.name, (counts.get(share.name) ?? 0) - 1);
  }
  return order;
}

/**
 * Towards KubeFed's division of one pod less, again and again: the cluster that has most above it gives one up, of equals
 * the lighter one. So that division is met at every size, but for those where its rounding gives a cluster a pod more than
 * at a larger size.
 */
function byRemainder(
  { pods, uid = '' }: RemovalFacts,
  members: readonly Member[],
  { limitsOf, rebalance }: Division & { kind: 'preferences' },
): string[] {
  const shares = members.map(({ name, cluster }): RemainderShare => {
    const { weight, minReplicas, maxReplicas } = (cluster && limitsOf(cluster)) ?? { weight: 0, minReplicas: 0 };
    return {
      name,
      weight,
      first: 0,
      min: minReplicas,
      max: maxReplicas,
      current: pods.get(name) ?? 0,
      capacity: undefined,
    };
  });
  const counts = new Map(shares.map(({ name, current }) => [name, current]));
  const lightestFirst = shares.toSorted((a, b) => a.weight - b.weight || (a.name < b.name ? 1 : -1));
  const order: string[] = [];
  for (let left = sum(counts) - 1; left >= 0; left -= 1) {
    const targets = divideRemainder(left, shares, { rebalance, key: uid }).counts;
    const above = ({ name }: RemainderShare): number => (counts.get(name) ?? 0) - (targets.get(name) ?? 0);
    const [first] = lightestFirst
      .filter(({ name }) => (counts.get(name) ?? 0) > 0)
      .toSorted((a, b) => above(b) - above(a));
    if (first === undefined) break;
    order.push(first.name);
    counts.set(first.name, (counts.get(first.name) ?? 0) - 1);
  }
  return order;
}

function sharesOf({ placement: { division }, shares, pods }: RemovalFacts, members: readonly Member[]): Share[] {
  switch (division.kind) {
    case 'static': {
      const weights = staticWeights(
        division,
        members.map(({ cluster }) => cluster),
      );
      return members.map(({ name }, index) => ({ name, weight: weights[index] ?? 0 }));
    }
    case 'preferences':
      return members.map(({ name, cluster }) => {
        const limits = cluster === undefined ? undefined : division.limitsOf(cluster);
        if (limits === undefined) return { name, weight: 0, max: 0 };
        const { weight, minReplicas: min, maxReplicas: max } = limits;
        return { name, weight, min, ...(max === undefined ? {} : { max }) };
      });
    case 'dynamic':
    case 'aggregated':
    case 'none':
      return members.map(({ name }) => ({ name, weight: shares?.get(name) ?? pods.get(name) ?? 0 }));
  }
}

/** All pods of one cluster, then all of the next. What changes from hour to hour, such as room, does not count here. */
function byPreference({ pods, clusters }: RemovalFacts, members: readonly Member[]): string[] {
  const home = clusters.find(({ name }) => name === LOCAL)?.region;
  const far = ({ name, cluster }: Member): number =>
    name === LOCAL ? 0 : home !== undefined && cluster?.region === home ? 1 : 2;
  const price = ({ cluster }: Member): number => cluster?.price ?? Number.MAX_VALUE;
  return members
    .toSorted(
      (a, b) =>
        Number(a.name === LOCAL) - Number(b.name === LOCAL) ||
        price(b) - price(a) ||
        far(b) - far(a) ||
        (a.name < b.name ? 1 : -1),
    )
    .flatMap(({ name }) => Array.from({ length: pods.get(name) ?? 0 }, () => name));
}
