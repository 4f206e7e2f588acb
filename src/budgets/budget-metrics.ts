import { Counter, Gauge, type Registry } from 'prom-client';

export interface BudgetMetrics {
  mirrors: Gauge<'member'>;
  writes: Counter<'member' | 'object'>;
}

export function budgetMetrics(registry: Registry): BudgetMetrics {
  const registers = [registry];
  return {
    mirrors: new Gauge({
      name: 'spillway_budget_mirrors',
      help: 'PodDisruptionBudgets of the host that have one in the member.',
      labelNames: ['member'],
      registers,
    }),
    writes: new Counter({
      name: 'spillway_budget_writes_total',
      help: 'Writes for disruption budgets: mirror (in the member), claim (how many evictions it may grant, on the budget of the host).',
      labelNames: ['member', 'object'],
      registers,
    }),
  };
}
