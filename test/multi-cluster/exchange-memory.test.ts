import { afterEach, beforeEach, expect, test } from 'vitest';
import { CacheRoom } from '../../src/kube/cache-room.ts';
import { ExchangeWorld, soon } from './exchange-world.ts';

const BYTES = 4 * 1024 * 1024;
const room = new CacheRoom(BYTES).share();
let world: ExchangeWorld;
beforeEach(async () => {
  world = await ExchangeWorld.start();
  await world.stop();
  world.limits = { problemMs: 500 };
  world.rooms.west = room;
});
afterEach(async () => {
  await world.close();
  room.end();
});

const full = {
  reason: 'CacheLimit',
  message: expect.stringMatching(/no room in memory for more .*a larger heap/) as string,
};

test('what is not read of a member as memory is full is told as that, and not as a right that is missing', async () => {
  world.export('west', 'db');
  room.change(BYTES);
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()).toMatchObject(full));
});

test('what does not stand in a member as memory is full is told, and stands there once there is room', async () => {
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
  room.change(BYTES);
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.exchanges?.west.finding()).toMatchObject(full));
  await soon(() => expect(world.led('east', 'db')).toEqual(['10.0.0.1 <- local']));
  expect(world.led('west', 'db')).toEqual([]);
  room.change(-BYTES);
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
});
