import { expect, test } from 'vitest';
import type { Service } from '../../src/kube/service.ts';
import { clustersIn, judgeExport, recordAnnotation, recordsIn } from '../../src/multi-cluster/export-record.ts';

const EXPORT = { metadata: { name: 'web', namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' } };
const service = (spec: Service['spec'], labels?: Record<string, string>): Service => ({
  metadata: { name: 'web', namespace: 'shop', ...(labels === undefined ? {} : { labels }) },
  spec: { ...spec },
});

test('what is told of a Service can be read again', () => {
  const spec = {
    clusterIP: '10.0.0.1',
    ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30_000 }],
    ipFamilies: ['IPv4'],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10 } },
  };
  const judged = judgeExport(EXPORT, service(spec));
  const record = {
    since: '2026-01-01T00:00:00Z',
    type: 'ClusterSetIP',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    ipFamilies: ['IPv4'],
    sessionAffinity: 'ClientIP',
    affinitySeconds: 10,
  };
  expect(judged).toEqual({ record });
  const annotations = { [recordAnnotation('east')]: JSON.stringify(record), 'example.com/other': 'x' };
  expect([...recordsIn(annotations)]).toEqual([['east', record]]);
});

test('a headless Service is told as such', () => {
  expect(judgeExport(EXPORT, service({ clusterIP: 'None' }))).toMatchObject({
    record: { type: 'Headless', ports: [] },
  });
});

test.each<[string, Service | undefined, object]>([
  ['no Service', undefined, { valid: 'NoService' }],
  ['a copy that Spillway made', service({}, { 'spillway.dev/host': 'abc' }), { valid: 'NoService' }],
  ['an alias', service({ type: 'ExternalName' }), { valid: 'InvalidServiceType' }],
])('%s is not exported', (_, found, refusal) => {
  expect(judgeExport(EXPORT, found)).toMatchObject({ refusal });
});

test('a Service that is out of bounds is not exported', () => {
  const ports = Array.from({ length: 101 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
  expect(judgeExport(EXPORT, service({ ports }))).toMatchObject({
    refusal: { failed: expect.stringContaining('100 ports') },
  });
  expect(judgeExport(EXPORT, service({}), 101)).toMatchObject({
    refusal: { failed: expect.stringContaining('101 EndpointSlices') },
  });
  expect(judgeExport(EXPORT, service({ sessionAffinity: 'x'.repeat(300) }))).toHaveProperty('refusal');
});

test('an annotation that is no record is none, and is known to be there', () => {
  const annotations = { [recordAnnotation('a')]: '{', [recordAnnotation('b')]: '{"type":1}' };
  expect(recordsIn(annotations).size).toBe(0);
  expect(clustersIn(annotations)).toEqual(['a', 'b']);
});

const HTTP = { name: 'http', port: 80, protocol: 'TCP', appProtocol: 'kubernetes.io/h2c' };
test.each<[string, Service['spec']]>([
  ['a name of a port', { ports: [{ ...HTTP, name: 'Not a label' }] }],
  ['a long name of a port', { ports: [{ ...HTTP, name: 'x'.repeat(64) }] }],
  ['a protocol', { ports: [{ ...HTTP, protocol: 'ICMP' }] }],
  ['an application protocol', { ports: [{ ...HTTP, appProtocol: 'a b' }] }],
  ['a session affinity', { ports: [HTTP], sessionAffinity: 'Always' }],
  ['a time', { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } }],
  ['a time of no affinity', { ports: [HTTP], sessionAffinityConfig: { clientIP: { timeoutSeconds: 10 } } }],
  ['a traffic policy', { ports: [HTTP], internalTrafficPolicy: 'Remote' }],
  ['no port', { ports: [] }],
])('what no API server would take is not told to any: %s', (_, spec) => {
  expect(judgeExport(EXPORT, service({ ports: [HTTP] }))).toHaveProperty('record');
  const failed = expect.stringContaining('that API servers do not take') as string;
  expect(judgeExport(EXPORT, service({ ports: [HTTP], ...spec }))).toEqual({ refusal: { failed } });
});
