import type { Endpoint } from '../kube/discovery-v1.ts';
import { isReadyEndpoint } from '../kube/endpoint-slices.ts';

/**
 * Whom an endpoint is for, as Kubernetes' controller says it: callers of its own zone and, with `PreferSameNode`, of its own node.
 * Proxies pass over hints that not all ready endpoints of a port have, and members too old for those of nodes leave them out.
 */
export function withHints(endpoint: Endpoint, trafficDistribution: string | undefined): Endpoint {
  if (trafficDistribution === undefined || !isReadyEndpoint(endpoint)) return endpoint;
  const { zone, nodeName } = endpoint;
  const forNode = trafficDistribution === 'PreferSameNode' ? nodeName : undefined;
  if (zone === undefined && forNode === undefined) return endpoint;
  const hints = {
    ...(zone === undefined ? {} : { forZones: [{ name: zone }] }),
    ...(forNode === undefined ? {} : { forNodes: [{ name: forNode }] }),
  };
  return { ...endpoint, hints };
}
