import { Counter, Gauge, type Registry } from 'prom-client';

/** What happens to pods, by virtual node. */
export interface PodMetrics {
  actions: Counter<'node' | 'action'>;
  holds: Counter<'node' | 'reason'>;
  orphaned: Counter<'node'>;
  correctionsHeld: Counter<'node'>;
  kept: Gauge<'node'>;
  breakerOpen: Gauge<'node'>;
}

export function podMetrics(registry: Registry): PodMetrics {
  const registers = [registry];
  return {
    actions: new Counter({
      name: 'spillway_pod_actions_total',
      help: 'Actions taken for pods: create, look-back, update, end-second-copy, delete-member, collect, patch-status, report-lost, finish-deletion, end-fenced, hold.',
      labelNames: ['node', 'action'],
      registers,
    }),
    holds: new Counter({
      name: 'spillway_pod_holds_total',
      help: 'Times a pod was held back with a reason shown to its user.',
      labelNames: ['node', 'reason'],
      registers,
    }),
    orphaned: new Counter({
      name: 'spillway_pods_quarantined_total',
      help: 'Member pods without a host pod that were left alone because the evidence did not suffice to delete them.',
      labelNames: ['node'],
      registers,
    }),
    correctionsHeld: new Counter({
      name: 'spillway_pod_status_corrections_held_total',
      help: 'Times that the status of a pod was not put right at once, because somebody else keeps changing it.',
      labelNames: ['node'],
      registers,
    }),
    kept: new Gauge({
      name: 'spillway_pods_kept',
      help: 'Member pods that are kept at present although their host pods are gone, until an administrator confirms their deletion.',
      labelNames: ['node'],
      registers,
    }),
    breakerOpen: new Gauge({
      name: 'spillway_deletion_breaker_open',
      help: '1 while too many host pods vanished at once, so that no member pod is deleted for a host pod that is merely missing.',
      labelNames: ['node'],
      registers,
    }),
  };
}
