import { expect, test } from 'vitest';
import type { ExportRecord } from '../../src/multi-cluster/export-record.ts';
import { acceptedPorts, mergeExports } from '../../src/multi-cluster/merged-service.ts';

const HTTP = { name: 'http', port: 80, protocol: 'TCP' } as const;

function record(more: Partial<ExportRecord> = {}): ExportRecord {
  return {
    since: '2026-01-01T00:00:00Z',
    type: 'ClusterSetIP',
    ports: [HTTP],
    ipFamilies: ['IPv4'],
    sessionAffinity: 'None',
    ...more,
  };
}
const later = '2026-01-02T00:00:00Z';
const merge = (records: Record<string, ExportRecord>) => mergeExports(new Map(Object.entries(records)));

test('nothing comes of no exports', () => {
  expect(merge({})).toBeUndefined();
});

test('clusters that agree have no conflict, and all are named', () => {
  const merged = merge({ west: record(), east: record({ since: later }) });
  expect(merged).toMatchObject({ type: 'ClusterSetIP', ports: [HTTP], clusters: ['east', 'west'], conflicts: [] });
});

test.each<[string, Partial<ExportRecord>, string]>([
  ['headless or not', { type: 'Headless' }, 'TypeConflict'],
  ['ports', { ports: [{ ...HTTP, port: 8080 }] }, 'PortConflict'],
  ['session affinity', { sessionAffinity: 'ClientIP' }, 'SessionAffinityConflict'],
  ['its time', { affinitySeconds: 5 }, 'SessionAffinityConfigConflict'],
  ['internal traffic', { internalTrafficPolicy: 'Local' }, 'InternalTrafficPolicyConflict'],
  ['distribution', { trafficDistribution: 'PreferClose' }, 'TrafficDistributionConflict'],
  ['address families', { ipFamilies: ['IPv6'] }, 'IPFamilyConflict'],
])('where they differ in %s, the oldest export counts', (_, difference, reason) => {
  const old = merge({ east: record(difference), west: record({ since: later }) });
  expect(old).toMatchObject({ ...difference, leader: 'east', conflicts: [reason] });
  const young = merge({ east: record({ ...difference, since: later }), west: record() });
  expect(young).toMatchObject({
    type: 'ClusterSetIP',
    ports: [HTTP],
    sessionAffinity: 'None',
    leader: 'west',
    conflicts: [reason],
  });
});

test('the host counts before any member, however old that says its export is', () => {
  const merged = merge({
    evil: record({ since: '1970-01-01T00:00:00Z', type: 'Headless' }),
    local: record({ since: later }),
  });
  expect(merged).toMatchObject({ type: 'ClusterSetIP', leader: 'local' });
});

test('ports are a union, of which each name and number stands once', () => {
  const merged = merge({
    east: record({ ports: [HTTP, { name: 'dns', port: 53, protocol: 'UDP' }] }),
    west: record({
      since: later,
      ports: [
        { name: 'http', port: 81, protocol: 'TCP' },
        { name: 'web', port: 80 },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
    }),
  });
  expect(merged?.ports).toEqual([
    HTTP,
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  ]);
  expect(merged?.conflicts).toEqual(['PortConflict']);
});

test('a port without a name stays alone, as no Service may have it beside others', () => {
  const merged = merge({
    east: record({ ports: [{ port: 80 }] }),
    west: record({ since: later, ports: [{ name: 'b', port: 81 }] }),
  });
  expect(merged?.ports).toEqual([{ port: 80 }]);
});

test('a cluster whose port has another number gets no callers of it', () => {
  const west = record({
    since: later,
    ports: [
      { ...HTTP, port: 81 },
      { name: 'more', port: 82 },
    ],
  });
  const merged = merge({ east: record(), west });
  if (merged === undefined) throw new Error('nothing came of it');
  expect([...acceptedPorts(west, merged)]).toEqual(['more']);
  expect([...acceptedPorts(record(), merged)]).toEqual(['http']);
});
