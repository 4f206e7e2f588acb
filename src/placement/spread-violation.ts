import type { Decision, PlacementFacts } from './decision.ts';
import type { Cluster } from '../api/cluster.ts';
import type { Counts } from './share.ts';
import type { SpreadRule } from './spread-rule.ts';
import { ofRevision } from './workload.ts';

/** How pods of one revision stand to one rule: 0, or how many are in the wrong place at least. */
interface Standing {
  readonly wrong: number;
  /** For people; undefined when nothing is. */
  readonly why: string | undefined;
}

/**
 * What of the spread constraints the pods that are there do not keep, in words, if a pod of `from` mends it by going where it would go if it
 * came now: no rule is kept less then, wherever that is, and some rule better. So each such move is a step down, and there is no way back.
 * With division it may take more than one, to seats of which only some mend it: the number of seats that are free falls with each.
 * `facts` are those without the pod.
 */
export function spreadToMend(
  { placement, clusters, workload, pod }: PlacementFacts,
  { allowed }: Decision,
  from: string,
): string | undefined {
  const rules = placement.spread;
  if (rules.length === 0 || allowed.length === 0) return undefined;
  const others = ofRevision(workload.pods, pod.revision);
  const known = new Map(clusters.map((cluster) => [cluster.name, cluster]));
  const standings = (cluster: string): Standing[] => {
    const counts = new Map([...others, [cluster, (others.get(cluster) ?? 0) + 1]]);
    return rules.map((rule) => standing(rule, counts, known));
  };
  const now = standings(from);
  const changes = allowed.map(({ cluster }) =>
    standings(cluster).map(({ wrong }, index) => wrong - (now[index]?.wrong ?? 0)),
  );
  const isWorse = changes.some((own) => own.some((change) => change > 0));
  const mending = changes.filter((own) => own.some((change) => change < 0)).length;
  const isMended = placement.division.kind === 'none' ? mending === allowed.length : mending > 0;
  if (isWorse || !isMended || allowed.some(({ cluster }) => cluster === from)) return undefined;
  return now.find(({ why }) => why !== undefined)?.why;
}

function standing(rule: SpreadRule, counts: Counts, known: ReadonlyMap<string, Cluster>): Standing {
  const { by, hard } = rule;
  const groups = new Map<string, number>();
  let [replicas, outside] = [0, 0];
  for (const [name, count] of counts) {
    if (count === 0) continue;
    replicas += count;
    const cluster = known.get(name);
    const own = cluster === undefined ? [] : rule.groupsOf(cluster);
    if (own.length === 0) outside += count;
    for (const group of own) groups.set(group, (groups.get(group) ?? 0) + count);
  }
  const least = Math.min(rule.min, replicas);
  const missing = Math.max(0, least - groups.size);
  const tooMany = [...groups.values()].toSorted((a, b) => b - a).slice(rule.max);
  const lost = hard ? outside : 0;
  const what = by === 'cluster' ? 'clusters' : `values of ${by}`;
  const words = [
    missing > 0 ? `in ${String(groups.size)} ${what} and not in ${String(least)}` : undefined,
    tooMany.length > 0 ? `in ${String(groups.size)} ${what} and not in ${String(rule.max)} at most` : undefined,
    lost > 0 ? `to be spread over ${what}, and some are where there is none` : undefined,
  ].find((one) => one !== undefined);
  return {
    wrong: missing + lost + tooMany.reduce((all, count) => all + count, 0),
    why: words === undefined ? undefined : `its pods are ${words}`,
  };
}
