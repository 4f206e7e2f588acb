import { expect, it } from 'vitest';
import { HOST_NAME_ANNOTATION, NODE_LABEL } from '../../src/api/marks.ts';
import { OwnCopies } from '../../src/pods/own-copies.ts';
import { HOST_ID, hostPod, memberPod } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld } from '../fixtures/pod-world.ts';

let world: PodWorld;
eachInPodWorld((begun) => (world = begun));

/** Copies whose host pods nobody has seen. */
async function orphans(count: number, node = 'east'): Promise<void> {
  for (let index = 0; index < count; index++) {
    const name = `${node}-${index}`;
    const labels = { ...memberPod().metadata.labels, [NODE_LABEL]: node };
    const annotations = { ...memberPod().metadata.annotations, [HOST_NAME_ANNOTATION]: name };
    await world.stored(world.member, memberPod({ metadata: { name, labels, annotations } }));
  }
}

it('the allowance is by the pods of the virtual node, whatever other node pools of the member run', async () => {
  await orphans(30);
  await orphans(300, 'west');
  const copies = new OwnCopies({
    member: { pods: world.memberPods.informer },
    hostId: HOST_ID,
    nodeName: 'east',
    namespaces: { memberNamespaceOf: (namespace) => namespace },
  });
  expect(copies.all.length).toBe(0);
  await world.start();
  expect(copies.all.length).toBe(30);
  await world.follow(180_000);
  expect(world.controller.orphanedPods).toMatchObject({ open: true });
  expect(world.member.requests('DELETE').length).toBeLessThanOrEqual(5);
  const { uids } = world.controller.orphanedPods;
  expect(uids.length).toBeGreaterThanOrEqual(25);
  // Each is asked about again and again; that is said and counted once.
  const { values } = await world.metrics.orphaned.get();
  expect(values).toMatchObject([{ labels: { node: 'east' }, value: uids.length }]);
});

it('what was permitted counts when the virtual node begins anew in the same process', async () => {
  await orphans(5);
  await world.start();
  await world.follow(70_000);
  expect(world.member.requests('DELETE').length).toBe(5);
  const { permits } = world;
  await world.end();
  world.permits = permits;
  await orphans(5);
  await world.start();
  await world.follow(70_000);
  expect(world.member.requests('DELETE')).toEqual([]);
  expect(world.controller.orphanedPods).toMatchObject({ open: true, uids: { length: 5 } });
});

it('an open breaker does not close while nothing may be done, and holds back what is seen afterwards', async () => {
  world.breakerOpen = true;
  await orphans(5);
  world.frozen = 'the member is not known to be the pinned cluster';
  await world.start();
  await world.follow(900_000);
  expect(world.controller.orphanedPods.open).toBe(true);
  world.frozen = undefined;
  world.controller.requeueAll();
  await world.follow(120_000);
  expect(world.controller.orphanedPods).toMatchObject({ open: true, uids: { length: 5 } });
  expect(world.member.requests('DELETE')).toEqual([]);
});

it('an open breaker does not close while it is not known what became of host pods', async () => {
  world.breakerOpen = true;
  await orphans(1);
  world.host.fault = ({ method }) => (method === 'GET' ? { code: 503, reason: 'ServiceUnavailable' } : undefined);
  await world.start();
  await world.follow(900_000);
  expect(world.controller.orphanedPods).toMatchObject({ open: true, uids: [] });
});

it.each(['hostPods', 'memberPods'] as const)(
  'an open breaker does not close while %s cannot be read',
  async (cache) => {
    world.breakerOpen = true;
    world[cache].problem = 'no answer';
    await world.start();
    await world.follow(900_000);
    expect(world.controller.orphanedPods.open).toBe(true);
    world[cache].problem = undefined;
    await world.follow(420_000);
    expect(world.controller.orphanedPods.open).toBe(false);
  },
);

it('an open breaker closes when it has had nothing to hold back for five minutes', async () => {
  world.breakerOpen = true;
  await world.copied(await world.stored(world.host, hostPod()));
  world.frozen = 'not yet';
  await world.start();
  await world.follow(120_000);
  world.frozen = undefined;
  await world.follow(290_000);
  expect(world.controller.orphanedPods.open).toBe(true);
  await world.follow(150_000);
  expect(world.controller.orphanedPods.open).toBe(false);
});
