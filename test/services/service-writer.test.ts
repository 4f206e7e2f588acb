import { afterEach, beforeEach, expect, it } from 'vitest';
import { send, ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  await world.close();
});

it('does not send again a Service that the member stores differently, and puts right what somebody changes of it', async () => {
  // As a webhook does that changes what is sent.
  world.member.fault = (request) => {
    const sent = structuredClone(request.body) as { spec?: object } | undefined;
    if (sent?.spec !== undefined) Object.assign(sent.spec, { internalTrafficPolicy: 'Local' });
    request.body = sent;
    return undefined;
  };
  world.offer('web', { internalTrafficPolicy: 'Cluster' });
  world.run('a');
  world.start();
  await until(() => world.copy('web')?.spec?.internalTrafficPolicy === 'Local');
  await world.atRest();
  expect(world.writes()).toEqual(['POST shop/services']);
  const path = '/api/v1/namespaces/shop/services/web';
  send(world.member, 'PATCH', path, { metadata: { annotations: { 'of/others': 'x' } } });
  await world.atRest();
  expect(world.writes()).toHaveLength(1);
  send(world.member, 'PATCH', path, { spec: { ports: [{ port: 81, protocol: 'TCP' }] } });
  await until(() => world.copy('web')?.spec?.ports?.[0]?.port === 80);
  send(world.host, 'PATCH', path, { spec: { ports: [{ port: 82, protocol: 'TCP' }] } });
  await until(() => world.copy('web')?.spec?.ports?.[0]?.port === 82);
  await world.atRest();
  expect(world.writes()).toEqual(['POST shop/services', 'PUT services/web', 'PUT services/web']);
});
