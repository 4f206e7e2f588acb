import { Gauge, type Registry } from 'prom-client';

/** Until when virtual nodes can speak for themselves. One instance a registry. */
export class NodeIdentityMetrics {
  readonly #nodes = new Map<string, () => number>();

  constructor(registry: Registry) {
    const nodes = this.#nodes;
    const expiry = new Gauge({
      name: 'spillway_node_certificate_expiry_timestamp_seconds',
      help: "When the virtual node's client certificate for the host ends, in Unix time. 0: it has none and uses the manager's own identity, if it may.",
      labelNames: ['node'],
      registers: [registry],
      collect() {
        expiry.reset();
        for (const [node, seconds] of nodes) expiry.set({ node }, seconds());
      },
    });
  }

  follow(node: string, expirySeconds: () => number): void {
    this.#nodes.set(node, expirySeconds);
  }

  forget(node: string): void {
    this.#nodes.delete(node);
  }
}
