import { expect, test } from 'vitest';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import type { ExportRecord } from '../../src/multi-cluster/export-record.ts';
import { ExportRoom, exportSize } from '../../src/multi-cluster/export-room.ts';
import { importedSlices } from '../../src/multi-cluster/imported-slices.ts';

const RECORD: ExportRecord = {
  since: '2026-01-01T00:00:00Z',
  type: 'ClusterSetIP',
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  ipFamilies: ['IPv4'],
  sessionAffinity: 'None',
};

function slice(size: number, endpoint: object = {}, ports: object[] = [{ name: 'http', port: 8080 }]): EndpointSlice {
  return {
    metadata: { namespace: 'shop', name: 'web-x1' },
    addressType: 'IPv4',
    endpoints: Array.from({ length: size }, (_, i) => ({
      addresses: [`10.123.${i >> 8}.${i & 255}`],
      conditions: { ready: i % 2 === 0, serving: true, terminating: false },
      zone: 'eu-central-1a',
      ...endpoint,
    })),
    ports,
  };
}

test('three Services of as many EndpointSlices as Kubernetes makes of 10,000 pods have room in 8 MiB', () => {
  const slices = Array.from({ length: 100 }, () => slice(100));
  expect(3 * exportSize(RECORD, slices)).toBeLessThan(0.9 * 8 * 1024 * 1024);
  expect(1_000 * exportSize(RECORD, [slice(20)])).toBeLessThan(0.9 * 8 * 1024 * 1024);
});

test.each<[string, EndpointSlice]>([
  ['an endpoint', slice(1_000)],
  ['its zone', slice(10, { zone: 'z'.repeat(100_000) })],
  ['all of its addresses', slice(10, { addresses: Array.from({ length: 1_000 }, (_, i) => `10.0.0.${i}`) })],
  [
    'ports',
    slice(
      1,
      {},
      Array.from({ length: 10_000 }, () => ({ name: 'http', port: 8080 })),
    ),
  ],
  ['one with little in it', slice(1)],
])('what is told of a slice is never more than it counts for: %s', (_, one) => {
  const place = { hostId: 'abc', member: 'west', namespace: 'shop', name: 'web' };
  const source = { hostKey: 'shop/web', type: 'ClusterSetIP', cluster: 'east', ports: undefined } as const;
  const told = importedSlices({ ...source, slices: [one] }, place);
  expect(told).toHaveLength(1);
  expect(exportSize(RECORD, [one])).toBeGreaterThan(JSON.stringify(told).length);
});

test('what others know of, or has room, may fill the room, and what is new a part of it', () => {
  const room = new ExportRoom(1_000);
  expect(room.take('a', 500, false)).toBe(true);
  expect(room.take('b', 401, false)).toBe(false);
  expect(room.take('b', 401, true)).toBe(true);
  expect(room.take('b', 500, false)).toBe(true);
  expect(room.take('b', 501, true)).toBe(false);
  expect(room.take('b', 500, false)).toBe(false);
  expect(room.take('c', 400, false)).toBe(true);
  room.give('c');
  room.give('c');
  expect(room.take('b', 400, false)).toBe(true);
});
