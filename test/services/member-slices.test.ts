import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Service } from '../../src/kube/service.ts';
import type { Endpoint, EndpointSlice } from '../../src/kube/discovery-v1.ts';
import { memberSlices, type OwnPod } from '../../src/services/member-slices.ts';
import type { CopyPlace } from '../../src/services/service-copy.ts';

const PLACE: CopyPlace = { hostId: 'us', member: 'east', namespace: 'shop' };
const PORTS = [{ name: 'http', port: 8080, protocol: 'TCP' }];
const service = (spec: Service['spec'] = {}): Service => ({ metadata: { name: 'web', namespace: 'shop' }, spec });
const slice = (name: string, ...endpoints: Endpoint[]): EndpointSlice => ({
  metadata: { name, namespace: 'shop' },
  addressType: 'IPv4',
  ports: PORTS,
  endpoints,
});
const READY = { ready: true, serving: true, terminating: false };
/** Of pods whose UID begins with `own` there are copies in the member. */
const endpoint = (address: string, uid: string, more: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  conditions: READY,
  nodeName: 'virtual',
  zone: 'host-zone',
  targetRef: { kind: 'Pod', namespace: 'shop', name: `pod-${uid}`, uid },
  ...more,
});
const own = (uid: string): OwnPod | undefined =>
  uid.startsWith('own')
    ? { namespace: 'shop', name: `pod-${uid}`, uid: `copy-${uid}`, nodeName: 'n1', zone: 'z1' }
    : undefined;
const seen = (slices: EndpointSlice[], spec: Service['spec'] = {}): EndpointSlice[] =>
  memberSlices({ service: service(spec), slices, own, place: PLACE });
const addresses = (slices: EndpointSlice[]): string[] =>
  slices.flatMap(({ endpoints = [] }) => endpoints.flatMap((one) => one.addresses));

it('carries what the host knows, and of this member what its own proxies know', () => {
  const [only, ...more] = seen([
    slice('web-1', endpoint('10.1.0.1', 'own1', { hostname: 'web-0' }), endpoint('10.2.0.1', 'x')),
  ]);
  expect(more).toEqual([]);
  expect(only?.endpoints).toEqual([
    {
      addresses: ['10.1.0.1'],
      conditions: READY,
      hostname: 'web-0',
      targetRef: { kind: 'Pod', namespace: 'shop', name: 'pod-own1', uid: 'copy-own1' },
      nodeName: 'n1',
      zone: 'z1',
    },
    // A node of that name would be another one here.
    { addresses: ['10.2.0.1'], conditions: READY, zone: 'host-zone' },
  ]);
  expect(only?.ports).toEqual(PORTS);
  expect(only?.metadata.labels).toEqual({
    'kubernetes.io/service-name': 'web',
    'endpointslice.kubernetes.io/managed-by': 'spillway.dev',
    'spillway.dev/host': 'us',
    'spillway.dev/member': 'east',
  });
});

it.each<[string, Endpoint['conditions'], boolean]>([
  ['ready', READY, true],
  ['without conditions', undefined, true],
  ['not ready', { ready: false, serving: false, terminating: false }, false],
  ['not ready, by an old host', { ready: false }, false],
  ['ending, and still serving', { ready: false, serving: true, terminating: true }, true],
  ['ending', { ready: false, serving: false, terminating: true }, false],
])('an endpoint that is %s', (_, conditions, isThere) => {
  const { conditions: _dropped, ...rest } = endpoint('10.1.0.1', 'x');
  const one = conditions === undefined ? rest : { ...rest, conditions };
  const [only] = seen([slice('web-1', one)]);
  expect(only?.endpoints?.[0]?.conditions).toEqual(isThere ? conditions : undefined);
  expect(only !== undefined).toBe(isThere);
});

