import { Counter, type Registry } from 'prom-client';

/** What happens to pods, by virtual node. */
export interface PodMetrics {
  actions: Counter<'node' | 'action'>;
  holds: Counter<'node' | 'reason'>;
  quarantined: Counter<'node'>;
}

export function podMetrics(registry: Registry): PodMetrics {
  const registers = [registry];
  return {
    actions: new Counter({
      name: 'spillway_pod_actions_total',
      help: 'Actions taken for pods: create, update, delete-member, collect, patch-status, report-lost, finish-deletion, hold.',
      labelNames: ['node', 'action'],
      registers,
    }),
    holds: new Counter({
      name: 'spillway_pod_holds_total',
      help: 'Times a pod was held back with a reason shown to its user.',
      labelNames: ['node', 'reason'],
      registers,
    }),
    quarantined: new Counter({
      name: 'spillway_pods_quarantined_total',
      help: 'Member pods without a host pod that were left alone because the evidence did not suffice to delete them.',
      labelNames: ['node'],
      registers,
    }),
  };
}
