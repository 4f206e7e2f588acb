import type { IntOrString } from './core-v1.ts';
import type { KubeObject } from './object.ts';

export interface ServicePort {
  name?: string;
  port: number;
  protocol?: string;
  appProtocol?: string;
  targetPort?: IntOrString;
  nodePort?: number;
}
export interface ServiceSpec {
  type?: string;
  /** `None`: headless. */
  clusterIP?: string;
  clusterIPs?: string[];
  externalName?: string;
  ports?: ServicePort[];
  selector?: Record<string, string>;
  sessionAffinity?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  publishNotReadyAddresses?: boolean;
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
}
export interface Service extends KubeObject {
  spec?: ServiceSpec;
}
