import type { OverridePolicySpec } from '../../api/override-policy.ts';
import type { TracedField } from './rule-trace.ts';

/** An override policy in plain facts, as `explain-policy -o json` has it. */
export interface ExplainedOverride {
  /** `OverridePolicy gold` */
  policy: string;
  /** Null: cluster-wide. */
  namespace: string | null;
  /** Null: it cannot be used. */
  applyTo: OverridePolicySpec['applyTo'] | null;
  /** Why it cannot be used at all, field by field. */
  problems: string[];
  /** What in it has no effect, as the members that it is for are not there. */
  warnings: string[];
  clusters: OverriddenCluster[];
  workloads: OverriddenWorkload[];
  /** What was not looked at. */
  notes: string[];
}

export interface OverriddenCluster {
  /** Name of a member. */
  cluster: string;
  /** Places in overrideRules of those that are for it. */
  rules: number[];
  says: string;
}

/** What becomes of the next pod of a workload in one member, or of a ConfigMap or claim that comes along. */
export interface OverriddenWorkload {
  namespace: string;
  /** `Deployment/web`, `ConfigMap/settings` */
  workload: string;
  cluster: string;
  changes: { rule: number; fields: TracedField[] }[];
  /** Why no pod of it, or no copy, would be made there, because of override policies or of anything else; null: nothing speaks against it. */
  refused: string | null;
}
