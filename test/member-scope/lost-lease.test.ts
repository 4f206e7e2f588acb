import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually, ScopeWorld } from '../fixtures/member-scope.ts';

let world: ScopeWorld;
beforeEach(async () => {
  world = await ScopeWorld.start();
});
afterEach(async () => {
  await world.close();
});

it('what a virtual node was about to send to the host stays unsent once the lease is lost, but for reads and questions', async () => {
  let held = true;
  const { services } = world.scope('east', { leaseHeld: () => held });
  await eventually(() => expect(world.node('east')).toBeDefined());
  world.makePod('web', 'east');
  await eventually(() => expect(world.copy('web')).toBeDefined());
  const client = services.nodeClients.get('east');
  if (client === undefined) throw new Error('the virtual node has no client');
  const path = '/api/v1/namespaces/shop/pods/web';
  const annotate = async () =>
    await client.request({
      method: 'PATCH',
      path,
      body: { metadata: { annotations: { a: '1' } } },
      contentType: 'application/merge-patch+json',
    });
  await annotate();
  held = false;
  const before = world.writes('host').length;
  await expect(annotate()).rejects.toThrow('not sent: the lease is not held any more');
  await expect(client.request({ method: 'DELETE', path })).rejects.toMatchObject({ kind: 'aborted' });
  await client.request({ method: 'GET', path });
  expect(world.writes('host').slice(before)).toEqual([]);
  expect(world.hostPod('web')).toBeDefined();
});