describe('traffic distribution', () => {
  const slices = [
    slice('web-1', endpoint('10.1.0.1', 'own1'), endpoint('10.2.0.1', 'x')),
    slice('web-2', endpoint('10.2.0.2', 'y')),
  ];

  it('is even where the Service does not say otherwise', () => {
    expect(addresses(seen(slices))).toEqual(['10.1.0.1', '10.2.0.1', '10.2.0.2']);
  });

  const inZone = { forZones: [{ name: 'z1' }] };

  it.each([
    ['PreferClose', inZone],
    ['PreferSameZone', inZone],
    ['PreferSameNode', { ...inZone, forNodes: [{ name: 'n1' }] }],
  ])('%s keeps it in the member', (trafficDistribution, hints) => {
    const [only, ...more] = seen(slices, { trafficDistribution });
    expect(more).toEqual([]);
    expect(only?.endpoints?.map((one) => [one.addresses, one.hints])).toEqual([[['10.1.0.1'], hints]]);
  });

  it('gives hints to ready endpoints alone, as Kubernetes does', () => {
    const ending = { ready: false, serving: true, terminating: true };
    const all = [slice('web-1', endpoint('10.1.0.1', 'own1'), endpoint('10.1.0.2', 'own2', { conditions: ending }))];
    const [only] = seen(all, { trafficDistribution: 'PreferClose' });
    expect(only?.endpoints?.map(({ hints }) => hints)).toEqual([inZone, undefined]);
  });

  it('goes elsewhere while none of the member is ready', () => {
    const ending = { ready: false, serving: true, terminating: true };
    const all = [slice('web-1', endpoint('10.1.0.1', 'own1', { conditions: ending }), endpoint('10.2.0.1', 'x'))];
    expect(addresses(seen(all, { trafficDistribution: 'PreferClose' }))).toEqual(['10.1.0.1', '10.2.0.1']);
  });

  it('counts for each port and family by itself: what no pod of the member has is found elsewhere', () => {
    const ports = (name: string, protocol = 'TCP') => ({ ports: [{ name, port: 8080, protocol }] });
    const all: EndpointSlice[] = [
      { ...slice('web-1', endpoint('10.1.0.1', 'own1'), endpoint('10.2.0.1', 'x')), ...ports('http') },
      { ...slice('web-2', endpoint('10.2.0.2', 'y')), ...ports('admin') },
      { ...slice('web-3', endpoint('10.2.0.3', 'z')), ...ports('http', 'UDP') },
      { ...slice('web-4', endpoint('fd00::2', 'x')), ...ports('http'), addressType: 'IPv6' },
      { ...slice('web-5', endpoint('10.2.0.5', 'v')), ports: [...ports('http').ports, ...ports('admin').ports] },
      { ...slice('web-6', endpoint('10.2.0.6', 'w')), ...ports('http') },
      { ...slice('web-7', endpoint('10.2.0.7', 'u')), ports: [] },
    ];
    const told = seen(all, { trafficDistribution: 'PreferClose' });
    expect(addresses(told)).toEqual(['10.1.0.1', '10.2.0.2', '10.2.0.3', 'fd00::2', '10.2.0.5', '10.2.0.7']);
    const hinted = told.flatMap(({ endpoints = [] }) => endpoints).filter(({ hints }) => hints !== undefined);
    expect(hinted.map((one) => one.addresses)).toEqual([['10.1.0.1']]);
  });

  it('leaves headless Services alone, whose endpoints are called by their names', () => {
    const spec = { trafficDistribution: 'PreferClose', clusterIP: 'None' };
    expect(addresses(seen(slices, spec))).toEqual(['10.1.0.1', '10.2.0.1', '10.2.0.2']);
    expect(seen(slices, spec)[0]?.metadata.labels).toMatchObject({ 'service.kubernetes.io/headless': '' });
  });
});

it('whatever the host knows: what is told was told by it, each slice under a name of its own that stays', () => {
  const conditions = fc.record(
    { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
    { requiredKeys: [] },
  );
  const anEndpoint = fc
    .tuple(fc.integer({ min: 0, max: 40 }), fc.boolean(), fc.option(conditions, { nil: undefined }))
    .map(([n, isOwn, some]): Endpoint => {
      const { conditions: _, ...rest } = endpoint(`10.0.0.${n}`, isOwn ? `own${n}` : `x${n}`);
      return some === undefined ? rest : { ...rest, conditions: some };
    });
  const all = fc.array(fc.array(anEndpoint, { maxLength: 8 }), { maxLength: 4 });
  const specs = fc.constantFrom<Service['spec']>({}, { trafficDistribution: 'PreferClose' }, { clusterIP: 'None' });
  fc.assert(
    fc.property(all, specs, (lists, spec) => {
      const slices = lists.map((endpoints, i) => slice(`web-${i}`, ...endpoints));
      const told = seen(slices, spec);
      const known = new Set(addresses(slices));
      expect(addresses(told).every((address) => known.has(address))).toBe(true);
      expect(new Set(told.map(({ metadata }) => metadata.name)).size).toBe(told.length);
      const endpoints = told.flatMap((one) => one.endpoints ?? []);
      // A name of a node is one of the member, and whoever takes requests in the host is known, unless the member has some of its own.
      expect(endpoints.every(({ nodeName }) => nodeName === undefined || nodeName === 'n1')).toBe(true);
      const ready = (list: readonly EndpointSlice[], isOwn: boolean): Endpoint[] =>
        list
          .flatMap((one) => one.endpoints ?? [])
          .filter(
            (one) => one.conditions?.ready !== false && (!isOwn || one.targetRef?.uid?.startsWith('own') === true),
          );
      const ofOwn = ready(slices, true).length;
      const wanted = spec?.trafficDistribution !== undefined && ofOwn > 0 ? ofOwn : ready(slices, false).length;
      expect(endpoints.filter((one) => one.conditions?.ready !== false).length).toBe(wanted);
      expect(
        seen(slices.toReversed(), spec)
          .map(({ metadata }) => metadata.name)
          .toSorted(),
      ).toEqual(told.map(({ metadata }) => metadata.name).toSorted());
    }),
  );
});
