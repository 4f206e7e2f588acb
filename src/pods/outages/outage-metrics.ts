import { Counter, type Registry } from 'prom-client';

export interface OutageMetrics {
  tolerations: Counter<'node' | 'result'>;
  deletions: Counter<'node'>;
}

export function outageMetrics(registry: Registry): OutageMetrics {
  const registers = [registry];
  return {
    tolerations: new Counter({
      name: 'spillway_outage_tolerations_total',
      help: 'Pods that came without tolerations of a virtual node that nobody serves: given, withdrawn (spec.probe.nodesReady), refused (the manager lacks the right; once every 10 minutes, not for each pod).',
      labelNames: ['node', 'result'],
      registers,
    }),
    deletions: new Counter({
      name: 'spillway_pods_deleted_in_outage_total',
      help: "Pods that Kubernetes' taint manager deleted while no replica served their virtual node.",
      labelNames: ['node'],
      registers,
    }),
  };
}
