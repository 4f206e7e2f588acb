import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** One set for the process; the virtual nodes' servers share it. */
export interface KubeletMetrics {
  readonly requests: Counter<'route' | 'code'>;
  readonly openStreams: Gauge<'route'>;
  readonly denied: Counter<'reason'>;
  readonly bytes: Counter<'route' | 'direction'>;
}

export function kubeletMetrics(registry: Registry): KubeletMetrics {
  return {
    requests: counter(registry, 'spillway_kubelet_requests_total', 'Requests to the virtual nodes’ kubelet ports', [
      'route',
      'code',
    ]),
    openStreams: gauge(registry, 'spillway_kubelet_open_streams', 'Open exec, attach, port-forward and log streams', [
      'route',
    ]),
    denied: counter(registry, 'spillway_kubelet_denied_total', 'Requests refused for want of identity or rights', [
      'reason',
    ]),
    bytes: counter(registry, 'spillway_kubelet_stream_bytes_total', 'Bytes passed through streams', [
      'route',
      'direction',
    ]),
  };
}

function counter<L extends string>(registry: Registry, name: string, help: string, labelNames: L[]): Counter<L> {
  const known = registry.getSingleMetric(name);
  return known instanceof Counter ? known : new Counter({ name, help, labelNames, registers: [registry] });
}

function gauge<L extends string>(registry: Registry, name: string, help: string, labelNames: L[]): Gauge<L> {
  const known = registry.getSingleMetric(name);
  return known instanceof Gauge ? known : new Gauge({ name, help, labelNames, registers: [registry] });
}
