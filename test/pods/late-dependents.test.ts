import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { hostPod } from '../fixtures/pods.ts';
import { PodWorld, PODS } from '../fixtures/pod-world.ts';

let world: PodWorld;

beforeEach(() => {
  vi.useFakeTimers();
  world = new PodWorld();
  // So that the controller only listens.
  world.frozen = 'the test says so';
});
afterEach(async () => {
  await world.end();
  vi.useRealTimers();
});

/** The pod's status on the host says so, and everybody hears of it. */
async function say(status: 'True' | 'Unknown', message: string, phase = 'Pending'): Promise<void> {
  const pod = world.podIn(world.host, `${PODS}/web-0`);
  const conditions = [{ type: MIRRORED_CONDITION, status, message }];
  world.host.put(`${PODS}/web-0`, { ...pod, status: { ...pod.status, phase, conditions } });
  await world.follow(1_000);
}
const mirroredIn = (pod: Pod | undefined): string | undefined =>
  pod?.status?.conditions?.find(({ type }) => type === MIRRORED_CONDITION)?.status;

it('what a copy needs is noted once it is known to be there, whoever asked for it: status changes count no generation', async () => {
  await world.stored(world.host, hostPod());
  await say('Unknown', 'member=east namespace=shop name=web-0');
  await world.start();
  expect(world.tracked.map(mirroredIn)).toEqual(['Unknown']);
  await say('True', 'member=east namespace=shop name=web-0 uid=copy-1');
  expect(world.tracked.map(mirroredIn)).toEqual(['Unknown', 'True']);
  // Nothing else of a status is about what the copy needs.
  await say('True', 'member=east namespace=shop name=web-0 uid=copy-1', 'Running');
  expect(world.tracked).toHaveLength(2);
});
