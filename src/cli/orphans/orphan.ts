import { HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, UID_LABEL } from '../../api/marks.ts';
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
  /** The host has the pod that it runs for, and would lose it. */
  readonly needed: boolean;
}

/** What the host has: names of the MemberClusters that stand for the member, and the UIDs of all its pods. */
export interface HostSide {
  readonly members: readonly string[];
  readonly podUids: ReadonlySet<string>;
}

/** Undefined: it is there for something, or whoever acts for the member knows better. */
export function orphanOf(resource: Resource, object: KubeObject, { members, podUids }: HostSide): Orphan | undefined {
  const { name, namespace, uid = '', labels = {}, annotations = {}, creationTimestamp } = object.metadata;
  // Kubernetes makes them for our Services, and gives them their labels.
  if (resource === ENDPOINT_SLICES && OF_KUBERNETES.has(labels[MANAGED_BY_LABEL] ?? '')) return undefined;
  const isForPod = resource === PODS && podUids.has(labels[UID_LABEL] ?? '');
  if (members.length > 0 && (resource !== PODS || isForPod)) return undefined;
  const [ofNamespace, ofName] = [annotations[HOST_NAMESPACE_ANNOTATION], annotations[HOST_NAME_ANNOTATION]];
  return {
    kind: resource.kind,
    namespace: namespace ?? null,
    name,
    uid,
    of: ofNamespace === undefined ? null : ofName === undefined ? ofNamespace : `${ofNamespace}/${ofName}`,
    since: creationTimestamp ?? null,
    why: whyOf(members.length > 0, isForPod),
    needed: isForPod,
  };
}

function whyOf(isMember: boolean, isForPod: boolean): string {
  if (isMember) return 'the pod that it runs for is gone';
  const lost = 'no MemberCluster stands for this cluster';
  return isForPod ? `${lost}, though the pod that it runs for is there` : lost;
}
