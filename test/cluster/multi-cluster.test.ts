import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import type { Service } from '../../src/kube/service.ts';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import type { ServiceExport, ServiceImport } from '../../src/kube/multicluster-v1.ts';
import { describeWrite, type Fields, read, writesOf } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Services that a host and two members export to each other. Endpoints are written by hand: nobody has to run for them. */
let topology: Topology;
let host: Cluster;
let east: Cluster;
let west: Cluster;
const NS = 'shop';

beforeAll(async () => {
  const member = (name: string) => ({
    name,
    kwok: { nodes: 1, prefix: name },
    options: {
      exchange: true,
      spec: { probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 2 } },
    },
  });
  topology = await startTopology({ members: [member('east'), member('west')] });
  ({ host } = topology);
  east = topology.member('east').cluster;
  west = topology.member('west').cluster;
  const labels = { 'spillway.dev/allow-host': 'any' };
  for (const cluster of [host, east, west])
    await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NS, labels } }]);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

const inNamespace = (plural: string, name = ''): string =>
  `/apis/multicluster.x-k8s.io/v1beta1/namespaces/${NS}/${plural}${name === '' ? '' : `/${name}`}`;
const servicePath = (name: string): string => `/api/v1/namespaces/${NS}/services/${name}`;

async function makeService(cluster: Cluster, name: string, address: string, spec: Fields): Promise<void> {
  await cluster.apply([
    { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: NS }, spec },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-by-hand`, namespace: NS, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: ((spec['ports'] ?? []) as Fields[]).map((port) => ({ name: port['name'], port: 8080 })),
      endpoints: [{ addresses: [address], hostname: `${name}-0`, nodeName: 'some' }],
    },
  ]);
}

async function exportService(cluster: Cluster, name: string): Promise<void> {
  await cluster.apply([
    { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata: { name, namespace: NS } },
  ]);
}

async function untilImport(
  cluster: Cluster,
  name: string,
  isRight: (found: ServiceImport | undefined) => boolean,
): Promise<ServiceImport | undefined> {
  let seen: ServiceImport | undefined;
  await until(
    `ServiceImport ${name} of ${cluster.name}`,
    async () => {
      seen = await read<ServiceImport>(cluster, inNamespace('serviceimports', name));
      return isRight(seen);
    },
    { intervalMs: 50 },
  ).catch((error: unknown) => {
    throw new Error(`it is ${JSON.stringify(seen)}`, { cause: error });
  });
  return seen;
}

/** Its status is written after its spec. */
const isTold = ({ status }: ServiceImport, clusters: number): boolean => status?.clusters?.length === clusters;

/** Where callers in a cluster are led by the Service behind an import, as `address <- cluster`. */
async function untilLed(cluster: Cluster, name: string, wanted: readonly string[]): Promise<EndpointSlice[]> {
  let items: EndpointSlice[] = [];
  let seen: string[] = [];
  await until(
    `endpoints of ${name} in ${cluster.name}`,
    async () => {
      const found = await read<ServiceImport>(cluster, inNamespace('serviceimports', name));
      const derived = found?.metadata.annotations?.['multicluster.kubernetes.io/derived-service'] ?? 'none';
      const query = `?labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${derived}`)}`;
      const path = `/apis/discovery.k8s.io/v1/namespaces/${NS}/endpointslices${query}`;
      ({ items } = (await cluster.api.call('GET', path)) as { items: EndpointSlice[] });
      seen = items.flatMap(({ metadata, endpoints }) =>
        (endpoints ?? []).flatMap(({ addresses }) =>
          addresses.map((one) => `${one} <- ${metadata.labels?.['multicluster.kubernetes.io/source-cluster'] ?? ''}`),
        ),
      );
      return JSON.stringify(seen.toSorted()) === JSON.stringify([...wanted].toSorted());
    },
    { intervalMs: 50 },
  ).catch((error: unknown) => {
    throw new Error(`it is led to ${JSON.stringify(seen)}`, { cause: error });
  });
  return items;
}

