import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Service, ServicePort } from '../kube/service.ts';

export interface ServiceVariable {
  readonly name: string;
  readonly value: string;
}

/**
 * The environment variables a kubelet of the host would set for the services a pod may use: those of its own
 * namespace unless `enableServiceLinks` is false, and always `kubernetes` of namespace default (`master`). Names and
 * values are those of kubelet's envvars.FromServices, in order of service name. Services without a cluster IP (headless
 * ones, ExternalName) have none.
 */
export function serviceEnvFor(pod: Pod, services: Iterable<Service>, master?: Service): ServiceVariable[] {
  const byName = new Map<string, Service>();
  if (master !== undefined) byName.set(master.metadata.name, master);
  if (pod.spec.enableServiceLinks !== false) {
    for (const service of services) {
      if (hasClusterIp(service)) byName.set(service.metadata.name, service);
    }
  }
  const values = new Map<string, string>();
  for (const [, service] of [...byName].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const { name, value } of variablesOf(service)) values.set(name, value);
  }
  return Array.from(values, ([name, value]) => ({ name, value }));
}

/** The name that the API server of a cluster has in every namespace. */
const API_SERVER = 'kubernetes';

/**
 * Service variables of a pod (see serviceEnvFor), with those of the API server that its tokens are for: the host's at an
 * address that the member reaches, or none, so that the member's kubelet sets its own.
 */
export function serviceEnvInMode(
  hostPod: Pod,
  mode: ServiceAccountMode,
  services: readonly Service[],
  master: Service | undefined,
  apiServer: { host: string; port: number } | undefined,
): ServiceVariable[] {
  if (mode === 'None') return serviceEnvFor(hostPod, services, master);
  const others = services.filter(({ metadata }) => metadata.namespace !== 'default' || metadata.name !== API_SERVER);
  if (mode === 'Member' || apiServer === undefined) return serviceEnvFor(hostPod, others);
  const { host, port } = apiServer;
  return serviceEnvFor(hostPod, others, {
    metadata: { name: API_SERVER, namespace: 'default' },
    spec: { clusterIP: host, ports: [{ name: 'https', port, protocol: 'TCP' }] },
  });
}

function hasClusterIp(service: Service): boolean {
  const ip = service.spec?.clusterIP;
  return ip !== undefined && ip !== '' && ip !== 'None';
}

function variablesOf(service: Service): ServiceVariable[] {
  const ip = service.spec?.clusterIP ?? '';
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (!hasClusterIp(service) || first === undefined) return [];
  const prefix = variableName(service.metadata.name);
  const servicePort = `${prefix}_SERVICE_PORT`;
  return [
    { name: `${prefix}_SERVICE_HOST`, value: ip },
    { name: servicePort, value: String(first.port) },
    ...ports
      .filter(({ name }) => name !== undefined && name !== '')
      .map(({ name, port }) => ({ name: `${servicePort}_${variableName(name ?? '')}`, value: String(port) })),
    { name: `${prefix}_PORT`, value: url(ip, first) },
    ...ports.flatMap((port) => linkVariables(prefix, ip, port)),
  ];
}

/** What Docker's container links used to set. */
function linkVariables(prefix: string, ip: string, port: ServicePort): ServiceVariable[] {
  const protocol = protocolOf(port);
  const name = `${prefix}_PORT_${String(port.port)}_${protocol.toUpperCase()}`;
  return [
    { name, value: url(ip, port) },
    { name: `${name}_PROTO`, value: protocol.toLowerCase() },
    { name: `${name}_PORT`, value: String(port.port) },
    { name: `${name}_ADDR`, value: ip },
  ];
}

function protocolOf(port: ServicePort): string {
  return port.protocol === undefined || port.protocol === '' ? 'TCP' : port.protocol;
}

function url(ip: string, port: ServicePort): string {
  const address = ip.includes(':') ? `[${ip}]` : ip;
  return `${protocolOf(port).toLowerCase()}://${address}:${String(port.port)}`;
}

function variableName(name: string): string {
  return name.replaceAll('-', '_').toUpperCase();
}
