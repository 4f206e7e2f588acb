import type { Registry } from 'prom-client';

/** Labels that Prometheus itself gives meaning to: no part of what tells a series from others of its metric. */
const OWN = new Set(['le', 'quantile']);

/** Removes all series of which some label has a value that `isGone` says nobody will report about any more. */
export async function forgetSeries(
  registry: Registry,
  isGone: (label: string, value: string) => boolean,
): Promise<void> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) continue;
    const { values } = await metric.get();
    for (const { labels } of values) {
      const own = Object.entries(labels).filter(([label]) => !OWN.has(label));
      if (own.some(([label, value]) => isGone(label, String(value)))) metric.remove(Object.fromEntries(own));
    }
  }
}
