import { afterEach, beforeEach, expect, it } from 'vitest';
import { HOST_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { send, ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  await world.close();
});

it('does not send again a slice that the member stores differently, and puts right what somebody changes of it', async () => {
  // As a webhook does that changes what is sent.
  world.member.fault = (request) => {
    const sent = structuredClone(request.body) as { endpoints?: object[] } | undefined;
    for (const endpoint of sent?.endpoints ?? []) Object.assign(endpoint, { zone: 'z9' });
    request.body = sent;
    return undefined;
  };
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  world.start();
  await until(() => world.led('web').length === 1);
  await world.atRest();
  expect(world.writes()).toEqual(['POST shop/services', 'POST shop/endpointslices']);
  const path = `/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/${world.slices('web')[0]?.metadata.name ?? ''}`;
  send(world.member, 'PATCH', path, { endpoints: [{ addresses: ['10.0.0.9'] }] });
  await until(() => world.led('web').join() === '10.0.0.1');
  world.lead('web', ['10.0.0.1', '10.0.0.2']);
  await until(() => world.led('web').length === 2);
  await world.atRest();
  expect(world.writes()).toHaveLength(4);
});

const HEADLESS = 'service.kubernetes.io/headless';
const PROXY = 'service.kubernetes.io/service-proxy-name';

// Node proxies look past slices that carry either label.
it.each(['Flat', 'Isolated'] as const)(
  'takes the mark of a headless Service off slices when it is one no more: %s',
  async (network) => {
    const selector = { app: 'web' };
    world.offer('web', { selector, clusterIP: 'None' });
    world.lead('web', ['10.1.0.1']);
    world.run('a');
    world.start('east', { network });
    await until(() => world.slices('web')[0]?.metadata.labels?.[HEADLESS] === '');
    world.withdraw('web');
    world.offer('web', { selector });
    await until(
      () => world.slices('web').length === 1 && world.slices('web')[0]?.metadata.labels?.[HEADLESS] === undefined,
    );
    expect(world.led('web')).toEqual(['10.1.0.1']);
  },
);

it('takes the name of another proxy off slices when the Service does not have it any more', async () => {
  world.offer('web');
  const path = '/api/v1/namespaces/shop/services/web';
  send(world.host, 'PATCH', path, { metadata: { labels: { [PROXY]: 'mesh' } } });
  world.lead('web', ['10.1.0.1']);
  world.run('a');
  world.start();
  await until(() => world.slices('web')[0]?.metadata.labels?.[PROXY] === 'mesh');
  send(world.host, 'PATCH', path, { metadata: { labels: { [PROXY]: null } } });
  await until(() => world.slices('web')[0]?.metadata.labels?.[PROXY] === undefined);
  expect(world.led('web')).toEqual(['10.1.0.1']);
});

/** Of EndpointSlices the account may read none but by a list. */
function refuseGet(): void {
  const message = 'endpointslices.discovery.k8s.io "x" is forbidden: User "u" cannot get resource "endpointslices"';
  world.member.fault = ({ method, path }) =>
    method === 'GET' && /\/endpointslices\/.+/.test(path) ? { code: 403, reason: 'Forbidden', message } : undefined;
}

it('leaves a slice alone whose labels somebody took off, tells of it once, and writes it anew when that is gone', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1'], 'web-1');
  world.lead('web', ['10.0.0.2'], 'web-2');
  world.run('a');
  const { services } = world.start();
  await until(() => world.led('web').length === 2);
  const [one] = world.slices('web');
  const path = `/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/${one?.metadata.name ?? ''}`;
  refuseGet();
  send(world.member, 'PATCH', path, { metadata: { labels: { [HOST_LABEL]: null } } });
  await until(() => services.finding()?.reason === 'NameTaken');
  expect(services.finding()?.message).toContain(`EndpointSlice shop/${one?.metadata.name ?? ''}`);
  expect(world.events).toEqual(['Warning NameTaken']);
  const pod: Pod = {
    metadata: { name: 'new', namespace: 'shop' },
    spec: { containers: [{ name: 'app', image: 'x' }] },
  };
  expect(services.require(pod)).toEqual({ ready: true });
  world.lead('web', ['10.0.0.3'], 'web-1');
  world.lead('web', ['10.0.0.4'], 'web-2');
  await until(() => world.led('web').filter((ip) => ['10.0.0.3', '10.0.0.4'].includes(ip)).length === 1);
  send(world.member, 'DELETE', path, {});
  services.changed();
  await until(() => world.led('web').join() === '10.0.0.3,10.0.0.4');
  await until(() => services.finding()?.reason === 'Mirrored');
  expect(world.events).toHaveLength(1);
});
