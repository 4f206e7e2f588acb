import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { MovesMetrics } from './moves-metrics.ts';
import type { MovesStop } from './moves-stop.ts';

/** What of the process and its configuration most of those take a part of that move pods, or say which to. */
export interface MovingOptions {
  host: KubeClient;
  /** Whether people let any move begin. */
  stop: Pick<MovesStop, 'why'>;
  events: Pick<EventRecorder, 'record'>;
  metrics: MovesMetrics;
  logger: Logger;
  /** Most moves per pod of a workload within an hour. */
  perPodPerHour: number;
  /** Of all workloads, whatever policies say: only report moves in Events, status, logs and metrics; move nothing. */
  dryRun: boolean;
  /** Wall clock in ms, to be written on objects, and to compare with times that these carry. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}
