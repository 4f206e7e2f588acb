import { Counter, Histogram, type Registry } from 'prom-client';

/** Requests to API servers, one sample per HTTP exchange (a retried request counts each time). */
export class ClientMetrics {
  readonly #requests: Counter;
  readonly #durations: Histogram;
  // Finding a labelled child costs more than counting, so each is looked up once.
  readonly #counters = new Map<string, Counter.Internal>();
  readonly #timers = new Map<string, Histogram.Internal<string>>();

  constructor(registry: Registry) {
    this.#requests = new Counter({
      name: 'kube_client_requests_total',
      help: 'Requests to API servers. code is the HTTP status, or the kind of failure when none came.',
      labelNames: ['cluster', 'verb', 'resource', 'code'],
      registers: [registry],
    });
    this.#durations = new Histogram({
      name: 'kube_client_request_duration_seconds',
      help: 'Time from sending a request to the end of its answer; for streams, to the start of it.',
      labelNames: ['cluster', 'verb'],
      buckets: [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers: [registry],
    });
  }

  observe(o: { cluster: string; method: string; path: string; code: string; seconds: number }): void {
    const resource = resourceIn(o.path);
    const key = `${o.cluster} ${o.method} ${resource} ${o.code}`;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      counter = this.#requests.labels(o.cluster, o.method, resource, o.code);
      this.#counters.set(key, counter);
    }
    counter.inc();
    const timerKey = `${o.cluster} ${o.method}`;
    let timer = this.#timers.get(timerKey);
    if (timer === undefined) {
      timer = this.#durations.labels(o.cluster, o.method);
      this.#timers.set(timerKey, timer);
    }
    timer.observe(o.seconds);
  }

  /** Drops the series of a cluster that is gone. */
  forget(cluster: string): void {
    for (const [key] of this.#counters) {
      if (key.startsWith(`${cluster} `)) {
        const [, verb = '', resource = '', code = ''] = key.split(' ');
        this.#requests.remove(cluster, verb, resource, code);
        this.#counters.delete(key);
      }
    }
    for (const [key] of this.#timers) {
      if (key.startsWith(`${cluster} `)) {
        this.#durations.remove(cluster, key.slice(cluster.length + 1));
        this.#timers.delete(key);
      }
    }
  }
}

/** `pods`, `pods/status`, or '' for paths that are no resource: bounded whatever names users choose. */
export function resourceIn(path: string): string {
  const parts = path.split('/');
  // /api/VERSION/… or /apis/GROUP/VERSION/…, then RESOURCE[/NAME[/SUBRESOURCE]], perhaps behind namespaces/NAMESPACE.
  let at = parts[1] === 'api' ? 3 : parts[1] === 'apis' ? 4 : parts.length;
  const behind = parts[at + 2];
  if (parts[at] === 'namespaces' && behind !== undefined && behind !== 'status' && behind !== 'finalize') {
    at += 2;
  }
  const resource = parts[at] ?? '';
  const subresource = parts[at + 2];
  return subresource === undefined ? resource : `${resource}/${subresource}`;
}
