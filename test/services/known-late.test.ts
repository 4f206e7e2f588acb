import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { MemoryApi } from '../fixtures/memory-api.ts';
import { ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

/** Pods are not shown, as in a cluster that has so many that their list takes its time. */
function hidePods(api: MemoryApi): void {
  api.fault = ({ method, path }) => (method === 'GET' && path.endsWith('/pods') ? { code: 503 } : undefined);
}

/** All that can be done without what is not known has been done: caches were read, and each Service was looked at. */
async function idle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
}

it('after a start no endpoint of an isolated member goes before the pods of the host are known', async () => {
  world.offer('web', { selector: { app: 'web' } });
  world.run('a', { ip: '10.9.0.1' });
  const first = world.start('east', { network: 'Isolated', always: ['shop'] });
  await until(() => world.led('web').join() === '10.9.0.1');
  await first.stop();
  world.forgetWrites();
  hidePods(world.host);
  world.start('east', { network: 'Isolated', always: ['shop'] });
  await idle();
  world.offer('late', { selector: { app: 'web' } });
  await until(() => world.copy('late') !== undefined);
  expect(world.writes()).toEqual(['POST shop/services']);
  world.host.fault = undefined;
  await vi.waitFor(() => expect(world.led('late')).toEqual(['10.9.0.1']), { timeout: 20_000 });
  expect(world.led('web')).toEqual(['10.9.0.1']);
  expect(world.writes()).toEqual(['POST shop/services', 'POST shop/endpointslices']);
}, 40_000);

it('after a start nothing is written before the pods of the member are known', async () => {
  world.offer('web');
  world.run('a', { ip: '10.9.0.1' });
  world.leadToPods('web', { a: '10.9.0.1' });
  const first = world.start();
  await until(() => world.slices('web')[0]?.endpoints?.[0]?.nodeName === 'n1');
  await first.stop();
  world.forgetWrites();
  hidePods(world.member);
  world.start('east', { always: ['shop'] });
  await idle();
  expect(world.writes()).toEqual([]);
  world.member.fault = undefined;
  world.run('b', { ip: '10.9.0.2' });
  world.leadToPods('web', { a: '10.9.0.1', b: '10.9.0.2' });
  await vi.waitFor(() => expect(world.led('web')).toHaveLength(2), { timeout: 20_000 });
  expect(world.slices('web')[0]?.endpoints?.map(({ nodeName }) => nodeName)).toEqual(['n1', 'n1']);
  expect(world.writes()).toEqual([expect.stringMatching(/^PUT endpointslices/)]);
}, 40_000);

it('what the host tells is told on where the member has refused to show its pods for two minutes', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.member.fault = ({ method, path }) =>
    method === 'GET' && path.endsWith('/pods') ? { code: 403, reason: 'Forbidden' } : undefined;
  world.start('east', { always: ['shop'] });
  await idle();
  expect(world.writes()).toEqual([]);
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 130_000);
  await until(() => world.led('web').join() === '10.0.0.1');
});

it('what changed while the member did not answer is told within moments after it does', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1', '10.0.0.2']);
  world.run('a');
  const running = world.start();
  await until(() => world.led('web').length === 2);
  running.reachable = false;
  world.lead('web', ['10.0.0.2']);
  await idle();
  expect(world.led('web')).toHaveLength(2);
  running.reachable = true;
  await vi.waitFor(() => expect(world.led('web')).toEqual(['10.0.0.2']), { timeout: 2_500 });
});
