import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExchangeWorld, soon } from './exchange-world.ts';

let world: ExchangeWorld;
beforeEach(async () => {
  world = await ExchangeWorld.start();
});
afterEach(async () => {
  await world.close();
});

const PATH = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop';
const ALL = ['host', 'east', 'west'] as const;

test('a namespace of a member in which nothing may be written holds up no other one, and the host is told of it all the same', async () => {
  const labels = { 'spillway.dev/allow-host': 'any' };
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
  const slices = '/apis/discovery.k8s.io/v1/namespaces/private/endpointslices';
  const led = (address: string): object => ({ endpoints: [{ addresses: [address], conditions: { ready: true } }] });
  for (const cluster of ALL) world.write(cluster, 'PATCH', '/api/v1/namespaces/private', { metadata: { labels } });
  const words = 'services is forbidden: User "u" cannot create resource "services" in the namespace "private"';
  world.apis.west.fault = ({ method, path }) =>
    method !== 'GET' && path.includes('/namespaces/private/') && !path.endsWith('/status')
      ? { code: 403, reason: 'Forbidden', message: words }
      : undefined;
  for (const name of ['a', 'b']) {
    const spec = { type: 'ClusterIP', clusterIP: '10.9.9.9', ports, ipFamilies: ['IPv4'] };
    world.write('west', 'POST', '/api/v1/namespaces/private/services', { metadata: { name }, spec });
    const metadata = { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } };
    world.write('west', 'POST', slices, { metadata, addressType: 'IPv4', ports, ...led('10.2.0.1') });
    world.write('west', 'POST', `${PATH.replace('shop', 'private')}/serviceexports`, { metadata: { name } });
  }
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('NamespaceRightMissing'));
  expect(world.exchanges?.west.finding()?.message).toContain(
    'cluster "west" refuses it: private (cluster west: services is forbidden',
  );
  world.offer('west', 'db', '10.2.0.9');
  world.export('west', 'db');
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.2.0.9 <- west']));
  await soon(() => expect(world.told('west', 'db')).toContain('Ready=True Exported'));
  expect(world.exchanges?.west.finding()?.reason).toBe('NamespaceRightMissing');
  for (const name of ['a', 'b']) world.write('west', 'PATCH', `${slices}/${name}-1`, led('10.2.0.2'));
  const inPrivate = (): unknown[] =>
    [...world.apis.east.objects].filter(([path]) => path.startsWith(`${slices}/`)).map(([, one]) => one);
  await soon(() => expect(JSON.stringify(inPrivate()).match(/10\.2\.0\.2/g)).toHaveLength(2));
  world.members.west.isLost = true;
  await soon(() => expect(JSON.stringify(inPrivate())).not.toContain('10.2.0'));
});

test('a member that lets no ServiceExport be told has the Services of others nevertheless, and is told once a right is there', async () => {
  await world.stop();
  world.limits = { problemMs: 500 };
  const message = 'serviceexports.multicluster.x-k8s.io "db" is forbidden: User "u" cannot patch';
  const isTold = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'PATCH' && path.includes('/serviceexports/');
  world.apis.west.fault = (request) => (isTold(request) ? { code: 403, reason: 'Forbidden', message } : undefined);
  world.run();
  for (const name of ['a', 'b', 'c']) {
    world.offer('west', name, '10.2.0.1');
    world.export('west', name);
  }
  for (const name of ['a', 'b', 'c'])
    for (const cluster of ALL) await soon(() => expect(world.led(cluster, name)).toEqual(['10.2.0.1 <- west']));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('NamespaceRightMissing'));
  world.forgetWrites();
  await sleep(2_200);
  expect(world.apis.west.seen.filter(isTold).length).toBeLessThan(7);
  world.apis.west.fault = undefined;
  for (const name of ['a', 'b', 'c'])
    await soon(() => expect(world.told('west', name)).toContain('Ready=True Exported'));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
});

test('a right that was missing for what is gone by now is told no more', async () => {
  await world.stop();
  world.limits = { problemMs: 300 };
  const message = 'services is forbidden: User "u" cannot create resource "services" in the namespace "shop"';
  world.apis.west.fault = ({ method }) => (method === 'POST' ? { code: 403, reason: 'Forbidden', message } : undefined);
  world.run();
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('NamespaceRightMissing'));
  world.members.west.reachable = false;
  await sleep(1_000);
  world.unexport('host', 'db');
  await soon(() => expect(world.importOf('host', 'db')).toBeUndefined());
  await sleep(1_000);
  world.members.west.reachable = true;
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
});

test('a host that refuses what a member exports is told as long as it does, and keeps no endpoints of one that is lost', async () => {
  world.offer('west', 'old', '10.2.0.1');
  world.export('west', 'old');
  await soon(() => expect(world.led('east', 'old')).toEqual(['10.2.0.1 <- west']));
  await world.stop();
  world.offer('west', 'db', '10.2.0.1');
  // These have nothing to write in the host.
  for (const name of ['db', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6']) world.export('west', name);
  const message = 'serviceimports.multicluster.x-k8s.io is forbidden: User "u" cannot create';
  world.apis.host.fault = ({ method, path }) =>
    method === 'POST' && path.endsWith('/serviceimports') ? { code: 403, reason: 'Forbidden', message } : undefined;
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ExchangeRightMissing'));
  await sleep(1_000);
  expect(world.exchanges?.west.finding()?.reason).toBe('ExchangeRightMissing');
  world.members.west.isLost = true;
  for (const cluster of ['host', 'east'] as const) await soon(() => expect(world.led(cluster, 'old')).toEqual([]));
});
