import { groupVersionOf } from './group-version.ts';
import { budget } from './shapes/budget.ts';
import { anyObject, content } from './shapes/content.ts';
import { event } from './shapes/event.ts';
import { limitRange, namespace, quota } from './shapes/namespace.ts';
import { node } from './shapes/node.ts';
import { pod } from './shapes/pod.ts';
import { endpointSlice, service } from './shapes/service.ts';
import type { Shape } from './shapes/shape.ts';
import { claim, storageClass, volume } from './shapes/volumes.ts';

/** Addresses a kind in the REST API; `plural` is the path segment. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Nothing but metadata is asked for, see metadata-only.ts. */
  readonly metadataOnly?: true;
  /** Of its objects `metadata.managedFields` is not read, see body-text.ts. */
  readonly managedFields?: false;
  /** What every object that comes from a server is checked against, where it comes in; default: its metadata only. */
  readonly shape?: Shape;
}

/** Of a version of a group as objects carry it in `apiVersion`. */
export function resourceOf(
  apiVersion: string,
  kind: string,
  plural: string,
  namespaced = true,
  shape?: Shape,
): Resource {
  const of = { ...groupVersionOf(apiVersion), kind, plural, namespaced };
  return shape === undefined ? of : { ...of, shape };
}

/** Pods and nodes come by the thousand, and change all the time. */
export const PODS: Resource = { ...resourceOf('v1', 'Pod', 'pods', true, pod), managedFields: false };
export const CONFIG_MAPS = resourceOf('v1', 'ConfigMap', 'configmaps', true, content);
export const SECRETS = resourceOf('v1', 'Secret', 'secrets', true, content);
export const SERVICE_ACCOUNTS = resourceOf('v1', 'ServiceAccount', 'serviceaccounts');
export const SERVICES = resourceOf('v1', 'Service', 'services', true, service);
export const EVENTS: Resource = { ...resourceOf('v1', 'Event', 'events', true, event), managedFields: false };
export const RESOURCE_QUOTAS = resourceOf('v1', 'ResourceQuota', 'resourcequotas', true, quota);
export const LIMIT_RANGES = resourceOf('v1', 'LimitRange', 'limitranges', true, limitRange);
export const PERSISTENT_VOLUME_CLAIMS = resourceOf(
  'v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  true,
  claim,
);
export const PERSISTENT_VOLUMES = resourceOf('v1', 'PersistentVolume', 'persistentvolumes', false, volume);
export const NODES: Resource = { ...resourceOf('v1', 'Node', 'nodes', false, node), managedFields: false };
export const NAMESPACES = resourceOf('v1', 'Namespace', 'namespaces', false, namespace);
export const LEASES = resourceOf('coordination.k8s.io/v1', 'Lease', 'leases');

export const DEPLOYMENTS = resourceOf('apps/v1', 'Deployment', 'deployments');

export const REPLICA_SETS = resourceOf('apps/v1', 'ReplicaSet', 'replicasets');

export const STORAGE_CLASSES = resourceOf('storage.k8s.io/v1', 'StorageClass', 'storageclasses', false, storageClass);

export const POD_DISRUPTION_BUDGETS = resourceOf(
  'policy/v1',
  'PodDisruptionBudget',
  'poddisruptionbudgets',
  true,
  budget,
);

export const ENDPOINT_SLICES = resourceOf(
  'discovery.k8s.io/v1',
  'EndpointSlice',
  'endpointslices',
  true,
  endpointSlice,
);

export const CERTIFICATE_SIGNING_REQUESTS = resourceOf(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  false,
);

/** `v1` or `group/version`, as objects carry it in `apiVersion`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/**
 * The URL path of a collection, an object or a subresource. Every segment is encoded, so a hostile name cannot
 * leave its place in the path.
 */
export function resourcePath(resource: Resource, namespace?: string, name?: string, subresource?: string): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const tail = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  const sub = subresource === undefined ? '' : `/${subresource}`;
  return `${root}${scope}/${resource.plural}${tail}${sub}`;
}

/** What is wrong with the JSON types of an object of the kind, in words; undefined when nothing is. */
export function misshapen(resource: Resource, object: unknown): string | undefined {
  return (resource.shape ?? anyObject)(object)?.slice(1);
}
