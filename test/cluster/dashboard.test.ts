import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureBinaries } from '../../hack/binaries.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { run } from '../../hack/command.ts';
import { ROWS } from '../../hack/dashboard.ts';
import { startKwok } from '../../hack/kwok.ts';
import { alerts } from '../../hack/monitoring.ts';
import { until } from '../../hack/until.ts';
import { kubectl, podsOf } from '../fixtures/live-pods.ts';
import { burstNamespace, deployment, LOCAL_PREFIX, policy, whereAre } from '../fixtures/scheduling.ts';
import { selectorsIn } from '../fixtures/promql.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

/** Every query of the dashboard, asked by Prometheus' own engine of what a real manager serves. */
let topology: Topology;
let host: Cluster;
let folder: string;
/** What was served before pods came, and after some came, waited, moved and went. */
let scrapes: [before: string, after: string];

async function scrape(): Promise<string> {
  return await (await fetch(`${topology.spillway.url}/metrics`)).text();
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
  topology = await startTopology({
    extender: true,
    members: ['east', 'west'].map((name) => ({ name, kwok: { nodes: 2, cpu: '8' } })),
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 1, cpu: '2', prefix: LOCAL_PREFIX });
  await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
  await burstNamespace(host, 'shop');
  const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
  const before = await scrape();
  const envFrom = [{ configMapRef: { name: 'not-there' } }];
  const waiting = { containers: [{ name: 'main', image: 'app', envFrom }] };
  await host.apply([
    policy('shop', 'all', placement),
    deployment('shop', 'web', 4, '1'),
    deployment('shop', 'waits', 1, '1', {}, waiting),
  ]);
  const inPlace = async (place: string): Promise<boolean> =>
    whereAre((await podsOf(host, 'shop', 'app=web')).filter(({ status }) => status?.phase === 'Running'))[place] === 4;
  await until('pods run in the member', async () => await inPlace('east'), { timeoutMs: 60_000 });
  await kubectl(host, ['get', '--raw', '/api/v1/nodes/east/proxy/metrics/resource']);
  const clusterTaints = [{ key: 'full', effect: 'NoExecute' }];
  await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { clusterTaints } });
  await until('they are moved', async () => await inPlace('west'), { timeoutMs: 90_000 });
  scrapes = [before, await scrape()];
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await topology?.close();
});

/** Series and values of a scrape, as of one instance. */
function seriesOf(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      return [`${name}{${labels === '' ? '' : `${labels},`}instance="a"}`, value];
    }),
  );
}

/** As promtool takes it: half of the time as before, then as after. */
function inputSeries(): { series: string; values: string }[] {
  const [before, after] = scrapes.map(seriesOf);
  return [...(after ?? [])].map(([series, value]) => {
    const first = Array.from({ length: 6 }, () => before?.get(series) ?? '_');
    return { series, values: [...first, ...Array.from({ length: 6 }, () => value)].join(' ') };
  });
}

const panels = ROWS.flatMap((row) => row.panels);
const queries = panels.flatMap((panel) => panel.queries.map(([query]) => ({ panel, query })));

/** With what Grafana puts in place of its variables. */
function filledIn(query: string): string {
  return query.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '10m').replaceAll('$member', '.*');
}

test('each has an answer', async () => {
  const { promtool } = await ensureBinaries(['promtool']);
  const file = join(folder, 'test.yaml');
  const asked = queries.filter(({ panel }) => panel.seldom !== true);
  const questions = asked.map(({ query }) => ({
    expr: `count(${filledIn(query)}) > bool 0`,
    eval_time: '8m',
    exp_samples: [{ labels: '{}', value: 1 }],
  }));
  // Of the others only that they can be asked.
  const sound = queries
    .filter(({ panel }) => panel.seldom === true)
    .map(({ query }) => ({
      expr: `absent(nothing) and on () (absent(${filledIn(query)}) or vector(1))`,
      eval_time: '8m',
      exp_samples: [{ labels: '{}', value: 1 }],
    }));
  const tests = [{ interval: '1m', input_series: inputSeries(), promql_expr_test: [...questions, ...sound] }];
  writeFileSync(file, stringify({ tests }));
  expect(await run(promtool, ['test', 'rules', file])).toContain('SUCCESS');
});

test('is about metrics that are served, and so are alerts', () => {
  const [, after] = scrapes;
  const served = new Set([...after.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name));
  for (const query of [...queries.map((one) => filledIn(one.query)), ...alerts().map(({ expr }) => expr)]) {
    for (const { metric } of selectorsIn(query)) {
      expect([...served], query).toContain(metric.replace(/_(bucket|sum|count)$/, ''));
    }
  }
});
