import { expect, test } from 'vitest';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import {
  derivedName,
  derivedService,
  isDerivedAsWanted,
  needsAnew,
  serviceImport,
} from '../../src/multi-cluster/derived-service.ts';
import { copiedSlice, digested, importedSlices, isSliceAsWanted } from '../../src/multi-cluster/imported-slices.ts';
import type { MergedService } from '../../src/multi-cluster/merged-service.ts';

const MERGED: MergedService = {
  type: 'ClusterSetIP',
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  ipFamilies: ['IPv4'],
  sessionAffinity: 'ClientIP',
  affinitySeconds: 10,
  internalTrafficPolicy: 'Cluster',
  trafficDistribution: 'PreferClose',
  clusters: ['east', 'local'],
  leader: 'local',
  conflicts: [],
};
const HOST = { hostId: 'abc', member: undefined, namespace: 'shop', name: 'web' };
const EAST = { ...HOST, member: 'east', namespace: 'h-shop' };

const slice = (more: Partial<EndpointSlice> = {}): EndpointSlice => ({
  metadata: { name: 'web-x1', namespace: 'shop' },
  addressType: 'IPv4',
  endpoints: [
    {
      addresses: ['10.1.0.1'],
      conditions: { ready: true },
      hostname: 'web-0',
      nodeName: 'n1',
      zone: 'z1',
      targetRef: { kind: 'Pod', name: 'web-0', namespace: 'shop', uid: 'u' },
    },
    { addresses: ['10.1.0.2'], conditions: { ready: false, serving: true, terminating: true } },
    { addresses: ['10.1.0.3'], conditions: { ready: false } },
  ],
  ports: [
    { name: 'http', port: 8080, protocol: 'TCP' },
    { name: 'admin', port: 9090, protocol: 'TCP' },
  ],
  ...more,
});
const source = { hostKey: 'shop/web', type: 'ClusterSetIP', slices: [slice()], ports: new Set(['http']) } as const;

test('the Service behind an import is called as other implementations call it', () => {
  // As sigs.k8s.io/mcs-api has it: 10 characters of base32hex of the SHA-256.
  expect(derivedName('test/hello')).toBe('derived-nvgtmm3sgh');
  expect(derivedName('test/hello')).not.toBe(derivedName('test/hello2'));
});

test('the Service has no selector, and the import has its address', () => {
  const derived = derivedService('shop/web', MERGED, EAST);
  expect(derived.metadata).toMatchObject({ namespace: 'h-shop', labels: { 'spillway.dev/member': 'east' } });
  expect(derived.spec).not.toHaveProperty('selector');
  const there = { ...derived, spec: { ...derived.spec, clusterIP: '10.9.0.1', clusterIPs: ['10.9.0.1'] } };
  expect(serviceImport('shop/web', MERGED, there, EAST)).toMatchObject({
    metadata: { annotations: { 'multicluster.kubernetes.io/derived-service': derived.metadata.name } },
    spec: {
      type: 'ClusterSetIP',
      ips: ['10.9.0.1'],
      ipFamilies: ['IPv4'],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10 } },
      internalTrafficPolicy: 'Cluster',
      trafficDistribution: 'PreferClose',
    },
    status: { clusters: [{ cluster: 'east' }, { cluster: 'local' }] },
  });
});

test('a headless import has no address, and a Service that was none is made anew', () => {
  const headless = derivedService('shop/web', { ...MERGED, type: 'Headless' }, HOST);
  expect(headless.spec?.clusterIP).toBe('None');
  const there = { ...headless, spec: { ...headless.spec, clusterIPs: ['None'] } };
  expect(serviceImport('shop/web', { ...MERGED, type: 'Headless' }, there, HOST).spec.ips).toEqual([]);
  expect(needsAnew(there, derivedService('shop/web', MERGED, HOST))).toBe(true);
});

test('what the API server adds to the Service is not put right, what somebody changes is', () => {
  const wanted = derivedService('shop/web', MERGED, HOST);
  const [port] = wanted.spec?.ports ?? [];
  if (port === undefined) throw new Error('no port');
  const there = { ...wanted, spec: { ...wanted.spec, clusterIP: '10.9.0.1', ports: [{ ...port, targetPort: 80 }] } };
  expect(isDerivedAsWanted(there, wanted)).toBe(true);
  expect(isDerivedAsWanted({ ...there, spec: { ...there.spec, selector: { app: 'evil' } } }, wanted)).toBe(false);
  expect(isDerivedAsWanted({ ...there, metadata: { ...there.metadata, labels: {} } }, wanted)).toBe(false);
});

