import { HOST_LABEL } from '../api/marks.ts';
import type { Service, ServiceSpec } from '../kube/service.ts';
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

const KEPT_LABELS = [PROXY_NAME_LABEL, HOST_LABEL] as const;

/** A Service as caches keep it. */
export function hostServiceProjection(raw: KubeObject): Service {
  const { metadata, spec = {} } = raw as Service;
  const labels = Object.fromEntries(
    KEPT_LABELS.flatMap((key) => {
      const value = metadata.labels?.[key];
      return value === undefined ? [] : [[key, value]];
    }),
  );
  return {
    metadata: { ...identifying(metadata), ...(Object.keys(labels).length === 0 ? {} : { labels }) },
    spec: Object.fromEntries(KEPT.filter((field) => spec[field] !== undefined).map((field) => [field, spec[field]])),
  };
}
