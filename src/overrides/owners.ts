import { customKindKey } from '../api/custom-kinds.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import { TEMPLATE_HASH } from '../api/released.ts';
import type { ResourceSelector } from '../api/selectors.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { ObjectIdentity } from './selection.ts';

/**
 * The pod and its controllers as far as the pod alone tells: the owner it names, and the Deployment behind a ReplicaSet,
 * whose name is that of the ReplicaSet without the template's hash. Their labels are not known.
 */
export function identitiesOfPod(pod: Pod): [ObjectIdentity, ...ObjectIdentity[]] {
  const { name, labels = {} } = pod.metadata;
  const self: ObjectIdentity = { apiVersion: 'v1', kind: 'Pod', name, labels };
  const owner = controllerOf(pod);
  if (owner === undefined) return [self];
  const first: ObjectIdentity = { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, labels: undefined };
  const suffix = `-${labels[TEMPLATE_HASH] ?? ''}`;
  const byDeployment = owner.apiVersion === 'apps/v1' && owner.kind === 'ReplicaSet' && suffix.length > 1;
  if (!byDeployment || !owner.name.endsWith(suffix)) return [self, first];
  const deployment = owner.name.slice(0, -suffix.length);
  return [self, first, { apiVersion: 'apps/v1', kind: 'Deployment', name: deployment, labels: undefined }];
}

/** Whether owners of pods have to be known to tell which of the policies apply to a pod. */
export function askForOwners(policies: readonly OverridePolicy[]): boolean {
  return ownerSelectors(policies).length > 0;
}

/**
 * Whether {@link identitiesOfPod} already says which owners the policies choose by name or kind. Not so for custom kinds,
 * which may stand above anything, and for the CronJob of a Job.
 */
export function tellsOwners(pod: Pod, policies: readonly OverridePolicy[]): boolean {
  const below = identitiesOfPod(pod).at(-1)?.kind;
  return ownerSelectors(policies).every(
    ({ apiVersion, kind }) =>
      TOLD_BY_PODS.has(`${apiVersion} ${kind}`) || (apiVersion === 'batch/v1' && kind === 'CronJob' && below !== 'Job'),
  );
}

/** Whether owners of kinds that are not Kubernetes' own have to be read to tell which of the policies apply to a pod. */
export function askForCustomOwners(policies: readonly OverridePolicy[]): boolean {
  return ownerSelectors(policies).some((selector) => customKindKey(selector) !== undefined);
}

function ownerSelectors(policies: readonly OverridePolicy[]): ResourceSelector[] {
  return policies.flatMap(({ spec }) =>
    spec.resourceSelectors.filter(({ apiVersion, kind }) => apiVersion !== 'v1' || !OF_NO_OWNER.has(kind)),
  );
}

/** Kinds that own pods themselves, or ReplicaSets under their own name. */
const TOLD_BY_PODS: ReadonlySet<string> = new Set([
  'apps/v1 ReplicaSet',
  'apps/v1 Deployment',
  'apps/v1 StatefulSet',
  'apps/v1 DaemonSet',
  'batch/v1 Job',
  'v1 ReplicationController',
]);

/** Kinds of core/v1 that come along with pods, and are overridden, too. */
export const OF_DATA: readonly string[] = ['ConfigMap', 'Secret', 'PersistentVolumeClaim'];
/** Kinds of core/v1 that never own a pod. */
const OF_NO_OWNER: ReadonlySet<string> = new Set(['Pod', ...OF_DATA]);
