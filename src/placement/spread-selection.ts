import type { Candidate } from './candidates.ts';
import { listInWords } from './placement-refusal.ts';
import type { SpreadRule } from './spread-rule.ts';

export interface SpreadWishes {
  readonly rules: readonly SpreadRule[];
  readonly scores: ReadonlyMap<string, number>;
  /**
   * Pods still to be placed, for which the chosen clusters should have room. Undefined when room does not matter; then as
   * many groups are chosen as allowed.
   */
  readonly need: number | undefined;
}

/**
 * Clusters that are looked at in all choices of groups together, before giving up: far more than any real fleet needs, and some
 * hundredths of a second. Whoever may write a policy can ask for what no choice keeps, and everybody waits for the answer.
 */
const MOST_LOOKED_AT = 10_000;

/**
 * The clusters a workload may use so that every rule is kept: of each rule at least `min` and at most `max` groups. Groups
 * with pods of the workload stay chosen; then the better ones come first, and no more of them than it takes to have room
 * for all pods. Of clusters as many as allowed are chosen, one in each group first, and a cluster with more room takes the
 * place of a better one where the room would not do otherwise.
 *
 * @param candidates best first.
 */
export function selectSpread(
  candidates: readonly Candidate[],
  wishes: SpreadWishes,
): { chosen: readonly Candidate[] } | { problem: string } {
  const { rules } = wishes;
  if (rules.length === 0) return { chosen: candidates };
  for (const rule of rules) {
    const groups = groupNames(candidates, rule);
    if (groups.length < rule.min) return { problem: tooFewInWords(rule, groups) };
  }
  const looks = { left: MOST_LOOKED_AT };
  const areas = rules.filter(({ byCluster }) => !byCluster);
  const chosen = search(candidates, areas, wishes, looks);
  if (chosen !== undefined) return { chosen };
  return {
    problem: `no choice of clusters is spread as asked over ${listInWords(rules.map(({ by }) => by))} together`,
  };
}

function tooFewInWords({ by, min }: SpreadRule, groups: readonly string[]): string {
  const there = groups.length === 0 ? 'none can be used' : `only ${listInWords(groups)} can be used`;
  return `pods are to be spread over at least ${String(min)} ${by === 'cluster' ? 'clusters' : `values of ${by}`}, but ${there}`;
}