test('endpoints that take traffic are told to others without nodes and pods, on ports that all agree on', () => {
  const [told, ...more] = importedSlices({ ...source, cluster: 'east' }, HOST);
  expect(more).toEqual([]);
  expect(told).toMatchObject({
    metadata: {
      labels: {
        'kubernetes.io/service-name': derivedName('shop/web'),
        'multicluster.kubernetes.io/service-name': 'web',
        'multicluster.kubernetes.io/source-cluster': 'east',
        'endpointslice.kubernetes.io/managed-by': 'spillway.dev',
      },
    },
    ports: [{ name: 'http', port: 8080 }],
  });
  expect(told?.endpoints).toEqual([
    { addresses: ['10.1.0.1'], conditions: { ready: true }, hostname: 'web-0', zone: 'z1' },
    { addresses: ['10.1.0.2'], conditions: { ready: false, serving: true, terminating: true } },
  ]);
});

test('in their own cluster they are told with nodes', () => {
  const [own] = importedSlices({ ...source, cluster: 'east' }, EAST);
  expect(own?.endpoints?.[0]).toMatchObject({ nodeName: 'n1', targetRef: { name: 'web-0' } });
});

test('a slice without endpoints, or without a port that counts, is not told', () => {
  expect(importedSlices({ ...source, cluster: 'east', slices: [slice({ endpoints: [] })] }, HOST)).toEqual([]);
  expect(importedSlices({ ...source, cluster: 'east', ports: new Set(['other']) }, HOST)).toEqual([]);
});

test('a slice of the host stands in a member in its namespace, by its name, and without nodes', () => {
  const [there] = importedSlices({ ...source, cluster: 'local' }, HOST);
  if (there === undefined) throw new Error('no slice');
  expect(there.endpoints?.[0]).toHaveProperty('nodeName');
  const copied = copiedSlice(there, EAST);
  expect(copied.metadata).toMatchObject({ name: there.metadata.name, namespace: 'h-shop' });
  expect(copied.metadata.labels).toMatchObject({
    'spillway.dev/member': 'east',
    'multicluster.kubernetes.io/source-cluster': 'local',
  });
  expect(copied.endpoints?.[0]).not.toHaveProperty('nodeName');
});

test('a slice that is headless no more is written again', () => {
  const [headless] = importedSlices({ ...source, type: 'Headless', cluster: 'local' }, HOST);
  const [now] = importedSlices({ ...source, cluster: 'local' }, HOST);
  if (headless === undefined || now === undefined) throw new Error('no slice');
  expect(isSliceAsWanted(headless, now)).toBe(false);
  expect(isSliceAsWanted(now, now)).toBe(true);
});

test('whether a slice is as wanted can be told without where it leads', () => {
  const [wanted] = importedSlices({ ...source, cluster: 'local' }, HOST);
  if (wanted === undefined) throw new Error('no slice');
  const kept = digested(wanted);
  expect(JSON.stringify(kept)).not.toContain('10.1.0.1');
  expect(isSliceAsWanted(kept, structuredClone(wanted))).toBe(true);
  expect(isSliceAsWanted(kept, { ...wanted, endpoints: [{ addresses: ['10.1.0.9'] }] })).toBe(false);
  expect(isSliceAsWanted(kept, { ...wanted, ports: [] })).toBe(false);
  expect(isSliceAsWanted(kept, { ...wanted, addressType: 'IPv6' })).toBe(false);
});

test('ports are told as API servers store them', () => {
  const [told] = importedSlices(
    { ...source, cluster: 'east', slices: [slice({ ports: [{ port: 8080 }] })], ports: undefined },
    HOST,
  );
  expect(told?.ports).toEqual([{ name: '', protocol: 'TCP', port: 8080 }]);
  if (told === undefined) throw new Error('no slice');
  expect(copiedSlice({ ...told, ports: [{ port: 8080 }] }, EAST).ports).toEqual(told.ports);
});

test('what the hub has is digested once, however many members compare with it', () => {
  let reads = 0;
  const addresses = Object.defineProperty<string[]>([], 0, {
    enumerable: true,
    get: () => {
      reads += 1;
      return '10.1.0.1';
    },
  });
  const kept = slice({ endpoints: [{ addresses }] });
  const standing = digested(copiedSlice(slice({ endpoints: [{ addresses: ['10.1.0.1'] }] }), EAST));
  const places = Array.from({ length: 20 }, (_, i) => ({ ...EAST, member: `member-${i}` }));
  const compared = places.map((place) =>
    isSliceAsWanted({ ...standing, metadata: copiedSlice(kept, place).metadata }, copiedSlice(kept, place)),
  );
  expect(new Set(compared)).toEqual(new Set([true]));
  expect(reads).toBeLessThan(5);
  expect(isSliceAsWanted(standing, copiedSlice(slice({ endpoints: [{ addresses: ['10.1.0.2'] }] }), EAST))).toBe(false);
});
