import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { describeMetrics } from '../../hack/metrics-page.ts';
import { alerts } from '../../hack/monitoring.ts';
import { groupingsIn, selectorsIn } from '../fixtures/promql.ts';

/** What Prometheus itself adds to each series of a pod. */
const OF_TARGETS = ['instance', 'job', 'namespace', 'pod', 'container'];
/** Names that other programs use, too. */
const SHARED = /^(workqueue|process|nodejs)_/;

let known: Map<string, readonly string[]>;

beforeAll(async () => {
  known = new Map(
    (await describeMetrics()).flatMap(({ name, type, labels }): [string, readonly string[]][] =>
      type === 'histogram'
        ? [
            [`${name}_bucket`, [...labels, 'le']],
            [`${name}_sum`, labels],
            [`${name}_count`, labels],
          ]
        : [[name, labels]],
    ),
  );
});

test('queries are read as they are meant', () => {
  const query = 'sum by (a, le) (rate(x_total{b="1",c!~"[2}]"}[5m]) and on (d) y) / scalar(z offset 5m) > 6 * 3600';
  expect(selectorsIn(query.replace('[2}]', '2.'))).toEqual([
    { metric: 'x_total', labels: ['b', 'c'] },
    { metric: 'y', labels: [] },
    { metric: 'z', labels: [] },
  ]);
  expect(groupingsIn(query)).toEqual(['a', 'le', 'd']);
});

describe.each(alerts())('$alert', ({ alert, expr, annotations }) => {
  test('asks for metrics and labels that the manager has', () => {
    const selectors = selectorsIn(expr);
    expect(selectors).not.toEqual([]);
    for (const { metric, labels } of selectors) {
      expect([...known.keys()]).toContain(metric);
      expect([...(known.get(metric) ?? []), ...OF_TARGETS]).toEqual(expect.arrayContaining(labels));
    }
    const offered = selectors.flatMap(({ metric }) => known.get(metric) ?? []);
    expect([...offered, ...OF_TARGETS]).toEqual(expect.arrayContaining(groupingsIn(expr)));
  });

  test('is about the manager alone', () => {
    if (selectorsIn(expr).some(({ metric }) => SHARED.test(metric)))
      expect(expr).toContain('on (instance) spillway_build_info');
  });

  test('names in its words only labels that it has', () => {
    const named = [
      ...Object.values(annotations)
        .join(' ')
        .matchAll(/\$labels\.(\w+)/g),
    ].map(([, name = '']) => name);
    const kept = expr.includes(' by (') ? groupingsIn(expr) : [...OF_TARGETS, 'name'];
    expect(kept).toEqual(expect.arrayContaining(named));
  });

  test('has a heading among the runbooks', () => {
    expect(annotations.runbook).toBe(`docs/runbooks.md#${alert.toLowerCase()}`);
    expect(readFileSync('docs/runbooks.md', 'utf8')).toContain(`\n### ${alert}\n`);
  });
});

test('each runbook belongs to an alert', () => {
  const headings = [...readFileSync('docs/runbooks.md', 'utf8').matchAll(/^### (.*)$/gm)].map(([, name = '']) => name);
  expect(headings.toSorted()).toEqual(
    alerts()
      .map(({ alert }) => alert)
      .toSorted(),
  );
});
