import { Counter, Gauge, type Registry } from 'prom-client';

export interface ServiceMetrics {
  copies: Gauge<'member'>;
  writes: Counter<'member' | 'object'>;
}

export function serviceMetrics(registry: Registry): ServiceMetrics {
  const registers = [registry];
  return {
    copies: new Gauge({
      name: 'spillway_service_copies',
      help: 'Services of the host that stand in the member.',
      labelNames: ['member'],
      registers,
    }),
    writes: new Counter({
      name: 'spillway_service_writes_total',
      help: 'Writes for Services of the host in the member: of the Service itself (service), of what it leads to (endpointslice).',
      labelNames: ['member', 'object'],
      registers,
    }),
  };
}
