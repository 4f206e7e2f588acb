import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dashboard, ROWS } from '../../hack/dashboard.ts';
import { describeMetrics } from '../../hack/metrics-page.ts';
import { groupingsIn, selectorsIn } from '../fixtures/promql.ts';

interface Drawn {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
}
const drawn = (JSON.parse(dashboard()) as { panels: Drawn[] }).panels;

test('panels have numbers and titles of their own, and none lies upon another', () => {
  expect(new Set(drawn.map(({ id }) => id)).size).toBe(drawn.length);
  expect(new Set(drawn.map(({ title }) => title)).size).toBe(drawn.length);
  const cells = drawn.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${String(x + (index % w))} ${String(y + Math.floor(index / w))}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(drawn.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
});

test('queries ask for metrics and labels that the manager has, of the manager alone', async () => {
  const known = new Map((await describeMetrics()).map(({ name, labels }) => [name, [...labels, 'le', 'instance']]));
  for (const [query] of ROWS.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries))) {
    const selectors = selectorsIn(query);
    expect(selectors, query).not.toEqual([]);
    for (const { metric, labels } of selectors) {
      const has = known.get(metric) ?? known.get(metric.replace(/_(bucket|sum|count)$/, ''));
      expect(has, `${metric} in ${query}`).toEqual(expect.arrayContaining(labels));
    }
    const labels = selectors.flatMap(({ metric }) => known.get(metric.replace(/_(bucket|sum|count)$/, '')) ?? []);
    expect(labels, query).toEqual(expect.arrayContaining(groupingsIn(query)));
    if (/\b(workqueue|process|nodejs)_/.test(query)) expect(query).toContain('on (instance) spillway_build_info');
  }
});

test('the guide says which panels are empty until something happens', () => {
  const guide = readFileSync(new URL('../../docs/guides/kube-prometheus.md', import.meta.url), 'utf8');
  const [, list = ''] = /stay empty until something of their kind happens[^]*?\n\n([^]*?)\n\n/.exec(guide) ?? [];
  const named = [...list.matchAll(/\*\*(.+?)\*\*/g)].map(([, title]) => title);
  const mayBeEmpty = ROWS.flatMap(({ panels }) => panels).filter(
    ({ seldom, queries }) => seldom === true && !queries.every(([query]) => query.endsWith('or vector(0)')),
  );
  expect(named).toEqual(mayBeEmpty.map(({ title }) => title));
});
