import { ALLOW_HOST_LABEL } from '../api/marks.ts';
import { manifestFiles, manifestObjects, manifestText, objectsIn, type ManifestObject } from './manifests.ts';

/** What the owner of a member grants a host. */
export interface Grant {
  /** Namespaces that are lent; none: the whole member is there for the host. */
  readonly lend: readonly string[];
  /** Whether the host may ask kubelets, which lets it do much else. */
  readonly nodeMetrics: boolean;
  /** What all pods of the host may use together in a namespace that is lent, such as `requests.cpu` to `32`. */
  readonly quota: Readonly<Record<string, string>>;
}

/** Whom a host is in its members (manifests/member). */
export const MEMBER_ACCOUNT = { namespace: 'spillway-access', name: 'spillway-host' } as const;

/** What is applied in the member, in that order. `hostId`: whom namespaces are lent to. */
export function grantedObjects({ lend, nodeMetrics, quota }: Grant, hostId: string): ManifestObject[] {
  return [
    ...['member/read.yaml', 'member/guard.yaml', 'member/token.yaml'].flatMap(manifestObjects),
    ...(lend.length === 0 ? manifestObjects(DEDICATED) : lend.flatMap((name) => lending(name, quota, hostId))),
    ...(nodeMetrics ? manifestObjects(NODE_METRICS) : []),
  ];
}

/** What goes first: rights before the account, and what limits it last. */
const REVOKED = [
  'ClusterRoleBinding',
  'RoleBinding',
  'ServiceAccount',
  'ClusterRole',
  'Role',
  'ResourceQuota',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'Namespace',
];

/** All that manifests/member can have brought a member for that account, in the order in which it is taken away; no namespace that was lent. */
export function revocableObjects(lent: readonly string[]): ManifestObject[] {
  const files = manifestFiles('member').filter((file) => file !== LENDING);
  return inOrder([...files.flatMap(manifestObjects), ...lent.flatMap(lendingObjects)]);
}

/** What lets a host use the whole member. */
export function dedicatedObjects(): ManifestObject[] {
  return inOrder(manifestObjects(DEDICATED));
}

/** What lets a host ask kubelets. */
export function nodeMetricsObjects(): ManifestObject[] {
  return inOrder(manifestObjects(NODE_METRICS));
}

/** What lending adds to a namespace. */
export function lendingObjects(namespace: string): ManifestObject[] {
  return lending(namespace, { pods: '0' }, 'any').filter(({ kind }) => kind !== 'Namespace');
}

const LENDING = 'member/namespaced.yaml';
const DEDICATED = 'member/dedicated.yaml';
const NODE_METRICS = 'member/node-metrics.yaml';

function inOrder(objects: readonly ManifestObject[]): ManifestObject[] {
  return objects.toSorted((one, other) => REVOKED.indexOf(one.kind) - REVOKED.indexOf(other.kind));
}

/** manifests/member/namespaced.yaml for another namespace than `shop`. */
function lending(namespace: string, quota: Grant['quota'], hostId: string): ManifestObject[] {
  const objects = objectsIn(manifestText(LENDING).replaceAll(/\bshop\b/g, namespace));
  return objects.flatMap((object) => {
    if (object.kind === 'ResourceQuota') {
      return Object.keys(quota).length === 0 ? [] : [{ ...object, spec: { hard: quota } } as ManifestObject];
    }
    if (object.kind !== 'Namespace') return [object];
    const { metadata } = object;
    return [{ ...object, metadata: { ...metadata, labels: { ...metadata.labels, [ALLOW_HOST_LABEL]: hostId } } }];
  });
}
