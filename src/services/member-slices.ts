import { createHash } from 'node:crypto';
import { GROUP, HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, MEMBER_LABEL } from '../api/marks.ts';
import type { Service } from '../kube/service.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  HEADLESS_LABEL,
  MANAGED_BY_LABEL,
  PROXY_NAME_LABEL,
  SERVICE_NAME_LABEL,
} from '../kube/discovery-v1.ts';
import { isReadyEndpoint, takesTraffic } from '../kube/endpoint-slices.ts';
import { type CopyPlace, isHeadless } from './service-copy.ts';
import { withHints } from './traffic-hints.ts';

/** Longest name of an object. */
const MAX_NAME = 253;
const HASH_LENGTH = 10;

/** The copy in the member of a host pod. */
export interface OwnPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The member's node. */
  readonly nodeName?: string | undefined;
  /** Of that node. */
  readonly zone?: string | undefined;
}

export interface SliceFacts {
  /** Of the host. */
  readonly service: Service;
  /** What the host knows of its endpoints, whoever wrote it. */
  readonly slices: readonly EndpointSlice[];
  /** The copy in this member of a host pod, by that pod's UID. */
  readonly own: (hostUid: string) => OwnPod | undefined;
  readonly place: CopyPlace;
}

/**
 * The EndpointSlices of a Service in a member whose pods reach the pods of all clusters: one for each of the host's, with its endpoints
 * as they are there. Endpoints that take no traffic, now or while they end, are left out, and so are slices that would be empty.
 * Names of nodes are told of this member's own only: another cluster may have nodes of the same names.
 *
 * With `trafficDistribution` the member is what a zone is to Kubernetes: as long as it has ready endpoints of its own for a port and family, there
 * are no others, and zones and nodes count among those. Not for headless Services, whose endpoints have names.
 */
export function memberSlices({ service, slices, own, place }: SliceFacts): EndpointSlice[] {
  const told = slices.map((slice) => ({
    slice,
    endpoints: (slice.endpoints ?? []).filter(takesTraffic).map((endpoint) => inMember(endpoint, own)),
  }));
  const isOwn = ({ targetRef }: Endpoint): boolean => targetRef !== undefined;
  const distribution = isHeadless(service) ? undefined : service.spec?.trafficDistribution;
  const served = new Set(
    told
      .filter(({ endpoints }) => endpoints.some((one) => isOwn(one) && isReadyEndpoint(one)))
      .flatMap(({ slice }) => portsOf(slice)),
  );
  const chosen = told.map((one) => {
    const prefers = distribution !== undefined && portsOf(one.slice).every((port) => served.has(port));
    return prefers
      ? { ...one, endpoints: one.endpoints.filter(isOwn).map((endpoint) => withHints(endpoint, distribution)) }
      : one;
  });
  return chosen
    .filter(({ endpoints }) => endpoints.length > 0)
    .map(({ slice, endpoints }) =>
      renderSlice(service, place, {
        source: slice.metadata.name,
        addressType: slice.addressType,
        ports: slice.ports,
        endpoints,
      }),
    );
}

/** What proxies choose endpoints for, each by itself: a port by its name and protocol, in one family. */
function portsOf({ addressType, ports }: EndpointSlice): string[] {
  if (ports === undefined || ports.length === 0) return [addressType];
  return ports.map(({ name = '', protocol = 'TCP' }) => `${addressType} ${protocol} ${name}`);
}

function inMember(endpoint: Endpoint, own: SliceFacts['own']): Endpoint {
  const { addresses, conditions, hostname, zone, targetRef } = endpoint;
  const pod = targetRef?.kind === 'Pod' && targetRef.uid !== undefined ? own(targetRef.uid) : undefined;
  const common = {
    addresses,
    ...(conditions === undefined ? {} : { conditions }),
    ...(hostname === undefined ? {} : { hostname }),
  };
  return pod === undefined ? { ...common, ...(zone === undefined ? {} : { zone }) } : { ...common, ...ownParts(pod) };
}

/** What the member's proxies know an endpoint of their own cluster by. */
export function ownParts({ namespace, name, uid, nodeName, zone }: OwnPod): Partial<Endpoint> {
  return {
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
  };
}

/** `source`: what tells the slice from others of its Service, and stays the same. */
export function renderSlice(
  service: Service,
  { hostId, member, namespace }: CopyPlace,
  body: { source: string; addressType: string; endpoints: Endpoint[]; ports: EndpointPort[] | undefined },
): EndpointSlice {
  const { namespace: hostNamespace = '', name, labels } = service.metadata;
  const { source, addressType, endpoints, ports = [] } = body;
  const proxy = labels?.[PROXY_NAME_LABEL];
  const hash = createHash('sha256').update(`${hostId}/${hostNamespace}/${name}/${source}`).digest('hex');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name.slice(0, MAX_NAME - HASH_LENGTH - 1)}-${hash.slice(0, HASH_LENGTH)}`,
      namespace,
      labels: {
        [SERVICE_NAME_LABEL]: name,
        [MANAGED_BY_LABEL]: GROUP,
        ...(isHeadless(service) ? { [HEADLESS_LABEL]: '' } : {}),
        ...(proxy === undefined ? {} : { [PROXY_NAME_LABEL]: proxy }),
        [HOST_LABEL]: hostId,
        [MEMBER_LABEL]: member,
      },
      annotations: { [HOST_NAMESPACE_ANNOTATION]: hostNamespace, [HOST_NAME_ANNOTATION]: name },
    },
    addressType,
    endpoints,
    ports,
  };
}
