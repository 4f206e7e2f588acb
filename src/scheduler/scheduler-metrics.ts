import { Counter, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

export interface SchedulerMetrics {
  readonly requests: Counter<'verb' | 'result'>;
  readonly seconds: Histogram<'verb'>;
  readonly decisions: Counter<'rules' | 'outcome'>;
  readonly placementWrites: Counter;
  readonly costWrites: Counter;
}

/** One set for the process. */
export function schedulerMetrics(registry: Registry): SchedulerMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'spillway_scheduler_requests_total',
      help: 'Questions of schedulers to the extender, by what came of them (answered, notReady, unknownCaller, invalid, failed)',
      labelNames: ['verb', 'result'],
      registers,
    }),
    seconds: new Histogram({
      name: 'spillway_scheduler_request_duration_seconds',
      help: 'Time until a question of a scheduler was answered, without the network',
      labelNames: ['verb'],
      buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1],
      registers,
    }),
    decisions: new Counter({
      name: 'spillway_scheduler_decisions_total',
      help: 'Decisions about pods, by the kind of rules they follow (policy, annotation, namespace, none) and by what came of it (local, member, wait)',
      labelNames: ['rules', 'outcome'],
      registers,
    }),
    placementWrites: new Counter({
      name: 'spillway_scheduler_placement_writes_total',
      help: 'WorkloadPlacements written',
      registers,
    }),
    costWrites: new Counter({
      name: 'spillway_scheduler_deletion_cost_writes_total',
      help: 'Deletion costs of pods written',
      registers,
    }),
  };
}
