import { describe, expect, it } from 'vitest';
import { OpenCreations } from '../../src/pods/open-creations.ts';
import { eachInPodWorld, type PodWorld } from '../fixtures/pod-world.ts';
import { hostPod } from '../fixtures/pods.ts';

it('knows until when something may come of creations, by what was answered to each', () => {
  let now = 1_000;
  const open = new OpenCreations(() => now);
  expect(open.openMs).toBe(0);
  open.begun('a');
  expect(open.openMs).toBe(90_000);
  open.answered('a', 'carried-out');
  expect(open.openMs).toBe(0);
  open.begun('a');
  open.answered('a', { openMs: 60_000 });
  now += 10_000;
  // Nothing was sent, or it was refused: of the first one something may come still.
  open.begun('a');
  open.answered('a', undefined);
  open.begun('a');
  open.answered('a', 'refused');
  open.begun('b');
  open.answered('b', { openMs: 5_000 });
  expect(open.openMs).toBe(50_000);
  now += 50_000;
  expect(open.openMs).toBe(0);
  // One that was cut off counts from when it was begun.
  open.begun('c');
  now += 30_000;
  expect(open.openMs).toBe(60_000);
});

describe('a creation that could not be written down, and so was not sent', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  it.each([409, 503])('is not one of which something may come (%i)', async (code) => {
    const containers = [{ name: 'app', image: 'busybox' }];
    await world.stored(world.host, hostPod({ spec: { containers, restartPolicy: 'Never' } }));
    world.host.fault = ({ method }) =>
      method === 'PATCH' ? { code, reason: code === 409 ? 'Conflict' : '' } : undefined;
    await world.start();
    await world.follow(1_000);
    expect([world.host.requests('PATCH').length > 0, world.creations]).toEqual([true, []]);
    expect(world.controller.creationsOpenMs).toBe(0);
  });
});
