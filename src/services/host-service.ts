import type { Service, ServiceSpec } from '../kube/core-v1.ts';
import { PROXY_NAME_LABEL } from '../kube/discovery-v1.ts';
import { identifying, type KubeObject } from '../kube/object.ts';

/** What is read of a Service of the host: for the variables of pods, and for its copies. */
const KEPT = [
  'type',
  'clusterIP',
  'externalName',
  'ports',
  'selector',
  'sessionAffinity',
  'sessionAffinityConfig',
  'publishNotReadyAddresses',
  'internalTrafficPolicy',
  'trafficDistribution',
  'ipFamilies',
  'ipFamilyPolicy',
] as const satisfies readonly (keyof ServiceSpec)[];

/** A Service as caches keep it. */
export function hostServiceProjection(raw: KubeObject): Service {
  const { metadata, spec = {} } = raw as Service;
  const proxy = metadata.labels?.[PROXY_NAME_LABEL];
  return {
    metadata: { ...identifying(metadata), ...(proxy === undefined ? {} : { labels: { [PROXY_NAME_LABEL]: proxy } }) },
    spec: Object.fromEntries(KEPT.filter((field) => spec[field] !== undefined).map((field) => [field, spec[field]])),
  };
}
