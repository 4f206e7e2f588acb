import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExchangeWorld, soon } from './exchange-world.ts';

let world: ExchangeWorld;
beforeEach(async () => {
  world = await ExchangeWorld.start();
  await world.stop();
  // Room for two Services of 80 endpoints, and a third one only when one of them is gone.
  world.limits = { maxExportBytes: 36 * 1024, problemMs: 500 };
});
afterEach(async () => {
  await world.close();
});

const EXPORTS = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports';
const REFUSED = ['Valid=True Valid', 'Ready=False Failed'];

function offer(name: string, size: number): void {
  world.offer('east', name, '10.1.0.1');
  world.resize('east', name, size);
  world.export('east', name);
}

test('beyond what a member may export nothing more comes, what is exported stays, and a restart changes nothing', async () => {
  world.run();
  for (const name of ['b', 'c']) {
    offer(name, 80);
    await soon(() => expect(world.led('west', name)).toHaveLength(80));
  }
  offer('a', 80);
  await soon(() => expect(world.told('east', 'a')).toEqual(REFUSED));
  expect(world.apis.east.objects.get(`${EXPORTS}/a`)).toMatchObject({
    status: { conditions: [{}, { message: expect.stringMatching(/would export more than .* MiB/) as string }] },
  });
  for (const cluster of ['host', 'west'] as const) expect(world.led(cluster, 'a')).toEqual([]);
  await sleep(1_000);
  await world.stop();
  world.forgetWrites();
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
  await sleep(1_500);
  expect(world.writes()).toEqual([]);
  world.unexport('east', 'b');
  await soon(() => expect(world.led('west', 'a')).toHaveLength(80));
  expect(world.led('west', 'c')).toHaveLength(80);
});

test('an export that grows beyond the room pushes out no other, and comes back when it is smaller', async () => {
  world.run();
  for (const name of ['a', 'b']) {
    offer(name, 80);
    await soon(() => expect(world.led('west', name)).toHaveLength(80));
  }
  world.resize('east', 'a', 200);
  await soon(() => expect(world.told('east', 'a')).toEqual(REFUSED));
  for (const cluster of ['host', 'west'] as const) await soon(() => expect(world.led(cluster, 'a')).toEqual([]));
  expect(world.led('west', 'b')).toHaveLength(80);
  world.resize('east', 'a', 80);
  await soon(() => expect(world.led('west', 'a')).toHaveLength(80));
  await soon(() => expect(world.told('east', 'a')).toContain('Ready=True Exported'));
});

test('what others export is not kept in memory for each member', async () => {
  world.run();
  offer('db', 80);
  await soon(() => expect(world.led('west', 'db')).toHaveLength(80));
  await soon(() => expect(world.exchanges?.west.inMember()).toHaveLength(3));
  expect(JSON.stringify(world.exchanges?.west.inMember())).not.toContain('10.1.0.1');
});

test('a Service of several EndpointSlices rests between changes, and the last one is told', async () => {
  world.run();
  world.offer('east', 'db', '10.1.0.1');
  const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
  const change = (round: number): void => {
    for (let i = 0; i < 10; i++) {
      const endpoints = [{ addresses: [`10.2.${i}.${round}`], conditions: { ready: true } }];
      world.write('east', 'PATCH', `${slices}/more-${i}`, { endpoints });
    }
  };
  for (let i = 0; i < 10; i++) {
    const metadata = { name: `more-${i}`, labels: { 'kubernetes.io/service-name': 'db' } };
    const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];
    world.write('east', 'POST', slices, { metadata, addressType: 'IPv4', ports, endpoints: [] });
  }
  change(0);
  world.export('east', 'db');
  await soon(() => expect(world.led('west', 'db')).toHaveLength(11));
  world.forgetWrites();
  for (let round = 1; round <= 60; round++) {
    change(round);
    await sleep(50);
  }
  await soon(() => expect(world.led('west', 'db')).toContain('10.2.9.60 <- east'));
  const told = world.writes().filter((write) => write.startsWith('host: PUT'));
  expect(told.length).toBeLessThanOrEqual(40);
}, 20_000);
