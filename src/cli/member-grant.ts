import { ALLOW_HOST_LABEL } from '../api/marks.ts';
import { UPSTREAM_KINDS } from './multi-cluster-kinds.ts';
import { manifestFiles, manifestObjects, manifestText, objectsIn, type ManifestObject } from './manifests.ts';

/** What a host may be granted beyond what running pods takes, by the file below manifests/ that says what it includes. */
const OPTIONAL = {
  /** To ask kubelets, which lets it do much else. */
  nodeMetrics: 'member/node-metrics.yaml',
  /** Services of the host under their own names. */
  services: 'member/services.yaml',
  /** The exchange of Services by the Multi-Cluster Services API. */
  multiCluster: 'member/multi-cluster.yaml',
  /** Namespaces of the host's making that allow privileged pods. */
  privileged: 'member/privileged.yaml',
} as const;

export type OptionalGrant = keyof typeof OPTIONAL;
export const OPTIONAL_GRANTS = Object.keys(OPTIONAL) as readonly OptionalGrant[];
/** Which of them. */
export type OptionalGrants = Readonly<Record<OptionalGrant, boolean>>;

/** For each the same question. */
export function optionalGrants(is: (one: OptionalGrant) => boolean): OptionalGrants {
  return {
    nodeMetrics: is('nodeMetrics'),
    services: is('services'),
    multiCluster: is('multiCluster'),
    privileged: is('privileged'),
  };
}

/** What the owner of a member grants a host. */
export interface Grant extends OptionalGrants {
  /** Namespaces that are lent; none: the whole member is there for the host. */
  readonly lend: readonly string[];
  /** What all pods of the host may use together in a namespace that is lent, such as `requests.cpu` to `32`. */
  readonly quota: Readonly<Record<string, string>>;
  /** Pods of hosts in a namespace that is lent are reached by each other only. */
  readonly networkPolicy: boolean;
}

/** Whom a host is in its members (manifests/member). */
export const MEMBER_ACCOUNT = { namespace: 'spillway-access', name: 'spillway-host' } as const;

/** What is applied in the member, in that order. `hostId`: whom namespaces are lent to. */
export function grantedObjects({ lend, quota, networkPolicy, ...optional }: Grant, hostId: string): ManifestObject[] {
  return [
    ...(optional.multiCluster ? manifestObjects(UPSTREAM_KINDS) : []),
    ...['member/read.yaml', 'member/guard.yaml', 'member/token.yaml'].flatMap(manifestObjects),
    ...(lend.length === 0
      ? manifestObjects(DEDICATED)
      : lend.flatMap((name) => lending(name, { quota, networkPolicy }, hostId))),
    ...OPTIONAL_GRANTS.filter((one) => optional[one]).flatMap((one) => manifestObjects(OPTIONAL[one])),
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
  'NetworkPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'Namespace',
];

/** All that manifests/member can have brought a member for that account, in the order in which it is taken away; no namespace that was lent. */
export function revocableObjects(lent: readonly string[]): ManifestObject[] {
  const files = manifestFiles('member').filter((file) => file !== LENDING && file !== NETWORK);
  return inOrder([...files.flatMap(manifestObjects), ...lent.flatMap(lendingObjects)]);
}

/** What lets a host use the whole member. */
export function dedicatedObjects(): ManifestObject[] {
  return inOrder(manifestObjects(DEDICATED));
}

/** What goes when one of them is taken back; kinds that are not of Spillway alone stay. */
export function optionalObjects(grant: OptionalGrant): ManifestObject[] {
  return inOrder(manifestObjects(OPTIONAL[grant]));
}

/** What lending adds to a namespace. */
export function lendingObjects(namespace: string): ManifestObject[] {
  return lending(namespace, { quota: { pods: '0' }, networkPolicy: true }, 'any').filter(
    ({ kind }) => kind !== 'Namespace',
  );
}

const LENDING = 'member/namespaced.yaml';
const NETWORK = 'member/network-policy.yaml';
const DEDICATED = 'member/dedicated.yaml';

function inOrder(objects: readonly ManifestObject[]): ManifestObject[] {
  return objects.toSorted((one, other) => REVOKED.indexOf(one.kind) - REVOKED.indexOf(other.kind));
}

/** manifests/member/namespaced.yaml, and what limits it, for another namespace than `shop`. */
function lending(
  namespace: string,
  { quota, networkPolicy }: Pick<Grant, 'quota' | 'networkPolicy'>,
  hostId: string,
): ManifestObject[] {
  const files = [LENDING, ...(networkPolicy ? [NETWORK] : [])];
  const objects = files.flatMap((file) => objectsIn(manifestText(file).replaceAll(/\bshop\b/g, namespace)));
  return objects.flatMap((object) => {
    if (object.kind === 'ResourceQuota') {
      return Object.keys(quota).length === 0 ? [] : [{ ...object, spec: { hard: quota } } as ManifestObject];
    }
    if (object.kind !== 'Namespace') return [object];
    const { metadata } = object;
    return [{ ...object, metadata: { ...metadata, labels: { ...metadata.labels, [ALLOW_HOST_LABEL]: hostId } } }];
  });
}
