import type { NodeChoice } from './node-choice.ts';
import { elasticGroupOf } from './elastic.ts';
import { byDomain, domainOf } from './pod-counts.ts';
import type { PodCounts } from './pod-counts.ts';
import type { NodeTable } from './node-table.ts';
import type { LabelledPod, PodTerm, SpreadRule } from './pod-terms.ts';

/** What a pod wants of the pods around it. */
export interface InterPodConstraints {
  /** Stands for namespace and labels of the pod. */
  readonly labelledPodKey: string;
  readonly labelledPod: LabelledPod;
  readonly affinity: readonly PodTerm[];
  readonly antiAffinity: readonly PodTerm[];
  readonly spread: readonly SpreadRule[];
}

const NO_SPREAD_LABEL = 'lacks the label of a topology spread constraint';
const SKEW = 'does not satisfy topology spread constraints';
const AFFINITY = 'does not match pod affinity rules';
const ANTI_AFFINITY = 'does not match pod anti-affinity rules';
const KEPT_AWAY = 'anti-affinity of pods that are there';

/** Why the node of a row may not have the pod beside the others; undefined: it may. */
export type InterPodCheck = (row: number) => string | undefined;

/**
 * Asks nodes whether a pod's wishes about other pods are met there, with the pods as they are now: plugins
 * PodTopologySpread and InterPodAffinity of kube-scheduler. Undefined: there is nothing to ask.
 */
export function interPodCheck(
  rules: InterPodConstraints,
  choice: NodeChoice,
  podCounts: PodCounts,
  table: NodeTable,
): InterPodCheck | undefined {
  const checks: InterPodCheck[] = [];
  if (rules.spread.length > 0) checks.push(spreadCheck(rules, choice, podCounts, table));
  if (rules.affinity.length > 0) checks.push(affinityCheck(rules, podCounts, table));
  for (const term of rules.antiAffinity) {
    const domains = byDomain(podCounts.countsOf(term), term.topologyKey, table);
    if (domains.size > 0) checks.push(notIn(domains, term.topologyKey, table, ANTI_AFFINITY));
  }
  if (!podCounts.keepsNobodyAway) {
    for (const { term, counts } of podCounts.against(rules.labelledPodKey, rules.labelledPod)) {
      checks.push(notIn(byDomain(counts, term.topologyKey, table), term.topologyKey, table, KEPT_AWAY));
    }
  }
  if (checks.length === 0) return undefined;
  return (row) => {
    for (const check of checks) {
      const reason = check(row);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

function notIn(
  domains: ReadonlyMap<string, number>,
  topologyKey: string,
  table: NodeTable,
  reason: string,
): InterPodCheck {
  return (row) => {
    const domain = domainOf(row, topologyKey, table);
    return domain !== undefined && domains.has(domain) ? reason : undefined;
  };
}

function affinityCheck(
  { affinity, labelledPod }: InterPodConstraints,
  podCounts: PodCounts,
  table: NodeTable,
): InterPodCheck {
  const counts = podCounts.countsOfAll(affinity);
  const domains = affinity.map(({ topologyKey }) => ({ topologyKey, has: byDomain(counts, topologyKey, table) }));
  // The first of a series of pods that want to be together may go anywhere.
  const isFirst = domains.every(({ has }) => has.size === 0) && podCounts.meantByAll(affinity, labelledPod);
  return (row) => {
    let near = true;
    for (const { topologyKey, has } of domains) {
      const domain = domainOf(row, topologyKey, table);
      if (domain === undefined) return AFFINITY;
      if (!has.has(domain)) near = false;
    }
    return near || isFirst ? undefined : AFFINITY;
  };
}

/** Pods that count for each spread constraint, by domain; a domain without any pod is there with 0. */
export function spreadDomains(
  { spread, labelledPod }: InterPodConstraints,
  choice: NodeChoice,
  podCounts: PodCounts,
  table: NodeTable,
): { rule: SpreadRule; domains: Map<string, number> }[] {
  const counted = spread.map((rule) => {
    const counts = podCounts.countsWhere(rule.key, labelledPod.namespace, (labels) => rule.counts(labels));
    return { rule, counts, domains: new Map<string, number>() };
  });
  for (let row = 0; row < table.rows; row++) {
    const node = table.node(row);
    // Nodes that do not exist yet hold up nobody.
    if (node === undefined || elasticGroupOf(node) !== undefined) continue;
    if (!spread.every(({ topologyKey }) => domainOf(row, topologyKey, table) !== undefined)) continue;
    for (const { rule, counts, domains } of counted) {
      if (rule.honorsAffinity && !choice.chooses(node)) continue;
      if (rule.honorsTaints && !choice.tolerates(node)) continue;
      const domain = domainOf(row, rule.topologyKey, table) ?? '';
      domains.set(domain, (domains.get(domain) ?? 0) + (counts.get(row) ?? 0));
    }
  }
  return counted;
}

function spreadCheck(
  rules: InterPodConstraints,
  choice: NodeChoice,
  podCounts: PodCounts,
  table: NodeTable,
): InterPodCheck {
  const counted = spreadDomains(rules, choice, podCounts, table).map(({ rule, domains }) => {
    const enough = domains.size >= rule.minDomains;
    return { rule, domains, least: enough ? [...domains.values()].reduce((a, b) => Math.min(a, b), Infinity) : 0 };
  });
  return (row) => {
    for (const { rule, domains, least } of counted) {
      const domain = domainOf(row, rule.topologyKey, table);
      if (domain === undefined) return NO_SPREAD_LABEL;
      const there = (domains.get(domain) ?? 0) + (rule.includesItself ? 1 : 0);
      if (there - least > rule.maxSkew) return SKEW;
    }
    return undefined;
  };
}
