import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { forgetSeries } from '../../src/telemetry/forget-series.ts';

it('series of what is gone are not shown any more, and all others are', async () => {
  const registry = new Registry();
  const registers = [registry];
  const pods = new Gauge({ name: 'pods', help: '.', labelNames: ['node', 'phase'], registers });
  const calls = new Counter({ name: 'calls', help: '.', labelNames: ['cluster'], registers });
  const times = new Histogram({ name: 'times', help: '.', labelNames: ['cluster'], buckets: [1, 2], registers });
  const plain = new Counter({ name: 'plain', help: '.', registers });
  for (const name of ['east', 'west']) {
    pods.set({ node: name, phase: 'Running' }, 1);
    pods.set({ node: name, phase: 'Pending' }, 2);
    calls.inc({ cluster: name });
    times.observe({ cluster: name }, 1.5);
  }
  plain.inc();
  await forgetSeries(registry, (label, value) => label !== 'phase' && value === 'east');
  const text = await registry.metrics();
  expect(text).not.toContain('east');
  expect(text.split('\n').filter((line) => line.includes('west'))).toHaveLength(2 + 1 + 5);
  expect(text).toContain('plain 1');
});
