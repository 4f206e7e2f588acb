import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/**
 * The program's metrics, to which every component adds its own: process figures (CPU, memory, event loop delay, garbage
 * collection) and `spillway_build_info`.
 */
export function createRegistry(version: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'spillway_build_info',
    help: 'Always 1; the label says which version runs.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}
