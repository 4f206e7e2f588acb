import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** What a queue tells about itself when metrics are scraped. */
export interface QueueProbe {
  /** Keys waiting to be handled now. */
  depth(): number;
  /** How long each key in work has been in work, in milliseconds. */
  workAges(): readonly number[];
}

/** The metrics of all work queues of a process, under the names that client-go uses, one label: the queue's name. */
export interface WorkQueueMetrics {
  added(name: string): void;
  retried(name: string): void;
  /** A key left the queue after waiting this long. */
  started(name: string, waitedMs: number): void;
  finished(name: string, workedMs: number): void;
  /** Shows a queue's gauges until the returned function is called. Queues of one name are added up. */
  attach(name: string, probe: QueueProbe): () => void;
}

/** Registers the metrics; once per registry. */
export function createWorkQueueMetrics(registry: Registry): WorkQueueMetrics {
  const labels = { labelNames: ['name'] as const, registers: [registry] };
  const seconds = { ...labels, buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60] };
  const probes = new Map<QueueProbe, string>();
  const gauge = (name: string, help: string, read: (probe: QueueProbe, soFar: number) => number): void => {
    const created: Gauge<'name'> = new Gauge({
      name,
      help,
      ...labels,
      collect() {
        const totals = new Map<string, number>();
        for (const [probe, queue] of probes) totals.set(queue, read(probe, totals.get(queue) ?? 0));
        created.reset();
        for (const [queue, total] of totals) created.set({ name: queue }, total);
      },
    });
  };
  gauge('workqueue_depth', 'Keys waiting in the queue', (probe, sum) => sum + probe.depth());
  gauge('workqueue_unfinished_work_seconds', 'Seconds that keys in work have been in work, summed', (probe, sum) =>
    probe.workAges().reduce((total, age) => total + age / 1000, sum),
  );
  gauge('workqueue_longest_running_processor_seconds', 'Age of the oldest key in work', (probe, longest) =>
    Math.max(longest, ...probe.workAges().map((age) => age / 1000)),
  );
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys queued', ...labels });
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Keys queued again after a failure',
    ...labels,
  });
  const waits = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long a key waited in the queue',
    ...seconds,
  });
  const work = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long handling a key took',
    ...seconds,
  });
  return {
    added: (name) => adds.inc({ name }),
    retried: (name) => retries.inc({ name }),
    started: (name, waitedMs) => waits.observe({ name }, waitedMs / 1000),
    finished: (name, workedMs) => work.observe({ name }, workedMs / 1000),
    attach(name, probe) {
      probes.set(probe, name);
      return () => {
        probes.delete(probe);
      };
    },
  };
}
