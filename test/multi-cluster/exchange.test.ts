import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExchangeWorld, soon } from './exchange-world.ts';

let world: ExchangeWorld;
beforeEach(async () => {
  world = await ExchangeWorld.start();
});
afterEach(async () => {
  await world.close();
});

const ALL = ['host', 'east', 'west'] as const;
const EXPORTED = ['Valid=True Valid', 'Ready=True Exported', 'Conflict=False NoConflicts'];
const PATH = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop';

test('what one cluster exports can be called in all, and what it does not export any more in none', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.offer('host', 'web', '10.0.0.1', { clusterIP: 'None' });
  world.export('east', 'db');
  world.export('host', 'web');
  for (const cluster of ALL) {
    await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.1.0.1 <- east']));
    await soon(() => expect(world.led(cluster, 'web')).toEqual(['10.0.0.1 <- local']));
    expect(world.importOf(cluster, 'web')?.spec.type).toBe('Headless');
    await soon(() => expect(world.importOf(cluster, 'db')?.status?.clusters).toEqual([{ cluster: 'east' }]));
  }
  await soon(() => expect(world.told('east', 'db')).toEqual(EXPORTED));
  await soon(() => expect(world.told('host', 'web')).toEqual(EXPORTED));
  world.unexport('east', 'db');
  world.unexport('host', 'web');
  for (const cluster of ALL) await soon(() => expect(world.ours(cluster)).toEqual([]));
});

test('a restart writes nothing', async () => {
  for (const cluster of ALL) {
    world.offer(cluster, 'db', '10.1.0.1');
    world.export(cluster, 'db');
  }
  for (const cluster of ALL) {
    await soon(() => expect(world.led(cluster, 'db')).toHaveLength(3));
    await soon(() => expect(world.told(cluster, 'db')).toEqual(EXPORTED));
    await soon(() => expect(world.importOf(cluster, 'db')?.status?.clusters).toHaveLength(3));
  }
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await world.stop();
  world.forgetWrites();
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(world.writes()).toEqual([]);
});

test('a lost member leads nowhere, but its name stays; one that is only silent leads where it did', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
  world.members.east.reachable = false;
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']);
  world.members.east.isLost = true;
  for (const cluster of ['host', 'west'] as const) await soon(() => expect(world.led(cluster, 'db')).toEqual([]));
  expect(world.importOf('west', 'db')).toBeDefined();
  Object.assign(world.members.east, { reachable: true, isLost: false });
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
});

test('a member exports from namespaces only that stand for one of the host and are lent to it', async () => {
  const inPrivate = PATH.replace('shop', 'private');
  world.write('east', 'POST', `${inPrivate}/serviceexports`, { metadata: { name: 'db' } });
  world.write('east', 'POST', '/api/v1/namespaces/private/services', { metadata: { name: 'db' }, spec: {} });
  const told = (): unknown =>
    (world.apis.east.objects.get(`${inPrivate}/serviceexports/db`) as { status?: { conditions?: unknown } } | undefined)
      ?.status?.conditions;
  await soon(() => expect(told()).toMatchObject([{}, { type: 'Ready', status: 'False', message: /not lent/ }]));
  world.members.west.mapping = { mapping: 'Prefixed', prefix: 'h-' };
  world.offer('west', 'db', '10.2.0.1');
  world.export('west', 'db');
  await soon(() => expect(world.told('west', 'db')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  expect(world.ours('host')).toEqual([]);
});

test('with a prefix names are the same and namespaces are mapped, both ways', async () => {
  world.members.west.mapping = { mapping: 'Prefixed', prefix: 'sh' };
  world.write('host', 'POST', '/api/v1/namespaces', { metadata: { name: 'op' } });
  world.offer('west', 'db', '10.2.0.1');
  world.export('west', 'db');
  await soon(() => expect(world.told('west', 'db')).toEqual(EXPORTED));
  const inHost = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/op/serviceimports/db';
  expect(world.apis.host.objects.get(inHost)).toBeDefined();
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.2.0.1 <- west']));
  expect(world.importOf('host', 'db')).toBeUndefined();
});

test('a copy that Spillway made of a Service of the host is not exported', async () => {
  world.offer('east', 'db', '10.1.0.1', {}, { 'spillway.dev/host': 'us' });
  world.export('east', 'db');
  await soon(() => expect(world.told('east', 'db')).toEqual(['Valid=False NoService', 'Ready=False Failed']));
});

test('a ServiceImport of somebody else stays, and keeps its name only', async () => {
  const spec = { type: 'ClusterSetIP', ports: [{ port: 1 }], ips: ['192.0.2.1'] };
  for (const cluster of ['host', 'west'] as const)
    world.write(cluster, 'POST', `${PATH}/serviceimports`, { metadata: { name: cluster }, spec });
  for (const name of ['host', 'west', 'other']) {
    world.offer('east', name, '10.1.0.1');
    world.export('east', name);
  }
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'other')).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.told('east', 'host')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ImportTaken'));
  expect(world.importOf('west', 'west')?.spec).toEqual(spec);
  expect(world.importOf('host', 'host')?.spec).toEqual(spec);
  expect(world.led('west', 'west')).toEqual([]);
});

