import type { KubeObject, OwnerReference } from './object.ts';

/** The owner that manages the object, as `metav1.GetControllerOf`: API servers let an object have one at most. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** `apps/ReplicaSet`; without a group `/ReplicationController`. */
export function groupKindOf({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): string {
  const slash = apiVersion.indexOf('/');
  return `${slash < 0 ? '' : apiVersion.slice(0, slash)}/${kind}`;
}
