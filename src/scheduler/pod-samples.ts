import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { atMost } from '../kube/lru-limit.ts';
import { PODS } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import { revisionOf } from '../placement/owner-chain.ts';
import { templateOf } from '../placement/pod-template.ts';

/** Workloads of which a pod is kept. */
const MAX_SAMPLES = 20_000;

/**
 * A pod as its template makes it, of a workload that no scheduler has asked this process about: after a restart, or where
 * another replica answers. The caches keep little of pods; what they ask for and tolerate has to be read, once for each
 * revision.
 */
export class PodSamples {
  readonly #host: KubeClient;
  /** By UID of the workload. */
  readonly #known = new LRUCache<string, Pod>(atMost(MAX_SAMPLES));

  constructor(host: KubeClient) {
    this.#host = host;
  }

  /** The pod of that revision that was read before. */
  get(workloadUid: string, revision: string | undefined): Pod | undefined {
    const known = this.#known.get(workloadUid);
    return known === undefined || revisionOf(known) !== revision ? undefined : known;
  }

  /** Reads the pod; undefined when it is gone. */
  async read(workloadUid: string, { metadata }: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, name, uid } = metadata;
    // A list, for which no other right is needed than for the watch.
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await list<Pod>(this.#host, PODS, { namespace, fieldSelector, resourceVersion: '0', signal });
    const found = items.find((one) => one.metadata.uid === uid);
    if (found === undefined) return undefined;
    const template = templateOf(found);
    this.#known.set(workloadUid, template);
    return template;
  }

  /** The workload is gone, or a scheduler asks about its pods. */
  forget(workloadUid: string): void {
    this.#known.delete(workloadUid);
  }
}
