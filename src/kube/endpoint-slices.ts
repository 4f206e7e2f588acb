import { type Endpoint, type EndpointSlice, SERVICE_NAME_LABEL } from './discovery-v1.ts';
import { identifying, keyFor } from './object.ts';

/** The key of the Service that a slice belongs to, for indexes; none where it belongs to none. */
export function serviceKeyOf({ metadata: { namespace, labels } }: EndpointSlice): readonly string[] {
  const name = labels?.[SERVICE_NAME_LABEL];
  return name === undefined ? [] : [keyFor(namespace, name)];
}

/** What caches keep of a slice: where it leads, and of which Service. */
export function endpointSliceProjection({ metadata, addressType, endpoints, ports }: EndpointSlice): EndpointSlice {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return {
    metadata: { ...identifying(metadata), ...(name === undefined ? {} : { labels: { [SERVICE_NAME_LABEL]: name } }) },
    addressType,
    ...(endpoints === undefined ? {} : { endpoints }),
    ...(ports === undefined ? {} : { ports }),
  };
}

/** Ready, or at least serving while it ends, which is what proxies fall back to. */
export function takesTraffic(endpoint: Endpoint): boolean {
  return isReadyEndpoint(endpoint) || endpoint.conditions?.serving === true;
}

export function isReadyEndpoint({ conditions }: Endpoint): boolean {
  return conditions?.ready !== false;
}
