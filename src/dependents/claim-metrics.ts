import { Counter, type Registry } from 'prom-client';

/** What was done about claims. */
export interface ClaimMetrics {
  steps: Counter<'member' | 'step' | 'outcome'>;
}

export function claimMetrics(registry: Registry): ClaimMetrics {
  return {
    steps: new Counter({
      name: 'spillway_claim_steps_total',
      help: 'Steps of PersistentVolumeClaims: bind (to a member), refuse, create (in the member), ask (whether it is gone there), note (its UID), resize, report (to the host), delete-data, delete-volume; done or failed.',
      labelNames: ['member', 'step', 'outcome'],
      registers: [registry],
    }),
  };
}
