/** Addresses a kind in the REST API; `plural` is the path segment. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const core = (kind: string, plural: string, namespaced = true): Resource => ({
  group: '',
  version: 'v1',
  kind,
  plural,
  namespaced,
});

export const PODS = core('Pod', 'pods');
export const CONFIG_MAPS = core('ConfigMap', 'configmaps');
export const SECRETS = core('Secret', 'secrets');
export const SERVICES = core('Service', 'services');
export const EVENTS = core('Event', 'events');
export const RESOURCE_QUOTAS = core('ResourceQuota', 'resourcequotas');
export const LIMIT_RANGES = core('LimitRange', 'limitranges');
export const PERSISTENT_VOLUME_CLAIMS = core('PersistentVolumeClaim', 'persistentvolumeclaims');
export const PERSISTENT_VOLUMES = core('PersistentVolume', 'persistentvolumes', false);
export const NODES = core('Node', 'nodes', false);
export const NAMESPACES = core('Namespace', 'namespaces', false);
export const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export const STORAGE_CLASSES: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
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
