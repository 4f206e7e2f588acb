import { GROUP } from './marks.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';

/** Of Kubernetes: what of them owns pods stands in kube/owner-kinds.ts. */
const OF_KUBERNETES: ReadonlySet<string> = new Set([
  'apps',
  'autoscaling',
  'batch',
  'extensions',
  'policy',
  ...[
    'admissionregistration',
    'apiextensions',
    'apiregistration',
    'authentication',
    'authorization',
    'certificates',
    'coordination',
    'custom.metrics',
    'discovery',
    'events',
    'external.metrics',
    'flowcontrol.apiserver',
    'internal.apiserver',
    'metrics',
    'networking',
    'node',
    'rbac.authorization',
    'resource',
    'scheduling',
    'storage',
    'storagemigration',
  ].map((group) => `${group}.k8s.io`),
]);

/** No apiVersion and kind of a real object are longer together. */
const LONGEST = 400;

/** A kind that may own pods and is none of Kubernetes' own: anybody can name any. */
export interface CustomKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Of an owner or selector, its kind if it is such a one, as a key. */
export function customKindKey({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): string | undefined {
  const slash = apiVersion.indexOf('/');
  if (slash <= 0 || apiVersion.length + kind.length > LONGEST || kind.includes(' ')) return undefined;
  const group = apiVersion.slice(0, slash);
  return group === GROUP || OF_KUBERNETES.has(group) ? undefined : `${apiVersion} ${kind}`;
}

/** The reverse of {@link customKindKey}. */
export function customKindOf(key: string): CustomKind {
  const space = key.lastIndexOf(' ');
  return { apiVersion: key.slice(0, space), kind: key.slice(space + 1) };
}

/** The kind of an object's controller, by its key, if it is not Kubernetes' own. */
export function kindAbove(object: KubeObject): readonly string[] {
  const above = controllerOf(object);
  const key = above === undefined ? undefined : customKindKey(above);
  return key === undefined ? [] : [key];
}
