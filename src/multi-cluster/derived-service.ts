import { createHash } from 'node:crypto';
import { HOST_LABEL, MEMBER_LABEL } from '../api/marks.ts';
import type { Service, ServicePort, ServiceSpec } from '../kube/service.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { DERIVED_SERVICE_ANNOTATION, IMPORT_NAME_LABEL, type ServiceImport } from '../kube/multicluster-v1.ts';
import { splitKey } from '../kube/object.ts';
import type { MergedService } from './merged-service.ts';

/** Where something that is imported stands. */
export interface ImportPlace {
  readonly hostId: string;
  /** Name of the MemberCluster; undefined: in the host itself. */
  readonly member: string | undefined;
  readonly namespace: string;
  readonly name: string;
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuv';
const NAME_LENGTH = 10;

/** The name of the Service that has the address of a ServiceImport, by the key that it has in the host. As other implementations call it. */
export function derivedName(hostKey: string): string {
  const bytes = createHash('sha256').update(hostKey).digest();
  let bits = '';
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0');
  const digits = Array.from(
    { length: NAME_LENGTH },
    (_, i) => ALPHABET[Number.parseInt(bits.slice(i * 5, i * 5 + 5), 2)],
  );
  return `derived-${digits.join('')}`;
}

export function importLabels({ hostId, member }: Pick<ImportPlace, 'hostId' | 'member'>): Record<string, string> {
  return { [HOST_LABEL]: hostId, ...(member === undefined ? {} : { [MEMBER_LABEL]: member }) };
}

/** A Service without selector that has the address of the imported one, and that node proxies lead to its endpoints. */
export function derivedService(hostKey: string, merged: MergedService, place: ImportPlace): Service {
  const { ipFamilies } = merged;
  const [family = 'IPv4'] = ipFamilies;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: derivedName(hostKey),
      namespace: place.namespace,
      labels: { ...importLabels(place), [IMPORT_NAME_LABEL]: splitKey(hostKey).name },
    },
    spec: {
      type: 'ClusterIP',
      ...(merged.type === 'Headless' ? { clusterIP: 'None' } : {}),
      ...(merged.ports.length === 0 ? {} : { ports: merged.ports.map((port): ServicePort => ({ ...port })) }),
      ...affinityOf(merged),
      ...(merged.internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy: merged.internalTrafficPolicy }),
      ipFamilies: [family],
      ipFamilyPolicy: ipFamilies.length > 1 ? 'PreferDualStack' : 'SingleStack',
    },
  };
}

function affinityOf({
  sessionAffinity,
  affinitySeconds,
}: MergedService): Pick<ServiceSpec, 'sessionAffinity' | 'sessionAffinityConfig'> {
  return {
    sessionAffinity,
    ...(affinitySeconds === undefined
      ? {}
      : { sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } } }),
  };
}

const isHeadless = ({ spec }: Service): boolean => spec?.clusterIP === 'None';

/** Whether the Service that is there says all that the wanted one says; what the API server adds is its own. */
export function isDerivedAsWanted(is: Service, shall: Service): boolean {
  const [{ spec: a = {} }, { spec: b = {} }] = [is, shall];
  const ports = ({ ports = [] }: ServiceSpec): unknown[] =>
    ports.map(({ name = '', port, protocol = 'TCP', appProtocol = '' }) => [name, port, protocol, appProtocol]);
  return (
    hasLabels(is, shall) &&
    isHeadless(is) === isHeadless(shall) &&
    a.type === b.type &&
    Object.keys(a.selector ?? {}).length === 0 &&
    jsonEqual(ports(a), ports(b)) &&
    (a.sessionAffinity ?? 'None') === b.sessionAffinity &&
    (b.sessionAffinity === 'None' || jsonEqual(a.sessionAffinityConfig, b.sessionAffinityConfig)) &&
    (b.internalTrafficPolicy === undefined || a.internalTrafficPolicy === b.internalTrafficPolicy) &&
    a.ipFamilyPolicy === b.ipFamilyPolicy &&
    a.ipFamilies?.[0] === b.ipFamilies?.[0]
  );
}

/** Whether the API server would refuse to turn the one into the other. */
export function needsAnew(is: Service, shall: Service): boolean {
  return isHeadless(is) !== isHeadless(shall) || is.spec?.ipFamilies?.[0] !== shall.spec?.ipFamilies?.[0];
}

/** The wanted Service as a replacement of the one that is there, whose addresses stay. */
export function replacingDerived(is: Service, shall: Service): Service {
  const { uid, resourceVersion } = is.metadata;
  const { clusterIP, clusterIPs, ipFamilies } = is.spec ?? {};
  const marks = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  return {
    ...shall,
    metadata: { ...shall.metadata, ...marks },
    spec: {
      ...shall.spec,
      ...(clusterIP === undefined ? {} : { clusterIP }),
      ...(clusterIPs === undefined ? {} : { clusterIPs }),
      ...(ipFamilies === undefined || shall.spec?.ipFamilyPolicy === 'SingleStack' ? {} : { ipFamilies }),
    },
  };
}

/** The ServiceImport of one cluster; `derived` as it is there, with the addresses that it got. */
export function serviceImport(
  hostKey: string,
  merged: MergedService,
  derived: Service,
  place: ImportPlace,
): ServiceImport {
  const {
    clusterIP,
    clusterIPs = clusterIP === undefined ? [] : [clusterIP],
    ipFamilies = merged.ipFamilies,
  } = derived.spec ?? {};
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: {
      name: place.name,
      namespace: place.namespace,
      labels: importLabels(place),
      annotations: { [DERIVED_SERVICE_ANNOTATION]: derivedName(hostKey) },
    },
    spec: {
      type: merged.type,
      ports: merged.ports,
      ips: merged.type === 'Headless' ? [] : clusterIPs,
      ipFamilies,
      ...affinityOf(merged),
      ...(merged.internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy: merged.internalTrafficPolicy }),
      ...(merged.trafficDistribution === undefined ? {} : { trafficDistribution: merged.trafficDistribution }),
    },
    status: { clusters: merged.clusters.map((cluster) => ({ cluster })), endpointSliceObjects: 'Present' },
  };
}

/** Whether it carries the labels of the wanted one. */
export function hasLabels(is: { metadata: Service['metadata'] }, shall: { metadata: Service['metadata'] }): boolean {
  return Object.entries(shall.metadata.labels ?? {}).every(([key, value]) => is.metadata.labels?.[key] === value);
}
