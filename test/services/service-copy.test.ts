import { describe, expect, it } from 'vitest';
import type { Service, ServiceSpec } from '../../src/kube/service.ts';
import { hostServiceProjection } from '../../src/services/host-service.ts';
import {
  type CopyPlace,
  isAsWanted,
  isMirrored,
  needsAnew,
  replacing,
  serviceCopy,
} from '../../src/services/service-copy.ts';

const PLACE: CopyPlace = { hostId: 'us', member: 'east', namespace: 'mapped' };
const service = (spec: ServiceSpec, metadata: object = {}): Service => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', ...metadata },
  spec,
});
const specOf = (spec: ServiceSpec): ServiceSpec | undefined => serviceCopy(service(spec), PLACE).spec;

const PORTS = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http', appProtocol: 'h2c', nodePort: 30_080 }];
const COPIED = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http', appProtocol: 'h2c' }];

it.each<[string, ServiceSpec, ServiceSpec]>([
  ['its ports, but those of nodes', { type: 'NodePort', clusterIP: '10.0.0.1', ports: PORTS }, { ports: COPIED }],
  ['no selector', { type: 'ClusterIP', selector: { app: 'web' } }, {}],
  ['no load balancer', { type: 'LoadBalancer', clusterIP: '10.0.0.1' }, {}],
  ['that it is headless', { clusterIP: 'None', clusterIPs: ['None'] }, { clusterIP: 'None' }],
  [
    'the affinity of sessions',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 7 } } },
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 7 } } },
  ],
  ['that it names those that are not ready', { publishNotReadyAddresses: true }, { publishNotReadyAddresses: true }],
  ['that traffic stays on a node', { internalTrafficPolicy: 'Local' }, { internalTrafficPolicy: 'Local' }],
  [
    'two families where both are required',
    { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
    { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
  ],
  [
    'the first family where a second one is welcome',
    { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'] },
    { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'] },
  ],
])('a copy has %s', (_, spec, wanted) => {
  expect(specOf(spec)).toEqual({ type: 'ClusterIP', ...wanted });
});

it('an external name stays one, without addresses', () => {
  const spec = { type: 'ExternalName', externalName: 'db.example.com', sessionAffinity: 'None' };
  expect(specOf(spec)).toEqual(spec);
});

it('a copy carries our marks, and of the labels of the Service only which proxy sees to it', () => {
  const proxy = 'service.kubernetes.io/service-proxy-name';
  const { metadata } = serviceCopy(service({}, { labels: { [proxy]: 'mesh', app: 'web' } }), PLACE);
  expect(metadata).toEqual({
    name: 'web',
    namespace: 'mapped',
    labels: { 'spillway.dev/host': 'us', 'spillway.dev/member': 'east', [proxy]: 'mesh' },
    annotations: { 'spillway.dev/host-namespace': 'shop', 'spillway.dev/host-name': 'web' },
  });
});

it.each([
  ['shop', 'web', true],
  ['shop', 'kubernetes', true],
  ['default', 'kubernetes', false],
  ['default', 'web', true],
  ['kube-system', 'kube-dns', false],
  ['kube-public', 'x', false],
  ['spillway-system', 'spillway', false],
])('whether Service %s/%s is taken along: %s, %s', (namespace, name, wanted) => {
  expect(isMirrored(service({}, { namespace, name }))).toBe(wanted);
});

it('a Service that Spillway made in the host does not stand in members, also as caches have it', () => {
  const labels = { 'spillway.dev/host': 'us', app: 'x' };
  const kept = hostServiceProjection(service({}, { name: 'derived-x', labels }));
  expect(kept.metadata.labels).toEqual({ 'spillway.dev/host': 'us' });
  expect(isMirrored(kept)).toBe(false);
});

describe('a copy that is there', () => {
  const host: ServiceSpec = {
    type: 'NodePort',
    clusterIP: '10.0.0.1',
    ports: PORTS,
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    publishNotReadyAddresses: false,
  };
  const wanted = serviceCopy(service(host), PLACE);
  /** As an API server answers. */
  const there = (spec: ServiceSpec = {}, metadata: object = {}): Service => ({
    metadata: { ...wanted.metadata, uid: 'c', resourceVersion: '9', ...metadata },
    spec: { ...wanted.spec, clusterIP: '10.9.0.1', clusterIPs: ['10.9.0.1'], ...spec },
  });

  it('is as wanted whatever the API server adds', () => {
    expect(isAsWanted(there(), wanted)).toBe(true);
    const annotations = { ...wanted.metadata.annotations, 'of/others': 'x' };
    expect(isAsWanted(there({ trafficDistribution: 'PreferClose' }, { annotations }), wanted)).toBe(true);
  });

  it.each<[string, ServiceSpec, object]>([
    ['a selector', { selector: { app: 'x' } }, {}],
    ['other ports', { ports: [{ port: 81 }] }, {}],
    ['another type', { type: 'LoadBalancer' }, {}],
    ['no address', { clusterIP: 'None' }, {}],
    ['another affinity', { sessionAffinity: 'ClientIP' }, {}],
    ['another family', { ipFamilies: ['IPv6'] }, {}],
    ['the mark of another MemberCluster', {}, { labels: { 'spillway.dev/host': 'us', 'spillway.dev/member': 'west' } }],
  ])('is not as wanted with %s', (_, spec, metadata) => {
    expect(isAsWanted(there(spec, metadata), wanted)).toBe(false);
  });

  it('keeps its address when it is replaced', () => {
    const { metadata, spec } = replacing(there({ selector: { app: 'x' } }), wanted);
    expect(metadata).toMatchObject({ uid: 'c', resourceVersion: '9' });
    expect(spec).toMatchObject({ clusterIP: '10.9.0.1', clusterIPs: ['10.9.0.1'], ipFamilies: ['IPv4'] });
    expect(spec?.selector).toBeUndefined();
  });

  it('gives its address up when it becomes a name', () => {
    const named = serviceCopy(service({ type: 'ExternalName', externalName: 'x.example.com' }), PLACE);
    expect(needsAnew(there(), named)).toBe(false);
    expect(replacing(there(), named).spec).toEqual({ type: 'ExternalName', externalName: 'x.example.com' });
  });

  it('is made anew where an API server would refuse the change', () => {
    expect(needsAnew(there(), wanted)).toBe(false);
    expect(needsAnew(there({ clusterIP: 'None' }), wanted)).toBe(true);
    expect(needsAnew(there({ ipFamilies: ['IPv6'] }), wanted)).toBe(true);
  });
});
