import { expect, it } from 'vitest';
import { CliError } from '../../../src/cli/cli-error.ts';
import { Live } from '../../../src/cli/ui/live.ts';
import type { PageFacts } from '../../../src/cli/ui/page-facts.ts';
import { fleetWorld } from '../../fixtures/fleet-world.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const { policies: _, ...world } = fleetWorld(NOW);
const FACTS: PageFacts = { context: 'c', namespace: '', ...world, policies: [], missing: [] };

/** A cluster that takes its time, by a clock that is moved by hand. */
function slow(takesMs: number) {
  const cluster: { reads: number; time: number; fails: Error | undefined } = {
    reads: 0,
    time: 1_000,
    fails: undefined,
  };
  const read = async (): Promise<PageFacts> => {
    cluster.reads += 1;
    cluster.time += takesMs;
    if (cluster.fails !== undefined) throw cluster.fails;
    return await Promise.resolve(FACTS);
  };
  const live = new Live(
    read,
    () => NOW,
    () => cluster.time,
  );
  return Object.assign(cluster, { live });
}

it('reads once for all that ask at the same time, and not again while that is fresh', async () => {
  const cluster = slow(10);
  await Promise.all([cluster.live.state(), cluster.live.state(), cluster.live.workload('shop/Deployment/web')]);
  expect(cluster.reads).toBe(1);
  cluster.time += 1_400;
  await cluster.live.state();
  expect(cluster.reads).toBe(1);
  cluster.time += 200;
  await cluster.live.state();
  expect(cluster.reads).toBe(2);
});

it('asks a cluster that takes long as much more rarely', async () => {
  const cluster = slow(4_000);
  await cluster.live.state();
  cluster.time += 35_000;
  await cluster.live.state();
  expect(cluster.reads).toBe(1);
  cluster.time += 1_000;
  await cluster.live.state();
  expect(cluster.reads).toBe(2);
});

it('shows what it had, and the trouble, while the cluster does not answer', async () => {
  const cluster = slow(10);
  await cluster.live.state();
  cluster.fails = new CliError('the cluster does not answer', { reason: 'connection refused' });
  cluster.time += 5_000;
  const state = await cluster.live.state();
  expect(state.trouble).toBe('the cluster does not answer: connection refused');
  expect(state.places).toHaveLength(5);
  cluster.fails = undefined;
  cluster.time += 5_000;
  expect((await cluster.live.state()).trouble).toBe('');
});

it('throws what keeps it from the first look', async () => {
  const cluster = slow(10);
  cluster.fails = new CliError('the cluster does not know you');
  await expect(cluster.live.state()).rejects.toThrow('does not know you');
});
