import type { SpreadConstraint } from '../api/placement.ts';
import { fieldValues } from './cluster-affinity.ts';
import type { Cluster } from '../api/cluster.ts';

/** Over how many groups of clusters the pods of a workload are spread. */
export interface SpreadRule {
  /** What makes the groups, for people: `cluster`, `region`, `label rack`. */
  readonly by: string;
  readonly byCluster: boolean;
  readonly min: number;
  readonly max: number;
  readonly hard: boolean;
  /** The groups a cluster is in: none without the field or label, several with several zones. */
  readonly groupsOf: (cluster: Cluster) => readonly string[];
}

export function compileSpread(constraint: SpreadConstraint): SpreadRule {
  const { spreadByField, spreadByLabel, minGroups, maxGroups, whenUnsatisfiable } = constraint;
  return {
    by: spreadByLabel === undefined ? (spreadByField ?? 'cluster') : `label ${spreadByLabel}`,
    byCluster: spreadByLabel === undefined && (spreadByField ?? 'cluster') === 'cluster',
    min: minGroups,
    max: maxGroups ?? Number.POSITIVE_INFINITY,
    hard: whenUnsatisfiable === 'DoNotSchedule',
    groupsOf: groupsBy(spreadByField, spreadByLabel),
  };
}

function groupsBy(field: SpreadConstraint['spreadByField'], label: string | undefined): SpreadRule['groupsOf'] {
  if (label !== undefined) {
    return ({ labels }) => (Object.hasOwn(labels, label) ? [labels[label] ?? ''] : []);
  }
  if (field === undefined || field === 'cluster') return ({ name }) => [name];
  return (cluster) => fieldValues(cluster, field);
}
