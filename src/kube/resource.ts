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
  /** What every object that comes from a server is checked against, where it comes in; default: its metadata only. */
  readonly shape?: Shape;
}

const core = (kind: string, plural: string, namespaced = true, shape?: Shape): Resource => ({
  group: '',
  version: 'v1',
  kind,
  plural,
  namespaced,
  ...(shape === undefined ? {} : { shape }),
});

export const PODS = core('Pod', 'pods', true, pod);
export const CONFIG_MAPS = core('ConfigMap', 'configmaps', true, content);
export const SECRETS = core('Secret', 'secrets', true, content);
export const SERVICE_ACCOUNTS = core('ServiceAccount', 'serviceaccounts');
export const SERVICES = core('Service', 'services', true, service);
export const EVENTS = core('Event', 'events', true, event);
export const RESOURCE_QUOTAS = core('ResourceQuota', 'resourcequotas', true, quota);
export const LIMIT_RANGES = core('LimitRange', 'limitranges', true, limitRange);
export const PERSISTENT_VOLUME_CLAIMS = core('PersistentVolumeClaim', 'persistentvolumeclaims', true, claim);
export const PERSISTENT_VOLUMES = core('PersistentVolume', 'persistentvolumes', false, volume);
export const NODES = core('Node', 'nodes', false, node);
export const NAMESPACES = core('Namespace', 'namespaces', false, namespace);
export const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export const DEPLOYMENTS: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};

export const REPLICA_SETS: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  namespaced: true,
};

export const STORAGE_CLASSES: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
  shape: storageClass,
};

export const POD_DISRUPTION_BUDGETS: Resource = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
  shape: budget,
};

export const ENDPOINT_SLICES: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
  shape: endpointSlice,
};

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
