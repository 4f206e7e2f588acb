import type { OverridePolicy } from '../api/override-policy.ts';
import type { Pod } from '../api/wire.ts';
import type { ObjectIdentity } from './selection.ts';

/** Label that the Deployment controller, and no other, puts on its ReplicaSets and their pods. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * The pod and its controllers as far as the pod alone tells: the owner it names, and the Deployment behind a ReplicaSet,
 * whose name is that of the ReplicaSet without the template's hash. Their labels are not known.
 */
export function identitiesOfPod(pod: Pod): [ObjectIdentity, ...ObjectIdentity[]] {
  const { name, labels = {}, ownerReferences = [] } = pod.metadata;
  const self: ObjectIdentity = { apiVersion: 'v1', kind: 'Pod', name, labels };
  const owner = ownerReferences.find(({ controller }) => controller === true);
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
  return policies.some(({ spec }) =>
    spec.resourceSelectors.some(({ apiVersion, kind }) => apiVersion !== 'v1' || !OF_NO_OWNER.has(kind)),
  );
}

/** Kinds of core/v1 that never own a pod. */
const OF_NO_OWNER: ReadonlySet<string> = new Set(['Pod', 'ConfigMap', 'Secret', 'PersistentVolumeClaim']);
