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
  /** Namespaces whose pods do not go to members as the policy says, for want of a label. */
  notLabelled: ExplainedNamespace[];
  /** What moves pods out of members; null: it cannot be used. */
  failover: ExplainedFailover | null;
}

/** What `failover` does, with what holds by default where it says nothing. */
export interface ExplainedFailover {
  owners: ExplainedOwner[];
  causes: ExplainedCause[];
  /** How pods leave a member that answers. */
  leaving: string;
  /** What the next pod learns of the one before it; null: nothing. */
  handedOn: string | null;
}

/** What becomes of pods in a member, by what made them. */
export interface ExplainedOwner {
  /** `Job` */
  pods: string;
  /** When the member is lost. */
  memberLost: string;
  /** When its virtual node is out of service then. */
  outOfService: string;
  /** When it has a taint of effect NoExecute, or its virtual node is drained. */
  tainted: string;
}

/** What else moves pods, or does not. */
export interface ExplainedCause {
  cause: string;
  /** Null: never. */
  after: string | null;
  says: string;
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

export interface ExplainedNamespace {
  namespace: string;
  /** Those that the policy decides about and that need the label: `Deployment/web`. */
  workloads: string[];
  /** What to type. */
  fix: string;
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
