import { afterEach, beforeEach, expect, it } from 'vitest';
import { quantile } from '../../bench/measurement.ts';
import { SERVICE_WAITS } from '../../src/services/member-services-options.ts';
import { ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  await world.close();
});

const PODS = 1_000;
/** As Kubernetes makes them. */
const IN_SLICE = 100;
/** How many are replaced between two looks: 100 a second. */
const AT_ONCE = 5;
const LOOK_MS = 50;
/** What docs/concepts/services.md says. */
const PROMISED_MS = 5_000;

it('with 1,000 endpoints that are all replaced, each is gone from the member within 5 s, and slices are not written for each', async () => {
  const slices = Array.from({ length: PODS / IN_SLICE }, (_, slice) =>
    Array.from({ length: IN_SLICE }, (_one, i) => `10.1.${slice}.${i}`),
  );
  const tell = (slice: number): void => world.lead('web', slices[slice] ?? [], `web-${slice}`);
  world.offer('web');
  slices.forEach((_, slice) => tell(slice));
  world.run('a');
  world.start('east', { waits: SERVICE_WAITS });
  await until(() => world.led('web').length === PODS);
  world.forgetWrites();
  /** By address, when the host ceased to tell of it. */
  const withdrawn = new Map<string, number>();
  const lags: number[] = [];
  const replace = (turn: number): void => {
    // A roll-out takes pods of all slices.
    const slice = turn % slices.length;
    const index = Math.floor(turn / slices.length);
    const [old] = slices[slice]?.splice(index, 1, `10.2.${slice}.${index}`) ?? [];
    if (old !== undefined) withdrawn.set(old, performance.now());
    tell(slice);
  };
  const turns = Array.from({ length: PODS }, (_, turn) => turn);
  while (turns.length > 0 || withdrawn.size > 0) {
    for (const turn of turns.splice(0, AT_ONCE)) replace(turn);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const told = new Set(world.led('web'));
    const now = performance.now();
    for (const [address, since] of withdrawn) {
      const isGone = !told.has(address);
      if (!isGone && now - since < 4 * PROMISED_MS) continue;
      withdrawn.delete(address);
      lags.push(isGone ? now - since : Infinity);
    }
  }
  expect(lags).toHaveLength(PODS);
  expect(quantile(lags, 0.99)).toBeLessThan(PROMISED_MS);
  expect(world.writes().every((write) => write.startsWith('PUT endpointslices/'))).toBe(true);
  expect(world.writes().length).toBeLessThan(PODS / 4);
}, 90_000);
