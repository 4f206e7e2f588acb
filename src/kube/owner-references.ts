import { groupVersionOf } from './group-version.ts';
import { keyFor, type KubeObject, type OwnerReference } from './object.ts';

/** The owner that manages the object, as `metav1.GetControllerOf`: API servers let an object have one at most. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/**
 * By what those are found that an object controls, and what it is known by beside others: its UID together with its namespace. Owner references hold
 * within one namespace, but anybody may name there a UID that was read in another one.
 */
export function ownerKeyOf({ metadata: { namespace, uid = '' } }: Pick<KubeObject, 'metadata'>): string {
  return keyFor(namespace, uid);
}

/** The same of the controller of an object. */
export function controllerKeyOf({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined {
  const controller = controllerOf({ metadata });
  return controller === undefined ? undefined : keyFor(metadata.namespace, controller.uid);
}

/** The same of the object itself where it has no controller. */
export function controllerOrOwnKeyOf(object: Pick<KubeObject, 'metadata'>): string {
  return controllerKeyOf(object) ?? ownerKeyOf(object);
}

/** Of Kubernetes' own kind: nobody ends pods that name an owner of a kind which is not there. */
export function isDaemonSet({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): boolean {
  return kind === 'DaemonSet' && typeof apiVersion === 'string' && apiVersion.startsWith('apps/');
}

/** `apps/ReplicaSet`; without a group `/ReplicationController`. */
export function groupKindOf({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): string {
  return `${groupVersionOf(apiVersion).group}/${kind}`;
}
