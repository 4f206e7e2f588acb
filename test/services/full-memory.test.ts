import { afterEach, beforeEach, expect, it } from 'vitest';
import { HOST_LABEL } from '../../src/api/marks.ts';
import { CacheRoom } from '../../src/kube/cache-room.ts';
import { send, ServiceWorld, until } from './service-world.ts';

const BYTES = 4 * 1024 * 1024;
const room = new CacheRoom(BYTES).share();
let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
  world.room = room;
});
afterEach(async () => {
  await world.close();
  room.end();
});

const words = expect.stringMatching(/no room in memory for more services of cluster member.*a larger heap/) as string;

it('tells that memory is full where what a member shows is not read for that, and not of a right that is missing', async () => {
  const metadata = { name: 'left', labels: { [HOST_LABEL]: 'us' } };
  send(world.member, 'POST', '/api/v1/namespaces/shop/services', { metadata, spec: { ports: [{ port: 1 }] } });
  room.change(BYTES);
  const { services } = world.start();
  await until(() => services.finding() !== undefined);
  expect(services.finding()).toMatchObject({ reason: 'CacheLimit', message: words });
});

it('holds no pods up for a Service that is not made as memory is full, and tells of it', async () => {
  world.offer('web');
  world.run('a');
  const { services } = world.start();
  const spec = { containers: [{ name: 'app', image: 'busybox' }] };
  const pod = { metadata: { name: 'new', namespace: 'shop', uid: 'u' }, spec };
  await until(() => services.require(pod).ready && services.finding()?.reason === 'Mirrored');
  room.change(BYTES);
  world.offer('more');
  await until(() => !services.require(pod).ready);
  await until(() => services.finding()?.reason === 'CacheLimit');
  expect(services.finding()?.message).toEqual(words);
  expect(services.require(pod)).toEqual({ ready: true });
  expect(world.events).toEqual(['Warning CacheLimit']);
  room.change(-BYTES);
  services.changed();
  await until(() => world.copy('more') !== undefined && services.finding()?.reason === 'Mirrored');
});

it('does not send a change for which there is no room, and tells of it', async () => {
  world.offer('web');
  world.run('a');
  const { services } = world.start();
  await until(() => world.copy('web') !== undefined && services.finding()?.reason === 'Mirrored');
  world.forgetWrites();
  room.change(BYTES);
  const ports = Array.from({ length: 40 }, (_, i) => ({ name: `p${i}`, port: 8000 + i, protocol: 'TCP' }));
  send(world.host, 'PATCH', '/api/v1/namespaces/shop/services/web', { spec: { ports } });
  await until(() => services.finding()?.reason === 'CacheLimit');
  expect(services.finding()?.message).toEqual(words);
  expect(world.writes()).toEqual([]);
  room.change(-BYTES);
  services.changed();
  await until(() => world.copy('web')?.spec?.ports?.length === 40 && services.finding()?.reason === 'Mirrored');
});
