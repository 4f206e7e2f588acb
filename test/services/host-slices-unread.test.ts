import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ServiceWriter } from '../../src/services/service-writer.ts';
import { send, ServiceWorld } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  await world.close();
});

const sleep = async (ms: number): Promise<void> => {
  await new Promise((resolve) => setTimeout(resolve, ms));
};
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';

it('looks at no Service again while the slices of the host cannot be read, and at all of them once they can', async () => {
  world.run('a');
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  const first = world.start();
  await vi.waitFor(() => expect(world.led('web')).toEqual(['10.0.0.1']), { timeout: 10_000 });
  await first.stop();
  send(world.host, 'DELETE', `${SLICES}/web-1`, {});
  world.host.fault = ({ path }) => (path.includes('endpointslices') ? { code: 503 } : undefined);
  const looks = vi.spyOn(ServiceWriter.prototype, 'keep');
  world.start();
  await vi.waitFor(() => expect(looks).toHaveBeenCalled(), { timeout: 10_000 });
  await sleep(1_000);
  const before = looks.mock.calls.length;
  await sleep(2_500);
  expect(looks.mock.calls.length).toBe(before);
  looks.mockRestore();
  expect(world.led('web')).toEqual(['10.0.0.1']);
  world.host.fault = undefined;
  await vi.waitFor(() => expect(world.led('web')).toEqual([]), { timeout: 20_000 });
}, 40_000);