test('another implementation is left in charge, in the member or in the host', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.offer('west', 'db', '10.2.0.1');
  world.export('east', 'db');
  world.export('west', 'db');
  await soon(() => expect(world.led('host', 'db')).toHaveLength(2));
  const spec = { type: 'ClusterSetIP', ports: [{ port: 1 }] };
  const foreign = (cluster: 'west' | 'host'): void => {
    world.write(cluster, 'POST', `${PATH}/serviceimports`, { metadata: { name: 'theirs' }, spec });
    world.write(cluster, 'PATCH', `${PATH}/serviceimports/theirs/status`, { status: { clusters: [{ cluster: 'c' }] } });
  };
  foreign('west');
  await soon(() => expect(world.ours('west')).toEqual([]));
  await soon(() => expect(world.led('host', 'db')).toEqual(['10.1.0.1 <- east']));
  expect(world.exchanges?.west.finding()?.reason).toBe('OtherImplementation');
  foreign('host');
  for (const cluster of ALL) await soon(() => expect(world.ours(cluster)).toEqual([]));
  expect(world.exchanges?.east.finding()).toMatchObject({ reason: 'OtherImplementation', message: /in the host/ });
});

test.each([
  ['wanted', false, 'NotExchanged'],
  ['isIsolated', true, 'NetworkIsolated'],
  ['isShared', true, 'SharedCluster'],
] as const)('all of ours goes from a member that takes no part any more: %s', async (what, value, reason) => {
  for (const cluster of ALL) {
    world.offer(cluster, 'db', '10.1.0.1');
    world.export(cluster, 'db');
  }
  await soon(() => expect(world.led('west', 'db')).toHaveLength(3));
  Object.assign(world.members.west, { [what]: value });
  await soon(() => expect(world.ours('west')).toEqual([]));
  await soon(() => expect(world.led('east', 'db')).toEqual(['10.1.0.1 <- east', '10.1.0.1 <- local']));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe(reason));
  expect(world.services('west').map(({ metadata }) => metadata.name)).toEqual(['db']);
});

test('what somebody changes of ours is put right', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
  world.write('west', 'PATCH', `${PATH}/serviceimports/db`, { spec: { type: 'Headless', ips: ['192.0.2.1'] } });
  await soon(() => expect(world.importOf('west', 'db')?.spec.type).toBe('ClusterSetIP'));
  world.write('host', 'DELETE', `${PATH}/serviceimports/db`, {});
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.importOf('host', 'db')?.status?.clusters).toEqual([{ cluster: 'east' }]));
});
