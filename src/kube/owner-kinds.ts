import type { OwnerReference } from './object.ts';
import { apiVersionOf, REPLICA_SETS, type Resource } from './resource.ts';

const workload = (group: string, kind: string, plural: string): Resource => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: true,
});

/** Kinds that own pods or their owners. Of other kinds only what their dependents say of them is known. */
export const OWNER_KINDS: readonly Resource[] = [
  REPLICA_SETS,
  workload('apps', 'Deployment', 'deployments'),
  workload('apps', 'StatefulSet', 'statefulsets'),
  workload('apps', 'DaemonSet', 'daemonsets'),
  workload('batch', 'Job', 'jobs'),
  workload('batch', 'CronJob', 'cronjobs'),
  workload('', 'ReplicationController', 'replicationcontrollers'),
];

/** Longest chain of controllers above a pod: Job, CronJob is two; custom kinds may have more on top. */
export const MAX_OWNERS = 4;

/** Where an owner can be read; undefined for a kind that is not one of {@link OWNER_KINDS}. */
export function ownerKind({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): Resource | undefined {
  return OWNER_KINDS.find((resource) => resource.kind === kind && apiVersionOf(resource) === apiVersion);
}
