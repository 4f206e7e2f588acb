import type { Endpoint, Line } from './network.ts';
import type { SimCluster } from './sim-cluster.ts';
import type { Call } from './sim-pool.ts';

/** What answers at the address of a cluster: the cluster, unless another one is there instead, or it knows the caller no more. */
export class FrontDoor implements Endpoint {
  readonly name: string;
  readonly cluster: SimCluster;
  /** Another cluster that has got the address. */
  #instead: SimCluster | undefined;
  /** Tokens that are refused. */
  readonly revoked = new Set<string>();
  /** How long a creation of a pod takes to be carried out, in ms, as behind a slow webhook. */
  creationMs: (() => number) | undefined;
  /** When the last of them is carried out, in ms. */
  lastCreation = 0;
  /** What it answers to writes without doing anything: a status code and a body. */
  nonsense: (() => { code: number; body: string }) | undefined;
  /** Who wants to watch is told to come again in an hour. */
  refusesWatches = false;
  /** Nothing is stored, but Leases. */
  refusesWrites = false;

  constructor(cluster: SimCluster) {
    this.name = cluster.name;
    this.cluster = cluster;
  }

  get instead(): SimCluster | undefined {
    return this.#instead;
  }

  /** Connections do not outlive it. */
  swap(other: SimCluster | undefined): void {
    (this.#instead ?? this.cluster).cutWatches();
    this.#instead = other;
  }

  take(call: Call, line: Line): void {
    const { headers } = call.outgoing;
    const at = headers.findIndex((name) => name.toLowerCase() === 'authorization');
    const token = at < 0 ? '' : (headers[at + 1] ?? '').replace(/^Bearer /, '');
    if (this.revoked.has(token)) {
      refuse(line, 401, 'Unauthorized');
      return;
    }
    const { method, path } = call.outgoing;
    if (this.refusesWrites && method !== 'GET' && !path.includes('/leases')) {
      refuse(line, 503, 'ServiceUnavailable');
      return;
    }
    if (this.refusesWatches && method === 'GET' && path.includes('watch=')) {
      refuse(line, 429, 'TooManyRequests', { 'retry-after': '3600' });
      return;
    }
    const nonsense = method === 'GET' || path.includes('/leases') ? undefined : this.nonsense?.();
    if (nonsense !== undefined) {
      line.whole(nonsense.code, nonsense.body);
      return;
    }
    const cluster = this.#instead ?? this.cluster;
    const waitMs =
      method === 'POST' && path.split('?')[0]?.endsWith('/pods') === true ? this.creationMs?.() : undefined;
    if (waitMs === undefined) {
      cluster.take(call, line);
      return;
    }
    this.lastCreation = Math.max(this.lastCreation, cluster.loop.now + waitMs);
    cluster.loop.later(waitMs, () => cluster.take(call, line));
  }
}

function refuse(line: Line, code: number, reason: string, headers: Record<string, string> = {}): void {
  const said = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: reason };
  line.whole(code, JSON.stringify(said), headers);
}
