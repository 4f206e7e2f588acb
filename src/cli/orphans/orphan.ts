import { HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, HOST_UID_ANNOTATION, UID_LABEL } from '../../api/marks.ts';
import type { MemberVolume } from '../../api/member-volume.ts';
import { MANAGED_BY_LABEL } from '../../kube/discovery-v1.ts';
import { SERVICE_IMPORTS } from '../../kube/multicluster-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  SECRETS,
  SERVICES,
} from '../../kube/resource.ts';

/** What Spillway makes in members, in the order in which it may go: what refers to others first. */
export const MADE_THERE: readonly Resource[] = [
  PODS,
  POD_DISRUPTION_BUDGETS,
  SERVICE_IMPORTS,
  SERVICES,
  ENDPOINT_SLICES,
  CONFIG_MAPS,
  SECRETS,
  PERSISTENT_VOLUME_CLAIMS,
  NAMESPACES,
];

const OF_KUBERNETES = new Set(['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']);

/** An object of the member with the mark of this host, and without what it would be there for. Field names are for programs, too. */
export interface Orphan {
  readonly kind: string;
  readonly namespace: string | null;
  readonly name: string;
  readonly uid: string;
  /** The object of the host that it stood for, `namespace/name`; of a namespace its name. */
  readonly of: string | null;
  readonly since: string | null;
  readonly why: string;
  /** The host has, or may have, the pod that it runs for, or a volume that stands for its data, and would lose that. */
  readonly needed: boolean;
}

/** What the host has. */
export interface HostSide {
  /** Names of the MemberClusters that stand for the member. */
  readonly members: readonly string[];
  /** Of all its pods. */
  readonly podUids: ReadonlySet<string>;
  /** Those that stand for data in the member; undefined: not known. */
  readonly volumes: readonly MemberVolume[] | undefined;
}

/** Undefined: it is there for something, or whoever acts for the member knows better. */
export function orphanOf(resource: Resource, object: KubeObject, host: HostSide): Orphan | undefined {
  const { name, namespace, uid = '', labels = {}, annotations = {}, creationTimestamp } = object.metadata;
  // Kubernetes makes them for our Services, and gives them their labels.
  if (resource === ENDPOINT_SLICES && OF_KUBERNETES.has(labels[MANAGED_BY_LABEL] ?? '')) return undefined;
  const isForPod = resource === PODS && host.podUids.has(labels[UID_LABEL] ?? '');
  const isOfMember = host.members.length > 0;
  if (isOfMember && (resource !== PODS || isForPod)) return undefined;
  const [ofNamespace, ofName] = [annotations[HOST_NAMESPACE_ANNOTATION], annotations[HOST_NAME_ANNOTATION]];
  const though = isForPod ? 'though the pod that it runs for is there' : dataIn(resource, object, host);
  const lost = 'no MemberCluster stands for this cluster';
  return {
    kind: resource.kind,
    namespace: namespace ?? null,
    name,
    uid,
    of: ofNamespace === undefined ? null : ofName === undefined ? ofNamespace : `${ofNamespace}/${ofName}`,
    since: creationTimestamp ?? null,
    why: isOfMember ? 'the pod that it runs for is gone' : though === undefined ? lost : `${lost}, ${though}`,
    needed: though !== undefined,
  };
}

/** Which volume of the host stands for the data of a claim; undefined: none, or it is no claim. Either mark of the claim will do. */
function dataIn(resource: Resource, { metadata }: KubeObject, { volumes }: HostSide): string | undefined {
  if (resource !== PERSISTENT_VOLUME_CLAIMS) return undefined;
  if (volumes === undefined)
    return 'and a volume here may stand for its data, as you may not list persistentvolumes here';
  const of = metadata.annotations?.[HOST_UID_ANNOTATION];
  const volume = volumes.find((one) => one.for.uid === of || one.claimUid === metadata.uid);
  if (volume === undefined) return undefined;
  const { name, member, for: claim } = volume;
  return `though volume ${name} here stands for its data: join it again as ${member}, or first delete claim ${claim.namespace}/${claim.name} and that volume here`;
}
