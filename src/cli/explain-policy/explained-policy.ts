/** A policy in plain facts, as `explain-policy -o json` has it. */
export interface ExplainedPolicy {
  /** `PlacementPolicy web` */
  policy: string;
  /** Null: cluster-wide. */
  namespace: string | null;
  /** Why it cannot be used at all, field by field. */
  problems: string[];
  /** What in it contradicts itself, or the clusters there are. */
  warnings: string[];
  clusters: ExplainedCluster[];
  workloads: ExplainedWorkload[];
}

export interface ExplainedCluster {
  /** Name of a member, or `local`. */
  cluster: string;
  /** In which order clusters are filled, from 1; null: the policy does not choose it. */
  tier: number | null;
  /** Of several groups the name of its own. */
  group: string | null;
  says: string;
}

/** A workload that the policy matches. */
export interface ExplainedWorkload {
  namespace: string;
  /** `Deployment/web` */
  workload: string;
  /** Whether this policy decides about its pods. */
  decides: boolean;
  says: string;
  /** Where its pods are, in short; null: nobody has said so. */
  where: string | null;
}
