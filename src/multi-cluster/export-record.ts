import { z } from 'zod';
import { GROUP, HOST_LABEL } from '../api/marks.ts';
import type { Service } from '../kube/service.ts';
import { isDnsLabel } from '../kube/dns-label.ts';
import type { ServiceExport } from '../kube/multicluster-v1.ts';

/** Ports of a Service that is exported, at most: what a cluster exports is kept in an annotation of the host. */
const MAX_PORTS = 100;
/** EndpointSlices of a Service that is exported, at most. */
const MAX_SLICES = 100;
/** Text, at most so long: what all clusters say of a name has to fit into one object. */
const text = (max: number) => z.string().max(max);
/** As API servers take them: what one of them refuses would keep the name out of all clusters. */
const portName = z.string().refine((name) => name === '' || isDnsLabel(name));
const appProtocol = z
  .string()
  .max(316)
  .regex(
    /^(?:[a-z\d](?:[-a-z\d]*[a-z\d])?(?:\.[a-z\d](?:[-a-z\d]*[a-z\d])?)*\/)?[A-Za-z\d](?:[-\w.]{0,61}[A-Za-z\d])?$/,
  );
const record = z
  .object({
    /** When it was exported, as the exporting cluster says, RFC 3339. */
    since: z.iso.datetime({ offset: true }),
    type: z.enum(['ClusterSetIP', 'Headless']),
    ports: z
      .array(
        z.object({
          name: portName.exactOptional(),
          protocol: z.enum(['TCP', 'UDP', 'SCTP']).exactOptional(),
          appProtocol: appProtocol.exactOptional(),
          port: z.int().min(1).max(65_535),
        }),
      )
      .max(MAX_PORTS),
    ipFamilies: z.array(z.enum(['IPv4', 'IPv6'])).max(2),
    sessionAffinity: z.enum(['None', 'ClientIP']),
    /** How long a client is led to the same pod, in seconds. */
    affinitySeconds: z.int().min(1).max(86_400).exactOptional(),
    internalTrafficPolicy: z.enum(['Cluster', 'Local']).exactOptional(),
    /** Not enforced by any kind that is made of it. */
    trafficDistribution: text(63).exactOptional(),
  })
  .refine(({ sessionAffinity, affinitySeconds }) => sessionAffinity === 'ClientIP' || affinitySeconds === undefined)
  .refine(({ type, ports }) => type === 'Headless' || ports.length > 0);

/** What other clusters have to know of a Service that one cluster exports, besides its endpoints. */
export type ExportRecord = z.output<typeof record>;

/** Why a Service is not exported: a reason of KEP-1645 for condition `Valid`, or with `failed` for condition `Ready`. */
export type ExportRefusal = { valid: 'NoService' | 'InvalidServiceType'; message: string } | { failed: string };

/** What one cluster exports under a name; `slices`: how many EndpointSlices it leads to. The Service is one of the cluster's own: copies that Spillway made are none. */
export function judgeExport(
  { metadata }: ServiceExport,
  service: Service | undefined,
  slices = 0,
): { record: ExportRecord } | { refusal: ExportRefusal } {
  const refuse = (refusal: ExportRefusal) => ({ refusal });
  if (service === undefined || service.metadata.labels?.[HOST_LABEL] !== undefined) {
    const message = `This cluster has no Service ${metadata.name} of its own in the namespace.`;
    return refuse({ valid: 'NoService', message });
  }
  const { spec = {} } = service;
  if (slices > MAX_SLICES)
    return refuse({
      failed: `The Service has ${slices} EndpointSlices. One with more than ${MAX_SLICES} is not exported.`,
    });
  if (spec.type === 'ExternalName') {
    return refuse({ valid: 'InvalidServiceType', message: 'A Service of type ExternalName cannot be exported.' });
  }
  const { clusterIP, ports = [], ipFamilies, sessionAffinity = 'None', sessionAffinityConfig } = spec;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds;
  const parsed = record.safeParse({
    since: metadata.creationTimestamp,
    type: clusterIP === 'None' ? 'Headless' : 'ClusterSetIP',
    ports: ports.map(({ name, protocol, appProtocol, port }) => ({
      ...(name === undefined ? {} : { name }),
      ...(protocol === undefined ? {} : { protocol }),
      ...(appProtocol === undefined ? {} : { appProtocol }),
      port,
    })),
    ipFamilies: ipFamilies ?? ['IPv4'],
    sessionAffinity,
    ...(seconds === undefined ? {} : { affinitySeconds: seconds }),
    ...(spec.internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy: spec.internalTrafficPolicy }),
    ...(spec.trafficDistribution === undefined ? {} : { trafficDistribution: spec.trafficDistribution }),
  });
  if (parsed.success) return { record: parsed.data };
  return refuse({
    failed: `The Service cannot be exported: it has more than ${MAX_PORTS} ports, or a field that API servers do not take.`,
  });
}

const PREFIX = `${GROUP}/export.`;

/** The annotation of the host's ServiceImport that keeps what a cluster exports. */
export function recordAnnotation(cluster: string): string {
  return `${PREFIX}${cluster}`;
}

/** What stands in the annotations of the host's ServiceImport, by cluster. What is unreadable is none. */
export function recordsIn(annotations: Record<string, string> | undefined): Map<string, ExportRecord> {
  const found = new Map<string, ExportRecord>();
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (!key.startsWith(PREFIX)) continue;
    const parsed = record.safeParse(jsonOf(value));
    if (parsed.success) found.set(key.slice(PREFIX.length), parsed.data);
  }
  return found;
}

/** The clusters that have such an annotation, readable or not. */
export function clustersIn(annotations: Record<string, string> | undefined): string[] {
  return Object.keys(annotations ?? {}).flatMap((key) => (key.startsWith(PREFIX) ? key.slice(PREFIX.length) : []));
}

function jsonOf(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