async function untilTold(cluster: Cluster, name: string, wanted: readonly string[]): Promise<void> {
  let seen: string[] = [];
  await until(
    `the conditions of ServiceExport ${name} of ${cluster.name}`,
    async () => {
      const found = await read<ServiceExport>(cluster, inNamespace('serviceexports', name));
      seen = (found?.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason ?? ''}`);
      return JSON.stringify(seen) === JSON.stringify(wanted);
    },
    { intervalMs: 50 },
  ).catch((error: unknown) => {
    throw new Error(`they are ${JSON.stringify(seen)}`, { cause: error });
  });
}

async function untilExchanged(member: string, reason: string): Promise<void> {
  let seen: unknown;
  await until(`ServicesExchanged of ${member} says ${reason}`, async () => {
    const { status } = (await host.api.call('GET', `/apis/spillway.dev/v1alpha1/memberclusters/${member}`)) as {
      status: MemberClusterStatus;
    };
    seen = status.conditions?.find(({ type }) => type === 'ServicesExchanged');
    return status.conditions?.find(({ type }) => type === 'ServicesExchanged')?.reason === reason;
  }).catch((error: unknown) => {
    throw new Error(`it says ${JSON.stringify(seen)}`, { cause: error });
  });
}

const EXPORTED = ['Valid=True Valid', 'Ready=True Exported', 'Conflict=False NoConflicts'];
const PORTS = [{ name: 'sql', port: 5432 }];

test('a Service of a member can be called in the host and in another member, by an address of each', async () => {
  await untilExchanged('east', 'Exchanged');
  await makeService(east, 'db', '10.1.0.1', { ports: PORTS, sessionAffinity: 'ClientIP' });
  await exportService(east, 'db');
  await untilTold(east, 'db', EXPORTED);
  for (const cluster of [host, east, west]) {
    const slices = await untilLed(cluster, 'db', ['10.1.0.1 <- east']);
    expect(slices[0]?.endpoints?.[0]).toMatchObject({ hostname: 'db-0' });
    expect(slices[0]?.endpoints?.[0]?.nodeName).toBe(cluster === east ? 'some' : undefined);
    const found = await untilImport(cluster, 'db', (one) => one?.spec.ips?.length === 1 && isTold(one, 1));
    const derived = found?.metadata.annotations?.['multicluster.kubernetes.io/derived-service'] ?? '';
    const { spec } = (await read<Service>(cluster, servicePath(derived))) ?? {};
    expect(found?.spec).toMatchObject({
      type: 'ClusterSetIP',
      ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      ips: [spec?.clusterIP],
      sessionAffinity: 'ClientIP',
    });
    expect(found?.status?.clusters).toEqual([{ cluster: 'east' }]);
    expect(spec).toMatchObject({ sessionAffinity: 'ClientIP' });
    expect(spec).not.toHaveProperty('selector');
  }
  expect(await read(host, servicePath('db'))).toBeUndefined();
});

test('a headless Service of the host is told to members with the names of its pods', async () => {
  await makeService(host, 'web', '10.0.0.9', { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] });
  await exportService(host, 'web');
  await untilTold(host, 'web', EXPORTED);
  for (const cluster of [host, east, west]) {
    const [slice] = await untilLed(cluster, 'web', ['10.0.0.9 <- local']);
    expect(slice?.endpoints?.[0]?.hostname).toBe('web-0');
    const found = await untilImport(cluster, 'web', (one) => one?.spec.type === 'Headless');
    expect(found?.spec.ips ?? []).toEqual([]);
  }
});

test('where clusters differ all are told so, the host counts, and ports are a union', async () => {
  await makeService(west, 'db', '10.2.0.1', { ports: [...PORTS, { name: 'more', port: 1 }] });
  await exportService(west, 'db');
  const conflict = (reasons: string): string[] => [...EXPORTED.slice(0, 2), `Conflict=True ${reasons}`];
  for (const cluster of [east, west]) await untilTold(cluster, 'db', conflict('PortConflict,SessionAffinityConflict'));
  for (const cluster of [host, east, west]) {
    await untilLed(cluster, 'db', ['10.1.0.1 <- east', '10.2.0.1 <- west']);
    const found = await untilImport(cluster, 'db', (one) => one?.spec.ports.length === 2 && isTold(one, 2));
    expect(found?.spec.sessionAffinity).toBe('ClientIP');
    expect(found?.status?.clusters).toEqual([{ cluster: 'east' }, { cluster: 'west' }]);
  }
  // The host's has another port of that name: callers of it are led to the host only.
  await makeService(host, 'db', '10.0.0.1', { ports: [{ name: 'sql', port: 5433 }] });
  await exportService(host, 'db');
  for (const cluster of [host, east, west])
    await untilTold(cluster, 'db', conflict('PortConflict,SessionAffinityConflict'));
  const led = await untilLed(west, 'db', ['10.0.0.1 <- local', '10.2.0.1 <- west']);
  expect(
    led.flatMap(({ ports }) => ports?.map(({ name = '' }) => name) ?? []).toSorted((a, b) => a.localeCompare(b)),
  ).toEqual(['more', 'sql']);
  await host.api.call('DELETE', inNamespace('serviceexports', 'db'));
  await untilLed(west, 'db', ['10.1.0.1 <- east', '10.2.0.1 <- west']);
});

test('what cannot be exported says why', async () => {
  await exportService(east, 'nothing');
  await untilTold(east, 'nothing', ['Valid=False NoService', 'Ready=False Failed']);
  await host.apply([
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'away', namespace: NS },
      spec: { type: 'ExternalName', externalName: 'x.example' },
    },
  ]);
  await exportService(host, 'away');
  await untilTold(host, 'away', ['Valid=False InvalidServiceType', 'Ready=False Failed']);
  expect(await read(host, inNamespace('serviceimports', 'away'))).toBeUndefined();
});

test('a restart writes nothing', async () => {
  await topology.spillway.process.stop();
  const before = Date.now();
  topology.spillway.process.restart();
  await untilExchanged('west', 'Exchanged');
  await until('it acts again', async () => {
    const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    return (
      /spillway_service_imports\{cluster="west"\} 2/.test(text) &&
      /spillway_service_imports\{cluster="local"\} 2/.test(text)
    );
  });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const written = [host, east, west].flatMap((cluster) =>
    writesOf(cluster, before).filter(({ objectRef }) =>
      ['services', 'endpointslices', 'serviceimports', 'serviceexports'].includes(objectRef?.resource ?? ''),
    ),
  );
  expect(written.map(describeWrite)).toEqual([]);
});

test('endpoints of a member that is lost are gone from the others, and come back with it', async () => {
  const server = east.component('kube-apiserver');
  await server.stop('SIGKILL');
  for (const cluster of [host, west]) await untilLed(cluster, 'db', ['10.2.0.1 <- west']);
  expect(await read(west, inNamespace('serviceimports', 'db'))).toBeDefined();
  server.restart();
  for (const cluster of [host, west, east]) await untilLed(cluster, 'db', ['10.1.0.1 <- east', '10.2.0.1 <- west']);
}, 120_000);

test('a ServiceImport of somebody else stays as it is, and another implementation is left in charge', async () => {
  const foreign = {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name: 'cache', namespace: NS },
    spec: { type: 'ClusterSetIP', ports: [{ port: 6379 }], ips: ['192.0.2.1'] },
  };
  await west.apply([foreign]);
  const stranger = await read(west, inNamespace('serviceimports', 'cache'));
  await makeService(east, 'cache', '10.1.0.2', { ports: [{ name: 'redis', port: 6379 }] });
  await exportService(east, 'cache');
  await untilLed(host, 'cache', ['10.1.0.2 <- east']);
  await untilExchanged('west', 'ImportTaken');
  expect(await read(west, inNamespace('serviceimports', 'cache'))).toEqual(stranger);
  await west.api.call('PATCH', inNamespace('serviceimports', 'cache/status'), {
    status: { clusters: [{ cluster: 'c1' }] },
  });
  await untilExchanged('west', 'OtherImplementation');
  await untilImport(west, 'db', (one) => one === undefined);
  await untilLed(host, 'db', ['10.1.0.1 <- east']);
  await west.api.call('DELETE', inNamespace('serviceimports', 'cache'));
  await untilExchanged('west', 'Exchanged');
  for (const cluster of [host, west]) await untilLed(cluster, 'db', ['10.1.0.1 <- east', '10.2.0.1 <- west']);
}, 120_000);

test('what is not exported any more goes everywhere, and all goes from a member that takes no part', async () => {
  await east.api.call('DELETE', inNamespace('serviceexports', 'cache'));
  for (const cluster of [host, east, west]) await untilImport(cluster, 'cache', (one) => one === undefined);
  const path = '/apis/spillway.dev/v1alpha1/memberclusters/west';
  await host.api.call('PATCH', path, { spec: { services: { multiCluster: 'None' } } });
  await untilExchanged('west', 'NotExchanged');
  const selector = encodeURIComponent('spillway.dev/host');
  for (const what of [
    inNamespace('serviceimports'),
    `/api/v1/namespaces/${NS}/services`,
    `/apis/discovery.k8s.io/v1/namespaces/${NS}/endpointslices`,
  ]) {
    await until(`nothing of ours is left of ${what}`, async () => {
      const { items } = (await west.api.call('GET', `${what}?labelSelector=${selector}`)) as { items: unknown[] };
      return items.length === 0;
    });
  }
  for (const cluster of [host, east]) await untilLed(cluster, 'db', ['10.1.0.1 <- east']);
  expect(await read(west, servicePath('db'))).toBeDefined();
}, 120_000);
