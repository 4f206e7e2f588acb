import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually, ScopeWorld } from '../fixtures/member-scope.ts';

let world: ScopeWorld;
beforeEach(async () => {
  world = await ScopeWorld.start();
});
afterEach(async () => {
  await world.close();
});

const PREFIXED = { namespaces: { mapping: 'Prefixed', prefix: 'x-' } };

it.each([
  ['goes on', false],
  ['starts anew', true],
])('pods stay where they run when the namespace mapping is edited and the program %s', async (_, restarts) => {
  const first = world.scope('east');
  world.makePod('web-0', 'east');
  world.makePod('web-1', 'east');
  await eventually(() => expect([world.copy('web-0'), world.copy('web-1')]).not.toContain(undefined));
  await eventually(() => expect(world.hostPod('web-0')?.status?.conditions).toBeDefined());
  if (restarts) {
    await first.stop();
    world.scope('east', { spec: PREFIXED });
  } else {
    first.edit(PREFIXED);
  }
  world.makePod('new', 'east');
  await eventually(() => expect(world.copy('new', 'x-shop')).toBeDefined());
  world.member.edit('/api/v1/namespaces/shop/pods/web-0', { status: { phase: 'Running' } });
  await eventually(() => expect(world.hostPod('web-0')?.status?.phase).toBe('Running'));
  world.host.edit('/api/v1/namespaces/shop/pods/web-0', {
    metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
  });
  await eventually(() => expect([world.copy('web-0'), world.hostPod('web-0')]).toEqual([undefined, undefined]));
  expect(world.copy('web-1')).toBeDefined();
  expect(world.member.requests('DELETE').map(({ path }) => path)).toEqual(['/api/v1/namespaces/shop/pods/web-0']);
  expect([world.copy('web-0', 'x-shop'), world.copy('web-1', 'x-shop')]).toEqual([undefined, undefined]);
});
