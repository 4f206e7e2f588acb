import { Counter, type Registry } from 'prom-client';

export interface GangMetrics {
  gangs: Counter<'outcome'>;
}

export function gangMetrics(registry: Registry): GangMetrics {
  return {
    gangs: new Counter({
      name: 'spillway_gangs_total',
      help: 'Gangs: placed (all gates opened for one place), timed-out (not all pods got a node, all gave theirs back).',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
