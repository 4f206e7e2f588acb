import type { Logger } from 'pino';
import type { NodeSelector } from '../kube/core-v1.ts';
import type { PersistentVolume } from '../kube/volumes.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isForbidden, isNotFound } from '../kube/errors.ts';
import { PERSISTENT_VOLUMES } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';

export interface VolumePlacesOptions {
  member: string;
  client: KubeClient;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics | undefined;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;
/** How long until a volume is asked for again that may not be read. */
const FORBIDDEN_RETRY_MS = 600_000;

/**
 * On which nodes of a member the volumes of our claims can be used. Each is read once, by name, when its claim is bound:
 * Kubernetes does not change where a volume in use is. That takes the right to `get` volumes, and none to list them.
 */
export class VolumePlaces {
  readonly #o: VolumePlacesOptions;
  readonly #queue: WorkQueue;
  /** By the volume's name; undefined: not known yet. `any`: every node. */
  readonly #places = new Map<string, NodeSelector | 'any' | undefined>();
  #told = false;

  constructor(options: VolumePlacesOptions) {
    this.#o = options;
    this.#queue = new WorkQueue({
      name: `volumes-${options.member}`,
      concurrency: 4,
      handler: async (name, signal) => await this.#read(name, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      metrics: options.queueMetrics,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
  }

  /** Reads it if it is not known. */
  want(name: string): void {
    if (this.#places.has(name)) return;
    this.#places.set(name, undefined);
    this.#queue.add(name);
  }

  forget(name: string): void {
    this.#places.delete(name);
  }

  /** The nodes that the volume is limited to, as far as that is known. */
  of(name: string): NodeSelector | undefined {
    const place = this.#places.get(name);
    return place === 'any' ? undefined : place;
  }

  async #read(name: string, signal: AbortSignal): Promise<undefined | { requeueAfterMs: number }> {
    if (!this.#places.has(name)) return undefined;
    const { client, member, logger } = this.#o;
    try {
      const { spec } = await get<PersistentVolume>(client, PERSISTENT_VOLUMES, { name }, { signal });
      if (this.#places.has(name)) this.#places.set(name, spec.nodeAffinity?.required ?? 'any');
      return undefined;
    } catch (error) {
      if (isNotFound(error)) {
        this.#places.delete(name);
        return undefined;
      }
      if (!isForbidden(error)) throw error;
      if (!this.#told) {
        const words = `volumes of member ${member} may not be read, so pods are sent there without a look at which nodes can use their claims`;
        logger.warn(`${words} (manifests/member/read.yaml grants it): ${describeError(error)}`);
      }
      this.#told = true;
      return { requeueAfterMs: FORBIDDEN_RETRY_MS };
    }
  }
}
