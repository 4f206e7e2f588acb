import type { Scoring } from '../api/scoring.ts';
import type { Avoided } from './avoided.ts';
import type { Candidate, Rooms } from './candidates.ts';
import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement, Group } from './compiled-placement.ts';
import type { Migrating } from './migrating.ts';
import type { Refusal } from './placement-refusal.ts';
import type { Signals } from './signals.ts';
import type { SpreadRule } from './spread-rule.ts';
import type { Workload } from './workload.ts';

/** Everything that a decision about one pod looks at. */
export interface PlacementFacts {
  readonly placement: CompiledPlacement;
  /** All members, and `local`. */
  readonly clusters: readonly Cluster[];
  /** Without the pod in question. */
  readonly workload: Workload;
  readonly pod: {
    readonly revision: string | undefined;
    /** How long the pod has been waiting for a place. */
    readonly waitedMs: number;
  };
  /** Room for pods like this one. */
  readonly rooms: Rooms;
  readonly avoided: readonly Avoided[];
  /** The workload is being moved out of a member. */
  readonly migrating?: Migrating | undefined;
  /** What was planned when the last pod of the workload was placed. */
  readonly remembered: Plan | undefined;
  readonly signals: Signals;
  /** How clusters are compared, unless the placement says otherwise. */
  readonly scoring: Scoring;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What one decision leaves to the next one. */
export interface Plan {
  /** The group of `clusterAffinities` the workload lives in. */
  readonly affinityName: string | undefined;
  /** Pods each cluster is to have; undefined where pods just go to the best cluster. */
  readonly targets: ReadonlyMap<string, number> | undefined;
  /** The targets before the workload began to shrink, as long as it does: with division by room it shrinks in proportion to these. */
  readonly shares?: ReadonlyMap<string, number>;
  /** Tier of each cluster of the group. */
  readonly tiers: ReadonlyMap<string, number>;
}

/** A cluster the pod may go to. */
export interface Place {
  readonly cluster: string;
  /** Falls from place to place where the order is what counts. */
  readonly score: number;
  /** With division: which pod of the workload it would be there, of how many. */
  readonly seat?: number;
  readonly seats?: number;
}

export interface Decision {
  /** The best first; empty when the pod has to wait. */
  readonly allowed: readonly Place[];
  readonly refusals: readonly Refusal[];
  readonly plan: Plan;
}

/** The clusters of one group that are left to choose from, and what is known of them. */
export interface Choice {
  readonly facts: PlacementFacts;
  readonly group: Group;
  /** Best first: by tier, score, room, name. */
  readonly candidates: readonly Candidate[];
  readonly scores: ReadonlyMap<string, number>;
  readonly rules: readonly SpreadRule[];
  /** Pods of the pod's revision by cluster. */
  readonly here: ReadonlyMap<string, number>;
  /** Tier of every cluster of the group, usable or not. */
  readonly tiers: ReadonlyMap<string, number>;
  /** Pods the workload will have, this one included. */
  readonly replicas: number;
  /** A pod asks for a place; else only the plan is of interest. */
  readonly asks: boolean;
}

export interface Outcome {
  readonly allowed: readonly Place[];
  /** Put into words for whoever reads them. */
  readonly refusals: () => readonly Refusal[];
  readonly targets?: ReadonlyMap<string, number>;
}
