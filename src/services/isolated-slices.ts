import type { Pod } from '../kube/core-v1.ts';
import type { Service, ServicePort } from '../kube/service.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../kube/discovery-v1.ts';
import { isFinished } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import { isEndpointAddress } from '../kube/endpoint-address.ts';
import { fnv32a } from '../kube/fnv.ts';
import { type OwnPod, ownParts, renderSlice } from './member-slices.ts';
import { type CopyPlace, isHeadless } from './service-copy.ts';
import { withHints } from './traffic-hints.ts';

/** Endpoints of a slice, as the host's own controller has them by default. */
const IN_SLICE = 100;

/** A pod of the host that is in the member. */
export interface IsolatedPod {
  readonly host: Pod;
  readonly copy: Pod;
  readonly own: OwnPod;
}

interface Group {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly ports: EndpointPort[];
  readonly endpoints: { uid: string; endpoint: Endpoint }[];
}

/**
 * The EndpointSlices of a Service in a member whose pods can be reached from nowhere else: the pods there that the Service selects, at
 * the addresses that they have there. The host's own slices know none of them, as it is told no addresses; so they follow from
 * the selector here, by the rules of Kubernetes' EndpointSlice controller. Everything else is left out.
 */
export function isolatedSlices(service: Service, pods: Iterable<IsolatedPod>, place: CopyPlace): EndpointSlice[] {
  const groups = new Map<string, Group>();
  for (const pod of pods) {
    if (!isSelected(service, pod.host) || isFinished(pod.host) || isFinished(pod.copy)) continue;
    const ports = (service.spec?.ports ?? []).flatMap((port) => endpointPort(port, pod.host));
    if (ports.length === 0 && (service.spec?.ports ?? []).length > 0) continue;
    for (const addressType of ['IPv4', 'IPv6'] as const) {
      const address = addressOf(pod.copy, addressType);
      const families = service.spec?.ipFamilies;
      if (address === undefined || (families !== undefined && !families.includes(addressType))) continue;
      const key = JSON.stringify([addressType, ports]);
      const group: Group = groups.get(key) ?? { addressType, ports, endpoints: [] };
      groups.set(key, group);
      const endpoint = endpointOf(service, pod, address);
      if (endpoint !== undefined) group.endpoints.push({ uid: pod.host.metadata.uid ?? '', endpoint });
    }
  }
  return [...groups].flatMap(([key, group]) => slicesOf(service, place, key, group));
}

function isSelected({ metadata, spec }: Service, { metadata: { namespace, labels } }: Pod): boolean {
  const selector = Object.entries(spec?.selector ?? {});
  return (
    selector.length > 0 && namespace === metadata.namespace && selector.every(([key, value]) => labels?.[key] === value)
  );
}

/** By the rules of FindPort: a name is looked up among the ports of the pod's containers and sidecars. */
function endpointPort({ name, protocol, port, targetPort, appProtocol }: ServicePort, { spec }: Pod): EndpointPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const named = [...spec.containers, ...sidecars]
    .flatMap(({ ports = [] }) => ports)
    .find((one) => one.name === targetPort && (one.protocol ?? 'TCP') === (protocol ?? 'TCP'));
  const number = typeof targetPort === 'string' ? named?.containerPort : targetPort === 0 ? port : (targetPort ?? port);
  if (number === undefined) return [];
  return [
    {
      name: name ?? '',
      port: number,
      protocol: protocol ?? 'TCP',
      ...(appProtocol === undefined ? {} : { appProtocol }),
    },
  ];
}

function addressOf({ status }: Pod, family: 'IPv4' | 'IPv6'): string | undefined {
  const isOf = (ip: string): boolean => ip.includes(':') === (family === 'IPv6');
  return [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)].find(
    (ip): ip is string => ip !== undefined && isEndpointAddress(ip) && isOf(ip),
  );
}

/** Undefined for one that takes no traffic. */
function endpointOf(service: Service, { host, own }: IsolatedPod, address: string): Endpoint | undefined {
  const serving = isReady(host);
  const terminating = host.metadata.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  if (!ready && !serving) return undefined;
  const { hostname, subdomain } = host.spec;
  const isNamed = hostname !== undefined && hostname !== '' && subdomain === service.metadata.name;
  const endpoint = {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(isNamed ? { hostname } : {}),
    ...ownParts(own),
  };
  return isHeadless(service) ? endpoint : withHints(endpoint, service.spec?.trafficDistribution);
}

/** Each pod stays in its slice when others come and go, as long as there are not many more or fewer. */
function slicesOf(service: Service, place: CopyPlace, key: string, group: Group): EndpointSlice[] {
  const { addressType, ports, endpoints } = group;
  let count = 1;
  while (endpoints.length > count * IN_SLICE) count *= 2;
  const parts = new Map<number, Endpoint[]>();
  for (const { uid, endpoint } of endpoints.toSorted((a, b) => (a.uid < b.uid ? -1 : 1))) {
    const index = fnv32a(uid) % count;
    parts.set(index, [...(parts.get(index) ?? []), endpoint]);
  }
  return [...parts].map(([index, some]) =>
    renderSlice(service, place, {
      source: `${place.member} ${key} ${count}/${index}`,
      addressType,
      ports,
      endpoints: some,
    }),
  );
}
