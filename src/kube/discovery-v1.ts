import type { ObjectReference } from './core-v1.ts';
import type { KubeObject } from './object.ts';

/** The discovery.k8s.io/v1 shapes that we read. */
export interface EndpointPort {
  name?: string;
  protocol?: string;
  /** Absent: all ports. */
  port?: number;
  appProtocol?: string;
}

/** `ready` that is not said counts as true, `serving` as `ready`, `terminating` as false. */
export interface EndpointConditions {
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
}

export interface Endpoint {
  addresses: string[];
  conditions?: EndpointConditions;
  /** Name within a headless Service. */
  hostname?: string;
  targetRef?: ObjectReference;
  nodeName?: string;
  zone?: string;
  hints?: { forZones?: { name: string }[]; forNodes?: { name: string }[] };
}

export interface EndpointSlice extends KubeObject {
  addressType: string;
  endpoints?: Endpoint[];
  ports?: EndpointPort[];
}

/** EndpointSlices: the Service they belong to, in the same namespace. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
/** EndpointSlices: who writes them. */
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
/** EndpointSlices of headless Services, which node proxies leave alone. */
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';
/** Services and their EndpointSlices: another proxy than the usual one sees to them. */
export const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
