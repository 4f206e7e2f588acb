import { Counter, type Registry } from 'prom-client';

/** What became of tokens of the host that members were to have. */
export interface TokenMetrics {
  tokens: Counter<'member' | 'outcome'>;
}

export function tokenMetrics(registry: Registry): TokenMetrics {
  return {
    tokens: new Counter({
      name: 'spillway_pod_tokens_total',
      help: 'Times that the service account tokens of a pod were brought to its member (issued) or could not be (failed).',
      labelNames: ['member', 'outcome'],
      registers: [registry],
    }),
  };
}
