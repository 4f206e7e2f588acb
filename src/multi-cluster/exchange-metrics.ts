import { Counter, Gauge, type Registry } from 'prom-client';

export interface ExchangeMetrics {
  imports: Gauge<'cluster'>;
  writes: Counter<'cluster' | 'object'>;
}

export function exchangeMetrics(registry: Registry): ExchangeMetrics {
  const registers = [registry];
  return {
    imports: new Gauge({
      name: 'spillway_service_imports',
      help: 'ServiceImports that stand in the cluster, for what it exports itself, too; local is the host.',
      labelNames: ['cluster'],
      registers,
    }),
    writes: new Counter({
      name: 'spillway_service_import_writes_total',
      help: 'Writes for Services that clusters export: of ServiceImports (import), the Services behind them (service), and what they lead to (endpointslice).',
      labelNames: ['cluster', 'object'],
      registers,
    }),
  };
}