/** Fixes one rule after the other to a set of its groups, and goes back where that leads nowhere. */
function search(
  candidates: readonly Candidate[],
  [rule, ...others]: readonly SpreadRule[],
  wishes: SpreadWishes,
  looks: { left: number },
): readonly Candidate[] | undefined {
  if (rule === undefined) return pickClusters(candidates, wishes);
  for (const groups of groupSets(candidates, rule, wishes)) {
    if (looks.left <= 0) return undefined;
    looks.left -= candidates.length;
    const within = candidates.filter(({ cluster }) => rule.groupsOf(cluster).every((group) => groups.has(group)));
    const found = search(within, others, wishes, looks);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The sets of groups that a rule allows, the best one first. */
function* groupSets(candidates: readonly Candidate[], rule: SpreadRule, wishes: SpreadWishes): Generator<Set<string>> {
  const ranked = rankGroups(candidates, rule, wishes);
  const most = Math.min(rule.max, ranked.length);
  const used = Math.min(ranked.filter((group) => group.used).length, most);
  const least = Math.max(rule.min, used);
  const need = wishes.need ?? Number.POSITIVE_INFINITY;
  let enough = least;
  const room = (count: number): number => ranked.slice(0, count).reduce((all, group) => all + group.room, 0);
  while (enough < most && room(enough) < need) enough += 1;
  const sizes = [...range(enough, most), ...range(least, enough - 1).toReversed()];
  const names = ranked.map(({ name }) => name);
  for (const size of sizes) {
    for (const rest of combinations(names.slice(used), size - used)) yield new Set([...names.slice(0, used), ...rest]);
  }
}

interface RankedGroup {
  readonly name: string;
  readonly used: boolean;
  readonly room: number;
  readonly score: number;
}

/** Used ones first; then those that can hold their part of the pods; then by the mean score of their clusters. */
function rankGroups(candidates: readonly Candidate[], rule: SpreadRule, { scores, need }: SpreadWishes): RankedGroup[] {
  const part = need === undefined ? 0 : Math.ceil(need / rule.min);
  const groups = groupNames(candidates, rule).map((name): RankedGroup => {
    const members = candidates.filter(({ cluster }) => rule.groupsOf(cluster).includes(name));
    const room = members.reduce((all, one) => all + one.room, 0);
    const mean = members.reduce((all, one) => all + (scores.get(one.name) ?? 0), 0) / members.length;
    return { name, used: members.some(({ inUse }) => inUse), room, score: 1_000 * Math.min(part, room) + mean };
  });
  return groups.toSorted((a, b) => Number(b.used) - Number(a.used) || b.score - a.score || (a.name < b.name ? -1 : 1));
}

function groupNames(candidates: readonly Candidate[], rule: SpreadRule): string[] {
  return [...new Set(candidates.flatMap(({ cluster }) => rule.groupsOf(cluster)))].toSorted();
}

/** As many clusters as the rule about clusters allows, or undefined where some rule cannot be kept with them. */
function pickClusters(
  candidates: readonly Candidate[],
  { rules, need }: SpreadWishes,
): readonly Candidate[] | undefined {
  const most = Math.min(candidates.length, ...rules.filter(({ byCluster }) => byCluster).map(({ max }) => max));
  const picked: Candidate[] = candidates.filter(({ inUse }) => inUse).slice(0, most);
  const add = (wanted: (candidate: Candidate) => boolean): void => {
    for (const candidate of candidates) {
      if (picked.length < most && !picked.includes(candidate) && wanted(candidate)) picked.push(candidate);
    }
  };
  for (const rule of rules) {
    const groups = new Set(picked.flatMap(({ cluster }) => rule.groupsOf(cluster)));
    add(({ cluster }) => {
      const own = groups.size < rule.min ? rule.groupsOf(cluster) : [];
      const isNew = own.some((group) => !groups.has(group));
      for (const group of isNew ? own : []) groups.add(group);
      return isNew;
    });
  }
  add(() => true);
  if (!keepsMinimums(picked, rules)) return undefined;
  if (need !== undefined) makeRoom(picked, candidates, rules, need);
  return candidates.filter((candidate) => picked.includes(candidate));
}

/** From the last pick backwards, exchanges it for the roomiest cluster left over until there is room for all pods. */
function makeRoom(
  picked: Candidate[],
  candidates: readonly Candidate[],
  rules: readonly SpreadRule[],
  need: number,
): void {
  for (let index = picked.length - 1; index >= 0; index -= 1) {
    const own = picked[index];
    if (own === undefined || picked.reduce((all, { room }) => all + room, 0) >= need) return;
    if (own.inUse) continue;
    const roomiest = candidates
      .filter((candidate) => !picked.includes(candidate) && candidate.room > own.room)
      .toSorted((a, b) => b.room - a.room)
      .find((candidate) => keepsMinimums(picked.with(index, candidate), rules));
    if (roomiest !== undefined) picked[index] = roomiest;
  }
}

function keepsMinimums(picked: readonly Candidate[], rules: readonly SpreadRule[]): boolean {
  return rules.every((rule) => groupNames(picked, rule).length >= rule.min);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
}

/** Choices of `size` names that keep their order; those with earlier names come first. */
function* combinations(names: readonly string[], size: number): Generator<string[]> {
  if (size === 0) yield [];
  for (const [index, name] of names.entries()) {
    if (size === 0 || names.length - index < size) return;
    for (const rest of combinations(names.slice(index + 1), size - 1)) yield [name, ...rest];
  }
}
