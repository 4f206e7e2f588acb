import { Counter, Histogram, type Registry } from 'prom-client';

/** How reading the usage of pods in members goes. One instance a registry. */
export interface UsageMetrics {
  reads: Counter<'member' | 'source' | 'result'>;
  readSeconds: Histogram<'member' | 'source'>;
}

export function usageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  return {
    reads: new Counter({
      name: 'spillway_usage_reads_total',
      help:
        'Reads of what pods use in members, by source (resource, cadvisor, summary: one kubelet; metrics-api) and ' +
        'result: ok, refused (no right, or not served there), failed.',
      labelNames: ['member', 'source', 'result'],
      registers,
    }),
    readSeconds: new Histogram({
      name: 'spillway_usage_read_duration_seconds',
      help: 'Time of such a read.',
      labelNames: ['member', 'source'],
      buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 6],
      registers,
    }),
  };
}
