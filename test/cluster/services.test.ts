import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Service } from '../../src/kube/service.ts';
import type { Endpoint, EndpointSlice } from '../../src/kube/discovery-v1.ts';
import { takesTraffic } from '../../src/kube/endpoint-slices.ts';
import {
  type Fields,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  read,
  shell,
  untilPod,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Services of the host in members: one whose pods are reached from everywhere, and one whose pods are reached from nowhere else. */
let topology: Topology;
let host: Cluster;
let flat: Cluster;
let isolated: Cluster;

beforeAll(async () => {
  const labels = { 'topology.kubernetes.io/zone': 'z1' };
  topology = await startTopology({
    members: [
      { name: 'flat', kwok: { nodes: 2, prefix: 'f', podCidr: '10.140.0.0/16', labels }, options: { services: true } },
      {
        name: 'apart',
        kwok: { nodes: 2, prefix: 'a', podCidr: '10.141.0.0/16' },
        options: { services: true, spec: { network: 'Isolated', probe: { periodSeconds: 1, failureThreshold: 2 } } },
      },
    ],
  });
  ({ host } = topology);
  flat = topology.member('flat').cluster;
  isolated = topology.member('apart').cluster;
  await startKwok(host, { nodes: 1, prefix: 'h', podCidr: '10.142.0.0/16' });
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

const LABELS = { app: 'web' };
const PORT = { name: 'http', containerPort: 8080 };
const servicePath = (ns: string, name = ''): string =>
  `/api/v1/namespaces/${ns}/services${name === '' ? '' : `/${name}`}`;
const slicesPath = (ns: string): string => `/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices`;

async function makePod(name: string, ns: string, where: string, more: Fields = {}): Promise<Pod> {
  const containers = [shell(IDLE, { ports: [PORT] })];
  const spec =
    where === 'host' ? { nodeName: 'h-0', containers, ...more } : podSpec(containers, { ...onNode(where), ...more });
  await host.apply([pod(name, ns, spec, { labels: LABELS })]);
  return await untilPod(host, ns, name, 'is ready', isReady);
}

async function makeService(ns: string, name: string, spec: Fields): Promise<void> {
  await host.apply([{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: ns }, spec }]);
}

/** What a cluster's proxies know of a Service. */
async function endpointsOf(cluster: Cluster, ns: string, name: string): Promise<Endpoint[]> {
  const query = `?labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${name}`)}`;
  const { items } = (await cluster.api.call('GET', slicesPath(ns) + query)) as { items: EndpointSlice[] };
  return items.flatMap(({ endpoints }) => endpoints ?? []);
}

const addresses = (endpoints: readonly Endpoint[]): string[] =>
  endpoints.flatMap((endpoint) => endpoint.addresses).toSorted();

async function untilEndpoints(
  cluster: Cluster,
  ns: string,
  name: string,
  wanted: readonly string[],
): Promise<Endpoint[]> {
  let seen: Endpoint[] = [];
  return await until(
    `${cluster.name} knows the endpoints of ${name}`,
    async () => {
      seen = await endpointsOf(cluster, ns, name);
      return JSON.stringify(addresses(seen)) === JSON.stringify([...wanted].toSorted()) && seen;
    },
    { intervalMs: 50 },
  ).catch((error: unknown) => {
    throw new Error(`it knows ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`, { cause: error });
  });
}

async function copyIn(cluster: Cluster, ns: string, name: string): Promise<Service> {
  return await until(
    `Service ${name} stands in ${cluster.name}`,
    async () => await read<Service>(cluster, servicePath(ns, name)),
  );
}

const addressOf = (pod: Pod): string => pod.status?.podIP ?? '';
async function memberAddress(cluster: Cluster, ns: string, name: string): Promise<string> {
  const found = await read<Pod>(cluster, `/api/v1/namespaces/${ns}/pods/${name}`);
  return found?.status?.podIP ?? '';
}

test('a Service stands where pods of its namespace are, as it is, and leads to what can be reached from there', async () => {
  const ns = await newNamespace(host, 'shop');
  const ports = [{ name: 'web', port: 80, targetPort: 'http', appProtocol: 'kubernetes.io/ws' }];
  await makeService(ns, 'web', {
    selector: LABELS,
    ports,
    type: 'LoadBalancer',
    sessionAffinity: 'ClientIP',
    publishNotReadyAddresses: true,
    internalTrafficPolicy: 'Local',
  });
  await makeService(ns, 'names', { selector: LABELS, clusterIP: 'None', ports: [{ port: 5432 }] });
  await makeService(ns, 'door', { selector: LABELS, type: 'NodePort', ports: [{ port: 81, protocol: 'UDP' }] });
  await makeService(ns, 'away', { type: 'ExternalName', externalName: 'db.example.com' });
  await makeService(ns, 'hand', { ports: [{ name: 'x', port: 9000 }] });
  await host.api.call('POST', slicesPath(ns), {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'by-hand', labels: { 'kubernetes.io/service-name': 'hand' } },
    addressType: 'IPv4',
    ports: [{ name: 'x', port: 9001 }],
    endpoints: [{ addresses: ['192.0.2.7'], nodeName: 'f-0' }],
  });
  const [own, other, atHome] = await Promise.all([
    makePod('one', ns, 'flat', { hostname: 'one', subdomain: 'names' }),
    makePod('two', ns, 'apart', { hostname: 'two', subdomain: 'names' }),
    makePod('home', ns, 'host'),
  ]);
  expect(addressOf(other)).toBe('');
  const here = [addressOf(own), addressOf(atHome)];
  const there = [await memberAddress(isolated, ns, 'two')];
  expect(there).not.toEqual(['']);
  for (const name of ['web', 'names', 'door']) {
    const seen = await untilEndpoints(flat, ns, name, here);
    for (const endpoint of seen) expect(endpoint.conditions?.ready, JSON.stringify(endpoint)).toBe(true);
    await untilEndpoints(isolated, ns, name, there);
  }
  const [first] = (await endpointsOf(flat, ns, 'names')).filter(({ hostname }) => hostname === 'one');
  expect(first).toMatchObject({
    addresses: [addressOf(own)],
    nodeName: /^f-/.exec(first?.nodeName ?? '')?.input,
    zone: 'z1',
  });
  expect(await endpointsOf(isolated, ns, 'names')).toMatchObject([{ hostname: 'two', addresses: there }]);
  // The node of that name is another one in the member.
  expect(await untilEndpoints(flat, ns, 'hand', ['192.0.2.7'])).toEqual([{ addresses: ['192.0.2.7'], conditions: {} }]);
  expect(await endpointsOf(isolated, ns, 'hand')).toEqual([]);
  for (const cluster of [flat, isolated]) {
    const { metadata, spec } = await copyIn(cluster, ns, 'web');
    expect(metadata.labels).toMatchObject({ 'spillway.dev/member': cluster.name });
    expect(spec).toMatchObject({
      type: 'ClusterIP',
      ports: [{ ...ports[0], protocol: 'TCP' }],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      publishNotReadyAddresses: true,
      internalTrafficPolicy: 'Local',
      ipFamilyPolicy: 'SingleStack',
    });
    expect(spec?.selector).toBeUndefined();
    expect(spec?.ports?.[0]?.nodePort).toBeUndefined();
    expect((await copyIn(cluster, ns, 'names')).spec?.clusterIP).toBe('None');
    expect((await copyIn(cluster, ns, 'door')).spec).toMatchObject({
      type: 'ClusterIP',
      ports: [{ port: 81, protocol: 'UDP' }],
    });
    expect((await copyIn(cluster, ns, 'away')).spec).toMatchObject({
      type: 'ExternalName',
      externalName: 'db.example.com',
    });
    expect(await endpointsOf(cluster, ns, 'away')).toEqual([]);
  }
  // An edit follows, and a change that the API server does not take for the same Service.
  await host.api.call('PATCH', servicePath(ns, 'web'), {
    spec: { sessionAffinity: 'None', sessionAffinityConfig: null },
  });
  const before = await copyIn(flat, ns, 'door');
  await host.api.call('DELETE', servicePath(ns, 'door'));
  await makeService(ns, 'door', { selector: LABELS, clusterIP: 'None', ports: [{ port: 82 }] });
  await until('the edits arrive', async () => {
    const [web, door] = [await copyIn(flat, ns, 'web'), await read<Service>(flat, servicePath(ns, 'door'))];
    return (
      web.spec?.sessionAffinity === 'None' &&
      door?.spec?.clusterIP === 'None' &&
      door.metadata.uid !== before.metadata.uid
    );
  });
  await untilEndpoints(flat, ns, 'door', here);
});

test('a pod gets variables of the Services as they are in its member, also the first one of a namespace', async () => {
  const ns = await newNamespace(host, 'vars');
  await makeService(ns, 'db', { ports: [{ port: 5432 }] });
  await makeService(ns, 'cache', { ports: [{ port: 6379 }] });
  await makePod('first', ns, 'flat');
  const { spec } = (await read<Pod>(flat, `/api/v1/namespaces/${ns}/pods/first`)) as Pod;
  const variables = new Map((spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));
  for (const [name, port] of [
    ['db', '5432'],
    ['cache', '6379'],
  ] as const) {
    const copy = await copyIn(flat, ns, name);
    expect(variables.get(`${name.toUpperCase()}_SERVICE_HOST`)).toBe(copy.spec?.clusterIP);
    expect(variables.get(`${name.toUpperCase()}_SERVICE_PORT`)).toBe(port);
  }
  const original = await read<Service>(host, servicePath(ns, 'db'));
  expect([...variables.values()]).not.toContain(original?.spec?.clusterIP);
});

test('what takes no requests any more is gone from the host, and within 5 s from there from all clusters', async () => {
  const ns = await newNamespace(host, 'truth');
  await makeService(ns, 'web', { selector: LABELS, ports: [{ port: 80 }] });
  const [one, two, home] = await Promise.all([
    makePod('one', ns, 'flat'),
    makePod('two', ns, 'flat'),
    makePod('home', ns, 'host'),
  ]);
  const all = [one, two, home].map(addressOf);
  await untilEndpoints(flat, ns, 'web', all);
  /** From the slices of the host, and within 5 s from there from those of the member. */
  const goneEverywhere = async (left: readonly string[]): Promise<void> => {
    await until('the host leads nobody there', async () => {
      const led = (await endpointsOf(host, ns, 'web')).filter(takesTraffic);
      return JSON.stringify(addresses(led)) === JSON.stringify([...left].toSorted());
    });
    const since = performance.now();
    await untilEndpoints(flat, ns, 'web', left);
    expect(performance.now() - since).toBeLessThan(5_000);
  };
  // The kubelet of the member says that it is not ready any more.
  const path = `/api/v1/namespaces/${ns}/pods/one/status`;
  const { status } = (await read<Pod>(flat, path)) as Pod;
  const conditions = (status?.conditions ?? []).map((one) =>
    one.type === 'Ready' ? { ...one, status: 'False' } : one,
  );
  await flat.api.call('PATCH', path, { status: { conditions } });
  await goneEverywhere([addressOf(two), addressOf(home)]);
  await host.api.call('DELETE', `/api/v1/namespaces/${ns}/pods/home?gracePeriodSeconds=0`);
  await goneEverywhere([addressOf(two)]);
});

test('a Service of somebody else stays as it is, leads nowhere else, and is told of', async () => {
  const ns = await newNamespace(host, 'taken');
  await flat.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns, labels: { 'spillway.dev/allow-host': 'any' } } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'db', namespace: ns }, spec: { ports: [{ port: 1 }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'db-own', namespace: ns, labels: { 'kubernetes.io/service-name': 'db' } },
      addressType: 'IPv4',
      ports: [{ port: 1 }],
      endpoints: [{ addresses: ['192.0.2.9'] }],
    },
  ]);
  const [stranger, itsSlice] = [servicePath(ns, 'db'), `${slicesPath(ns)}/db-own`];
  const before = await Promise.all([stranger, itsSlice].map(async (path) => await read(flat, path)));
  await makeService(ns, 'db', { selector: LABELS, ports: [{ port: 5432 }] });
  await makeService(ns, 'web', { selector: LABELS, ports: [{ port: 80 }] });
  const made = await makePod('one', ns, 'flat');
  await untilEndpoints(flat, ns, 'web', [addressOf(made)]);
  const reasonIs = async (wanted: string): Promise<void> => {
    await until(
      `the condition says ${wanted}`,
      async () => {
        const { status } = (await host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters/flat')) as {
          status: MemberClusterStatus;
        };
        return status.conditions?.find(({ type }) => type === 'ServicesMirrored')?.reason === wanted;
      },
      { timeoutMs: 90_000 },
    );
  };
  await reasonIs('NameTaken');
  const events = await kubectl(host, ['events', '-n', ns, '--for', 'service/db']);
  expect(events).toContain('NameTaken');
  expect(addresses(await endpointsOf(flat, ns, 'db'))).toEqual(['192.0.2.9']);
  expect(await Promise.all([stranger, itsSlice].map(async (path) => await read(flat, path)))).toEqual(before);
  const { spec } = (await read<Pod>(flat, `/api/v1/namespaces/${ns}/pods/one`)) as Pod;
  const names = (spec.containers[0]?.env ?? []).map(({ name }) => name);
  expect(names).toContain('WEB_SERVICE_HOST');
  expect(names).not.toContain('DB_SERVICE_HOST');
  for (const path of [itsSlice, stranger]) await flat.api.call('DELETE', path);
  await host.api.call('PATCH', servicePath(ns, 'db'), { metadata: { annotations: { look: 'again' } } });
  await untilEndpoints(flat, ns, 'db', [addressOf(made)]);
  await reasonIs('Mirrored');
}, 180_000);

test('Services go with the last pod of their namespace, and a restart writes nothing', async () => {
  const ns = await newNamespace(host, 'last');
  await makeService(ns, 'web', { selector: LABELS, ports: [{ port: 80 }] });
  const [made] = await Promise.all([makePod('one', ns, 'flat'), makePod('two', ns, 'apart')]);
  await untilEndpoints(flat, ns, 'web', [addressOf(made)]);
  await untilEndpoints(isolated, ns, 'web', [await memberAddress(isolated, ns, 'two')]);
  await topology.spillway.process.stop();
  const clusters = [flat, isolated];
  const before = clusters.map((cluster) => cluster.auditEvents().length);
  topology.spillway.process.restart();
  await until('it acts again', async () => {
    const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    return clusters.every(({ name }) => new RegExp(`spillway_service_copies\\{member="${name}"\\} [1-9]`).test(text));
  });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const written = clusters
    .flatMap((cluster, i) => cluster.auditEvents().slice(before[i]))
    .filter(
      ({ verb, objectRef }) =>
        ['create', 'update', 'delete', 'patch'].includes(verb) &&
        ['services', 'endpointslices'].includes(objectRef?.resource ?? ''),
    );
  expect(written.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource} ${objectRef?.name}`)).toEqual([]);
  for (const name of ['one', 'two']) await host.api.call('DELETE', `/api/v1/namespaces/${ns}/pods/${name}`);
  for (const cluster of clusters) {
    await until('the pod is gone', async () => (await podsOf(cluster, ns)).length === 0, { timeoutMs: 60_000 });
    await until('the Service is gone', async () => (await read(cluster, servicePath(ns, 'web'))) === undefined, {
      timeoutMs: 60_000,
    });
    await untilEndpoints(cluster, ns, 'web', []);
  }
}, 180_000);
