import { absentKind, whyNeverChosen } from '../api/choosable-kinds.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { PlacementPolicy } from '../api/placement-policy.ts';
import type { ClusterAffinity } from '../api/selectors.ts';
import { compileAffinity } from './cluster-affinity.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { Cluster } from '../api/cluster.ts';
import { compilePlacement } from './compiled-placement.ts';
import type { Group } from './compiled-placement.ts';
import { failoverWarnings } from './failover-warnings.ts';
import { listInWords } from './placement-refusal.ts';

type Warning = (path: string, message: string) => void;

/**
 * What in a usable policy contradicts itself, the clusters there are or the kinds that Kubernetes has, each with the field's path. The policy is in use
 * nevertheless: members come and go.
 */
export function policyWarnings({ spec }: PlacementPolicy, clusters: readonly Cluster[]): string[] {
  const { placement } = spec;
  const warnings: string[] = [];
  const add: Warning = (path, message) => warnings.push(`spec.placement.${path}: ${message}`);
  const compiled = compilePlacement(placement);
  const given = placement.clusterAffinities ?? (placement.clusterAffinity ? [placement.clusterAffinity] : []);
  for (const [index, group] of given.entries()) {
    const path = placement.clusterAffinities === undefined ? 'clusterAffinity' : `clusterAffinities[${String(index)}]`;
    const compiledGroup = compiled.groups[index];
    for (const [tier, affinity] of [group, ...(group.overflowAffinities ?? [])].entries()) {
      const own = tier === 0 ? path : `${path}.overflowAffinities[${String(tier - 1)}]`;
      checkNames(affinity, own, clusters, add);
      if (compiledGroup !== undefined) checkTier(compiledGroup, tier, own, clusters, add);
    }
  }
  const reachable = clusters.filter((cluster) => compiled.groups.some((group) => tierOf(group, cluster) >= 0));
  for (const [index, rule] of compiled.spread.entries()) {
    const groups = new Set(reachable.flatMap((cluster) => rule.groupsOf(cluster)));
    if (groups.size >= rule.min) continue;
    const there = groups.size === 0 ? 'none' : `only ${listInWords([...groups].toSorted())}`;
    const message = `asks for ${String(rule.min)} groups by ${rule.by}, but the clusters it may use have ${there}`;
    add(`spreadConstraints[${String(index)}].minGroups`, message);
  }
  checkDivision(placement.replicaScheduling, reachable, clusters, add);
  return [...kindWarnings(spec.resourceSelectors), ...warnings, ...failoverWarnings(spec, compiled, reachable)];
}

function kindWarnings(selectors: PlacementPolicy['spec']['resourceSelectors']): string[] {
  return selectors.flatMap((selector, index) => {
    const why = whyNeverChosen(selector);
    return why === undefined ? [] : [`spec.resourceSelectors[${String(index)}].kind: ${why}`];
  });
}

/** What is known of a kind that is not Kubernetes' own. */
export interface SelectedKinds {
  /** Why of its objects only the name is known, from those that they own; undefined: they are known. */
  readonly whyUnread: (apiVersion: string, kind: string) => string | undefined;
  /** Whether pods of such objects wait until they can be read. */
  readonly holds: (apiVersion: string, kind: string) => boolean;
  /** Whether the host does not have it. */
  readonly isAbsent: (apiVersion: string, kind: string) => boolean;
}

/** Selectors for kinds that the host does not have, and by label for kinds of which no labels are known: they match nothing, or pods wait for them. */
export function selectorWarnings(
  { spec: { resourceSelectors } }: PlacementPolicy,
  { whyUnread, holds, isAbsent }: SelectedKinds,
): string[] {
  return resourceSelectors.flatMap(({ apiVersion, kind, name, labelSelector }, index) => {
    const path = `spec.resourceSelectors[${String(index)}]`;
    if (whyNeverChosen({ apiVersion, kind }) !== undefined) return [];
    if (isAbsent(apiVersion, kind)) return [`${path}.kind: ${absentKind({ apiVersion, kind })}`];
    const why = labelSelector === undefined || name !== undefined ? undefined : whyUnread(apiVersion, kind);
    if (why === undefined) return [];
    const so = holds(apiVersion, kind) ? 'new pods of such objects wait' : 'this matches none';
    const message =
      `labels of ${kind} (${apiVersion}) are not known, so ${so}: ${why}. Or choose the objects by name, all of the ` +
      'kind, or the pods by labels of their own';
    return [`${path}.labelSelector: ${message}`];
  });
}

function checkNames(
  { clusterNames = [], exclude = [] }: ClusterAffinity,
  path: string,
  clusters: readonly Cluster[],
  add: Warning,
): void {
  const known = new Set(clusters.map(({ name }) => name));
  const unknown = [...clusterNames, ...exclude].filter((name) => !known.has(name) && name !== LOCAL);
  if (unknown.length > 0) add(path, `there is no member ${listInWords([...new Set(unknown)])}`);
  const both = clusterNames.filter((name) => exclude.includes(name));
  if (both.length > 0) add(path, `${listInWords(both)} is both in clusterNames and in exclude, which wins`);
}

function checkTier(group: Group, tier: number, path: string, clusters: readonly Cluster[], add: Warning): void {
  const meant = clusters.filter((cluster) => group.tiers[tier]?.whyNot(cluster) === undefined);
  if (meant.length === 0) {
    add(path, 'chooses none of the clusters there are');
  } else if (tier > 0 && meant.every((cluster) => tierOf(group, cluster) < tier)) {
    add(path, `never counts: ${listInWords(meant.map(({ name }) => name))} is in an earlier tier already`);
  }
}

function tierOf(group: Group, cluster: Cluster): number {
  return group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined);
}

function checkDivision(
  scheduling: PlacementPolicy['spec']['placement']['replicaScheduling'],
  reachable: readonly Cluster[],
  clusters: readonly Cluster[],
  add: Warning,
): void {
  if (scheduling === undefined) return;
  const { weightPreference, clusterPreferences, replicaDivisionPreference, whenFull } = scheduling;
  const dynamic = weightPreference?.dynamicWeight !== undefined;
  if (dynamic && weightPreference.staticWeightList !== undefined) {
    add('replicaScheduling.weightPreference.staticWeightList', 'is ignored, as dynamicWeight is given');
  }
  if (whenFull === 'Wait' && (dynamic || replicaDivisionPreference === 'Aggregated')) {
    add('replicaScheduling.whenFull', 'Wait has no effect on a division by free room');
  }
  for (const [index, { targetCluster }] of (dynamic ? [] : (weightPreference?.staticWeightList ?? [])).entries()) {
    const whyNot = compileAffinity(targetCluster);
    if (reachable.some((cluster) => whyNot(cluster) === undefined)) continue;
    add(
      `replicaScheduling.weightPreference.staticWeightList[${String(index)}]`,
      'matches none of the clusters the policy may use',
    );
  }
  const usable = new Set(reachable.map(({ name }) => name));
  for (const name of Object.keys(clusterPreferences?.clusters ?? {})) {
    if (name === '*' || usable.has(name)) continue;
    const known = clusters.some((cluster) => cluster.name === name);
    const why = known ? 'the policy does not choose it by its affinity' : 'it does not exist';
    add('replicaScheduling.clusterPreferences.clusters', `names ${clusterInWords(name)}, but ${why}`);
  }
}
