import { groupVersionOf } from './group-version.ts';
import type { KubeObject, OwnerReference } from './object.ts';

/** The owner that manages the object, as `metav1.GetControllerOf`: API servers let an object have one at most. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** Of Kubernetes' own kind: nobody ends pods that name an owner of a kind which is not there. */
export function isDaemonSet({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): boolean {
  return kind === 'DaemonSet' && typeof apiVersion === 'string' && apiVersion.startsWith('apps/');
}

/** `apps/ReplicaSet`; without a group `/ReplicationController`. */
export function groupKindOf({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): string {
  return `${groupVersionOf(apiVersion).group}/${kind}`;
}
