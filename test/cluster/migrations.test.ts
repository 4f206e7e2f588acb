import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import { kubectl, podsOf, read } from '../fixtures/live-pods.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { deployment, settled, whereAre } from '../fixtures/scheduling.ts';
import { MovesHarness } from './moves-harness.ts';

/** Workloads leave a member on demand: all that is meant, or nothing. */
let m: MovesHarness;
let host: Cluster;
let namespace = '';
beforeAll(async () => {
  m = await MovesHarness.start('migrated');
  ({ host } = m);
});
afterAll(async () => {
  await m?.close();
});
beforeEach(async () => {
  namespace = await m.begin();
});
afterEach(async () => {
  await m.end();
});

describe('kubectl spillway move', () => {
  interface Counted {
    status?: { hard?: object };
  }
  const move = async (...words: string[]) =>
    await kubectlSpillway(host, ['move', '-n', namespace, '--from', 'east', '--to', 'west', ...words], {
      timeoutMs: 110_000,
    });
  const stored = async (): Promise<WorkloadMigration[]> => {
    const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadmigrations`;
    return (await read<{ items: WorkloadMigration[] } & WorkloadMigration>(host, path))?.items ?? [];
  };

  test('brings three pods from east, which comes first, to west, three Ready all the time; a dry run only says that they fit', async () => {
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const dry = await move('deploy/web', '--dry-run=server');
    expect(dry.stdout).toMatch(
      /^workloadmigration\.spillway\.dev\/web-[0-9a-f]{6} created \(server dry run\)\ndeployment\/web: 3 pods: Fits\n$/,
    );
    expect([dry.code, await stored(), m.evictions(), m.writes('patch')]).toEqual([0, [], [], []]);
    let done = dry;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      done = await move('--all', '--wait', '--timeout', '90');
      await settled(host, namespace, 'web', { west: 3 });
    });
    expect(fewest).toBe(3);
    expect(done.stdout.split('\n').slice(1)).toEqual([
      'deployment/web: 3 pods: Fits',
      'deployment/web: 3 of 3 pods moved',
      '',
    ]);
    expect(done.code).toBe(0);
    expect(m.evictions()).toHaveLength(3);
    // It is over: the policy alone says where the next one goes.
    await kubectl(host, ['scale', 'deployment', 'web', '-n', namespace, '--replicas=4']);
    await settled(host, namespace, 'web', { east: 1, west: 3 });
  });

  test('moves nothing, and says what does not fit, when west is too small for all of them', async () => {
    const onWest = { nodeSelector: { 'spillway.dev/member': 'west' } };
    await host.apply([deployment(namespace, 'filler', 2, '6', {}, onWest)]);
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '2')]);
    await settled(host, namespace, 'web', { east: 3 });
    await settled(host, namespace, 'filler', { west: 2 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect(code).toBe(5);
    expect(stdout.split('\n')[1]).toMatch(
      /^deployment\/web: 3 pods: DoesNotFit: a place for 2 of 3 pods \(member west: .*cpu/,
    );
    expect(stderr).toMatch(
      /^error: nothing was moved, as not all of it fits\nreason: 1 workload of 1: deployment\/web: .*\nfix: by what the reason says make room/m,
    );
    expect([m.evictions(), m.writes('patch')]).toEqual([[], []]);
    expect(whereAre(await m.pods())).toEqual({ east: 3 });
  });

  test('moves nothing, and says which quota is in the way, when the namespace in west has one that is too small', async () => {
    const west = m.topology.member('west').cluster;
    const labels = { 'spillway.dev/allow-host': 'any' };
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace } };
    await west.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      { ...quota, spec: { hard: { 'requests.cpu': '250m' } } },
    ]);
    const quotaPath = `/api/v1/namespaces/${namespace}/resourcequotas/few`;
    await until('it is counted', async () => (await read<Counted>(west, quotaPath))?.status?.hard !== undefined);
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect([code, stdout.split('\n')[1]]).toEqual([
      5,
      'deployment/web: 3 pods: DoesNotFit: a place for 2 of 3 pods (member west: quota few: 100m requests.cpu wanted, 50m left)',
    ]);
    expect(stderr).toMatch(/^reason: 1 workload of 1: deployment\/web: .*quota few/m);
    expect([m.evictions(), m.writes('patch'), await podsOf(west, namespace)]).toEqual([[], [], []]);
    expect(whereAre(await m.pods())).toEqual({ east: 3 });
  });

  test('stopped half way: what has begun is finished, and nothing more begins, also after a crash', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(3);
    expect(await move('deployment/web')).toMatchObject({ code: 0 });
    const { metadata } = await m.released();
    await m.crash();
    await m.comeBack();
    await until('it is still under way', async () => (await stored())[0]?.status?.finishTime === undefined);
    await kubectl(host, ['delete', 'workloadmigrations', '--all', '-n', namespace]);
    for (const pod of await m.ungated()) await m.open(pod);
    await settled(host, namespace, 'web', { east: 2, west: 1 });
    expect(m.evictions().map(({ objectRef }) => objectRef?.name)).toEqual([metadata.name]);
  });
});
