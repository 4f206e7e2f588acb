import { describe, expect, it } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Service, ServiceSpec } from '../../src/kube/service.ts';
import { type IsolatedPod, isolatedSlices } from '../../src/services/isolated-slices.ts';
import type { CopyPlace } from '../../src/services/service-copy.ts';

const PLACE: CopyPlace = { hostId: 'us', member: 'east', namespace: 'shop' };
const service = (spec: ServiceSpec = {}): Service => ({
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    selector: { app: 'web' },
    ports: [{ name: 'http', port: 80, targetPort: 'http' }],
    ipFamilies: ['IPv4'],
    ...spec,
  },
});

interface Parts {
  uid?: string;
  labels?: Record<string, string>;
  ready?: boolean;
  ending?: boolean;
  phase?: 'Running' | 'Succeeded';
  ips?: string[];
  port?: number;
  spec?: object;
}

function podIn({
  uid = 'u1',
  labels = { app: 'web' },
  ready = true,
  ending = false,
  ...more
}: Parts = {}): IsolatedPod {
  const { phase = 'Running', ips = ['10.1.0.1'], port = 8080, spec = {} } = more;
  const deletion = ending ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  const host: Pod = {
    metadata: { name: 'web-0', namespace: 'shop', uid, labels, ...deletion },
    spec: { containers: [{ name: 'app', ports: [{ name: 'http', containerPort: port }] }], ...spec },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
  const copy: Pod = {
    metadata: { name: 'web-0', namespace: 'shop', uid: `copy-${uid}` },
    spec: host.spec,
    status: { phase, podIPs: ips.map((ip) => ({ ip })) },
  };
  return { host, copy, own: { namespace: 'shop', name: 'web-0', uid: `copy-${uid}`, nodeName: 'n1', zone: 'z1' } };
}

const endpointsOf = (spec: ServiceSpec, ...pods: IsolatedPod[]) =>
  isolatedSlices(service(spec), pods, PLACE).flatMap(({ endpoints = [] }) => endpoints);

it('leads to the pods of the member that the Service selects, at their addresses there', () => {
  const [only, ...more] = isolatedSlices(service(), [podIn(), podIn({ uid: 'u2', labels: { app: 'x' } })], PLACE);
  expect(more).toEqual([]);
  expect(only).toMatchObject({
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      {
        addresses: ['10.1.0.1'],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'copy-u1' },
        nodeName: 'n1',
        zone: 'z1',
      },
    ],
  });
});

describe('as the controller of Kubernetes has it', () => {
  it.each<[string, Parts, ServiceSpec, unknown]>([
    ['a pod that is not ready', { ready: false }, {}, undefined],
    [
      'one that is wanted all the same',
      { ready: false },
      { publishNotReadyAddresses: true },
      { ready: true, serving: false, terminating: false },
    ],
    ['one that ends', { ending: true }, {}, { ready: false, serving: true, terminating: true }],
    ['one that is finished', { phase: 'Succeeded' }, {}, undefined],
    ['one without an address', { ips: [] }, {}, undefined],
    ['one of the other family', { ips: ['fd00::1'] }, {}, undefined],
    ['one without the port', { spec: { containers: [{ name: 'app' }] } }, {}, undefined],
    [
      'one that has the port only while it is made ready',
      {
        spec: {
          containers: [{ name: 'app' }],
          initContainers: [{ name: 'init', ports: [{ name: 'http', containerPort: 8080 }] }],
        },
      },
      {},
      undefined,
    ],
    [
      'one whose sidecar has the port',
      {
        spec: {
          containers: [{ name: 'app' }],
          initContainers: [{ name: 'proxy', restartPolicy: 'Always', ports: [{ name: 'http', containerPort: 8080 }] }],
        },
      },
      {},
      { ready: true, serving: true, terminating: false },
    ],
    ['nothing for a Service that selects none', {}, { selector: {} }, undefined],
  ])('%s', (_, parts, spec, wanted) => {
    expect(endpointsOf(spec, podIn(parts)).map(({ conditions }) => conditions)).toEqual(
      wanted === undefined ? [] : [wanted],
    );
  });

  it('names those of a headless Service that the pods belong to', () => {
    const named = podIn({ spec: { ...podIn().host.spec, hostname: 'web-0', subdomain: 'web' } });
    expect(endpointsOf({ clusterIP: 'None' }, named)[0]?.hostname).toBe('web-0');
    const other = podIn({ spec: { ...podIn().host.spec, hostname: 'web-0', subdomain: 'other' } });
    expect(endpointsOf({ clusterIP: 'None' }, other)[0]?.hostname).toBeUndefined();
  });

  it.each([
    [undefined, undefined],
    ['PreferSameZone', { forZones: [{ name: 'z1' }] }],
    ['PreferSameNode', { forZones: [{ name: 'z1' }], forNodes: [{ name: 'n1' }] }],
  ])('gives hints with traffic distribution %s', (trafficDistribution, hints) => {
    const spec = trafficDistribution === undefined ? {} : { trafficDistribution };
    expect(endpointsOf(spec, podIn())[0]?.hints).toEqual(hints);
    expect(endpointsOf({ ...spec, clusterIP: 'None' }, podIn())[0]?.hints).toBeUndefined();
  });

  it('has slices by family and by the numbers of named ports', () => {
    const pods = [podIn({ ips: ['10.1.0.1', 'fd00::1'] }), podIn({ uid: 'u2', port: 9090, ips: ['10.1.0.2'] })];
    const slices = isolatedSlices(service({ ipFamilies: ['IPv4', 'IPv6'] }), pods, PLACE);
    expect(slices.map(({ addressType, ports }) => `${addressType} ${ports?.[0]?.port}`).toSorted()).toEqual([
      'IPv4 8080',
      'IPv4 9090',
      'IPv6 8080',
    ]);
  });

  it('leaves out addresses that no endpoint can have, for which the member would refuse the whole slice', () => {
    const pods = [podIn({ ips: ['169.254.1.1', '10.1.0.1'] }), podIn({ uid: 'u2', ips: ['127.0.0.1'] })];
    expect(endpointsOf({}, ...pods).map(({ addresses }) => addresses)).toEqual([['10.1.0.1']]);
  });

  it.each([
    [8081, 8081],
    [undefined, 80],
    [0, 80],
  ])('target port %s is port %s', (targetPort, port) => {
    const ports = [{ port: 80, ...(targetPort === undefined ? {} : { targetPort }) }];
    expect(isolatedSlices(service({ ports }), [podIn()], PLACE)[0]?.ports).toEqual([
      { name: '', port, protocol: 'TCP' },
    ]);
  });
});

it('a pod more or fewer changes one slice of many', () => {
  const pods = Array.from({ length: 350 }, (_, i) => podIn({ uid: `u${i}`, ips: [`10.1.${i >> 8}.${i & 255}`] }));
  const [before, after] = [pods, pods.slice(1)].map(
    (some) =>
      new Map(isolatedSlices(service(), some, PLACE).map((slice) => [slice.metadata.name, JSON.stringify(slice)])),
  );
  expect(before?.size).toBe(4);
  expect([...(after ?? [])].filter(([name, text]) => before?.get(name) !== text).length).toBe(1);
});
