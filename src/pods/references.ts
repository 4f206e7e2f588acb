import type { Pod } from '../kube/core-v1.ts';
import { isTokenSecretName } from './translate-tokens.ts';

export type DependentKind = 'ConfigMap' | 'Secret';

/** An object in the pod's namespace that the pod needs. */
export interface Reference {
  kind: DependentKind;
  name: string;
  /** The pod starts without it, as on a kubelet. True only if every mention says so. */
  optional: boolean;
  /** Only for pulling images: a kubelet looks for it again before each pull, so it may come after the pod. */
  pulling: boolean;
}

/** ConfigMaps that every cluster publishes in each of its namespaces: a pod in a member gets the member's. */
const PUBLISHED = new Set(['kube-root-ca.crt', 'openshift-service-ca.crt']);

/** Volume kinds with the field that names a Secret, as kubelet's VisitPodSecretNames knows them. */
const SECRET_FIELDS = new Map([
  ['azureFile', 'secretName'],
  ['cephfs', 'secretRef'],
  ['cinder', 'secretRef'],
  ['csi', 'nodePublishSecretRef'],
  ['flexVolume', 'secretRef'],
  ['iscsi', 'secretRef'],
  ['rbd', 'secretRef'],
  ['scaleIO', 'secretRef'],
  ['storageos', 'secretRef'],
]);

const CONTAINER_LISTS = ['initContainers', 'containers', 'ephemeralContainers'];

/**
 * The ConfigMaps and Secrets a pod refers to, each once, in order of first mention. Pull secrets count as optional: a
 * kubelet tries to pull without a missing one. Reads any JSON without failing; what is not as it should be is no
 * reference.
 */
export function findReferences(pod: Pod): Reference[] {
  const found = new Map<string, Reference>();
  const add = (kind: DependentKind, name: unknown, optional: unknown, pulling = false): void => {
    if (typeof name !== 'string' || name === '' || (kind === 'ConfigMap' && PUBLISHED.has(name))) return;
    // In a member pod: what PodTokens puts there, which no host has.
    if (kind === 'Secret' && isTokenSecretName(name)) return;
    const key = `${kind}/${name}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, { kind, name, optional: optional === true, pulling });
    else {
      if (optional !== true) known.optional = false;
      if (!pulling) known.pulling = false;
    }
  };
  const spec = fieldsOf(pod.spec);
  for (const volume of itemsOf(spec['volumes'])) addVolume(volume, add);
  for (const list of CONTAINER_LISTS) {
    for (const container of itemsOf(spec[list])) addContainer(container, add);
  }
  for (const secret of itemsOf(spec['imagePullSecrets'])) add('Secret', secret['name'], true, true);
  return [...found.values()];
}

type Fields = Readonly<Record<string, unknown>>;
type Add = (kind: DependentKind, name: unknown, optional: unknown, pulling?: boolean) => void;

function addVolume(volume: Fields, add: Add): void {
  const configMap = fieldsOf(volume['configMap']);
  add('ConfigMap', configMap['name'], configMap['optional']);
  const secret = fieldsOf(volume['secret']);
  add('Secret', secret['secretName'], secret['optional']);
  for (const source of itemsOf(fieldsOf(volume['projected'])['sources'])) {
    addNamed(source, ['configMap', 'secret'], add);
  }
  for (const [kind, field] of SECRET_FIELDS) {
    const reference = fieldsOf(volume[kind])[field];
    add('Secret', typeof reference === 'string' ? reference : fieldsOf(reference)['name'], false);
  }
}

function addContainer(container: Fields, add: Add): void {
  for (const source of itemsOf(container['envFrom'])) addNamed(source, ['configMapRef', 'secretRef'], add);
  for (const variable of itemsOf(container['env'])) {
    addNamed(fieldsOf(variable['valueFrom']), ['configMapKeyRef', 'secretKeyRef'], add);
  }
}

/** The same shape three times over: `{ <ConfigMap field>: {name, optional} }` or `{ <Secret field>: ... }`. */
function addNamed(source: Fields, [configMapField, secretField]: readonly [string, string], add: Add): void {
  const configMap = fieldsOf(source[configMapField]);
  add('ConfigMap', configMap['name'], configMap['optional']);
  const secret = fieldsOf(source[secretField]);
  add('Secret', secret['name'], secret['optional']);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function itemsOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}
