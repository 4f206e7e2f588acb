import type { PlacementTier } from '../api/cluster-tiers.ts';
import type { Placement } from '../api/placement.ts';
import type { OwnScoring } from '../api/scoring.ts';
import type { ClusterPreferences, ReplicaScheduling } from '../api/replica-scheduling.ts';
import type { Toleration } from '../kube/taints.ts';
import { compileAffinity } from './cluster-affinity.ts';
import type { WhyNot } from './cluster-affinity.ts';
import type { Cluster } from '../api/cluster.ts';
import { parseDuration } from './duration.ts';
import { compileSpread } from './spread-rule.ts';
import type { SpreadRule } from './spread-rule.ts';

/** Clusters that are filled before the next ones are looked at. */
export interface Tier {
  readonly name: string | undefined;
  readonly whyNot: WhyNot;
  /** The most pods of one revision in all clusters of the tier, for a number of replicas. */
  readonly max: (replicas: number) => number;
  readonly tryNextAfterMs: number;
}

/** Clusters of which a workload uses no others. */
export interface Group {
  readonly name: string | undefined;
  readonly tiers: readonly Tier[];
}

export type Limits = ClusterPreferences['clusters'][string];

/** How replicas are divided; `none`: each pod simply goes to the best cluster. */
export type Division =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'static';
      /** Undefined for a cluster that no rule matches. */
      readonly weightOf: (cluster: Cluster) => number | undefined;
      readonly waitWhenFull: boolean;
    }
  | { readonly kind: 'dynamic' }
  | { readonly kind: 'aggregated' }
  | {
      readonly kind: 'preferences';
      /** Undefined for a cluster that is not listed. */
      readonly limitsOf: (cluster: Cluster) => Limits | undefined;
      readonly rebalance: boolean;
      readonly remainder: boolean;
      readonly waitWhenFull: boolean;
    };

/** A placement ready for use: selectors parsed, defaults applied. */
export interface CompiledPlacement {
  /** At least one. */
  readonly groups: readonly [Group, ...Group[]];
  readonly tolerations: readonly Toleration[];
  readonly spread: readonly SpreadRule[];
  readonly division: Division;
  /** Where it differs from the configuration. */
  readonly scoring: OwnScoring;
  readonly avoidForMs: number;
  /** A pod that a member refused makes way for another one, which goes elsewhere. */
  readonly triesNext: boolean;
}

/** @throws SelectorError when a label selector is none. */
export function compilePlacement(placement: Placement): CompiledPlacement {
  const [first = {}, ...others] = placement.clusterAffinities ?? [placement.clusterAffinity ?? {}];
  return {
    groups: [compileGroup(first), ...others.map(compileGroup)],
    tolerations: placement.clusterTolerations ?? [],
    spread: (placement.spreadConstraints ?? []).map(compileSpread),
    division: compileDivision(placement.replicaScheduling),
    scoring: { weights: placement.scoreWeights ?? {}, hysteresis: placement.hysteresis },
    avoidForMs: parseDuration(placement.avoidFor),
    triesNext: placement.onRefusal === 'TryNext',
  };
}

function compileGroup(group: PlacementTier & { overflowAffinities?: readonly PlacementTier[] }): Group {
  return { name: group.affinityName, tiers: [group, ...(group.overflowAffinities ?? [])].map(compileTier) };
}

function compileTier(tier: PlacementTier): Tier {
  return {
    name: tier.affinityName,
    whyNot: compileAffinity(tier),
    max: maxOf(tier.max),
    tryNextAfterMs: tier.tryNextAfter === undefined ? 0 : parseDuration(tier.tryNextAfter),
  };
}

function maxOf(max: string | number | undefined): (replicas: number) => number {
  if (max === undefined) return () => Number.POSITIVE_INFINITY;
  if (typeof max === 'number') return () => max;
  const percent = Number.parseInt(max, 10);
  return (replicas) => Math.floor((replicas * percent) / 100);
}

function compileDivision(scheduling: ReplicaScheduling | undefined): Division {
  if (scheduling === undefined) return { kind: 'none' };
  const { replicaDivisionPreference, weightPreference, clusterPreferences, whenFull } = scheduling;
  if (replicaDivisionPreference === 'Aggregated') return { kind: 'aggregated' };
  if (clusterPreferences !== undefined) {
    const { clusters, rebalance, division } = clusterPreferences;
    return {
      kind: 'preferences',
      limitsOf: ({ name }) => (Object.hasOwn(clusters, name) ? clusters[name] : clusters['*']),
      rebalance,
      remainder: division === 'Remainder',
      waitWhenFull: whenFull === 'Wait',
    };
  }
  if (weightPreference?.dynamicWeight !== undefined) return { kind: 'dynamic' };
  const rules = (weightPreference?.staticWeightList ?? []).map(({ targetCluster, weight }) => ({
    whyNot: compileAffinity(targetCluster),
    weight,
  }));
  return {
    kind: 'static',
    weightOf: (cluster) => {
      const weights = rules.filter(({ whyNot }) => whyNot(cluster) === undefined).map(({ weight }) => weight);
      return weights.length === 0 ? undefined : Math.max(...weights);
    },
    waitWhenFull: whenFull !== 'TryNext',
  };
}
