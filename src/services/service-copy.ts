import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, MEMBER_LABEL } from '../api/marks.ts';
import { isSystemNamespace } from '../api/namespace-mapping.ts';
import type { Service, ServicePort, ServiceSpec } from '../kube/service.ts';
import { PROXY_NAME_LABEL } from '../kube/discovery-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { ObjectMeta } from '../kube/object.ts';

/** Where a copy is to be, and whose it is. */
export interface CopyPlace {
  readonly hostId: string;
  /** Name of the MemberCluster. */
  readonly member: string;
  /** In the member. */
  readonly namespace: string;
}

/** What every API server keeps as it was sent; whatever else a Service has is the member's own. */
const COMPARED = [
  'type',
  'externalName',
  'ports',
  'selector',
  'sessionAffinity',
  'sessionAffinityConfig',
  'publishNotReadyAddresses',
  'internalTrafficPolicy',
  'ipFamilyPolicy',
] as const satisfies readonly (keyof ServiceSpec)[];

/**
 * Whether the Service of the host is one that pods may need elsewhere: the API server and the cluster's own are not, nor are those
 * that Spillway made for what is imported, as each cluster has its own of these.
 */
export function isMirrored({ metadata: { namespace = '', name, labels } }: Service): boolean {
  if (labels?.[HOST_LABEL] !== undefined) return false;
  return !isSystemNamespace(namespace) && !(namespace === 'default' && name === 'kubernetes');
}

export function isHeadless({ spec }: Service): boolean {
  return spec?.clusterIP === 'None';
}

/**
 * The Service that stands in a member for one of the host. It has no selector, as its endpoints are told by the host, and a cluster IP
 * of the member's own. Ports of nodes and load balancers are for callers from outside, who call the host.
 */
export function serviceCopy(service: Service, place: CopyPlace): Service {
  const { namespace = '', name, labels } = service.metadata;
  const proxy = labels?.[PROXY_NAME_LABEL];
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace: place.namespace,
      labels: {
        [HOST_LABEL]: place.hostId,
        [MEMBER_LABEL]: place.member,
        ...(proxy === undefined ? {} : { [PROXY_NAME_LABEL]: proxy }),
      },
      annotations: { [HOST_NAMESPACE_ANNOTATION]: namespace, [HOST_NAME_ANNOTATION]: name },
    },
    spec: copiedSpec(service),
  };
}

function copiedSpec(service: Service): ServiceSpec {
  const { type, externalName, ports, sessionAffinity, sessionAffinityConfig } = service.spec ?? {};
  const { publishNotReadyAddresses, internalTrafficPolicy, ipFamilies, ipFamilyPolicy } = service.spec ?? {};
  const common: ServiceSpec = {
    ...(ports === undefined || ports.length === 0 ? {} : { ports: ports.map(copiedPort) }),
    ...(sessionAffinity === undefined ? {} : { sessionAffinity }),
    ...(sessionAffinityConfig === undefined ? {} : { sessionAffinityConfig }),
    ...(publishNotReadyAddresses === true ? { publishNotReadyAddresses } : {}),
  };
  if (type === 'ExternalName') {
    return { type, ...(externalName === undefined ? {} : { externalName }), ...common };
  }
  // A second family is the API server's to add, in members that have one.
  const families = ipFamilyPolicy === 'PreferDualStack' ? ipFamilies?.slice(0, 1) : ipFamilies;
  return {
    type: 'ClusterIP',
    ...(isHeadless(service) ? { clusterIP: 'None' } : {}),
    ...common,
    ...(internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy }),
    ...(families === undefined ? {} : { ipFamilies: families }),
    ...(ipFamilyPolicy === undefined ? {} : { ipFamilyPolicy }),
  };
}

function copiedPort(port: ServicePort): ServicePort {
  const { nodePort: _, ...copied } = port;
  return copied;
}

/** Whether the copy that is there says all that the wanted one says. */
export function isAsWanted(copy: Service, wanted: Service): boolean {
  const [is, shall] = [copy.spec ?? {}, wanted.spec ?? {}];
  return (
    hasMarks(copy.metadata, wanted.metadata) &&
    copy.metadata.labels?.[PROXY_NAME_LABEL] === wanted.metadata.labels?.[PROXY_NAME_LABEL] &&
    COMPARED.every((field) => jsonEqual(plain(is[field]), plain(shall[field]))) &&
    isHeadless(copy) === isHeadless(wanted) &&
    (shall.ipFamilies ?? []).every((family, i) => is.ipFamilies?.[i] === family)
  );
}

/** What of a copy {@link isAsWanted} goes by: whatever others add to it besides is theirs. */
export function judgedOf({ metadata: { labels, annotations }, spec = {} }: Service): unknown {
  return [
    [HOST_LABEL, MEMBER_LABEL, PROXY_NAME_LABEL].map((key) => labels?.[key] ?? null),
    [HOST_NAMESPACE_ANNOTATION, HOST_NAME_ANNOTATION].map((key) => annotations?.[key] ?? null),
    COMPARED.map((field) => plain(spec[field])),
    spec.clusterIP === 'None',
    spec.ipFamilies ?? [],
  ];
}

export function hasMarks(is: ObjectMeta, shall: ObjectMeta): boolean {
  return (
    [HOST_LABEL, MEMBER_LABEL].every((key) => is.labels?.[key] === shall.labels?.[key]) &&
    [HOST_NAMESPACE_ANNOTATION, HOST_NAME_ANNOTATION].every((key) => is.annotations?.[key] === shall.annotations?.[key])
  );
}

/** Nothing, an empty list and `false` are the same to the API server. */
function plain(value: unknown): unknown {
  const isEmpty =
    value === undefined ||
    value === false ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
  return isEmpty ? null : value;
}

/** Whether the API server would refuse to turn the one into the other, so that it has to be made anew. */
export function needsAnew(copy: Service, wanted: Service): boolean {
  const hasAddress = ({ spec }: Service): boolean => spec?.type !== 'ExternalName';
  if (!hasAddress(copy) || !hasAddress(wanted)) return false;
  const [is] = copy.spec?.ipFamilies ?? [];
  const [shall] = wanted.spec?.ipFamilies ?? [];
  return isHeadless(copy) !== isHeadless(wanted) || (is !== undefined && shall !== undefined && is !== shall);
}

/** The wanted Service as a replacement of the copy: its addresses stay. */
export function replacing(copy: Service, wanted: Service): Service {
  const { uid, resourceVersion } = copy.metadata;
  const { clusterIP, clusterIPs, ipFamilies, type } = copy.spec ?? {};
  const keeps = type !== 'ExternalName' && wanted.spec?.type !== 'ExternalName';
  return {
    ...wanted,
    metadata: {
      ...wanted.metadata,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    spec: {
      ...wanted.spec,
      ...(keeps && clusterIP !== undefined ? { clusterIP } : {}),
      ...(keeps && clusterIPs !== undefined ? { clusterIPs } : {}),
      ...(keeps && ipFamilies !== undefined ? { ipFamilies } : {}),
    },
  };
}
