import { LRUCache } from 'lru-cache';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isForbidden, isNotFound } from '../kube/errors.ts';
import { atMost } from '../kube/lru-limit.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import type { MissingRights } from './missing-rights.ts';
import { withoutBulk } from './without-bulk.ts';

const REMEMBERED = 10_000;

/** Pods of the host read past the caches, which keep only a part of each. What was read counts until the pod has another resourceVersion. */
export class LivePods {
  readonly #host: KubeClient;
  readonly #rights: MissingRights;
  /** By UID, without bulk. */
  readonly #read = new LRUCache<string, Pod>(atMost(REMEMBERED));

  constructor(host: KubeClient, rights: MissingRights) {
    this.#host = host;
    this.#rights = rights;
  }

  /** The pod as last read live if its resourceVersion is unchanged; else the cached one. */
  asRead(pod: Pod): Pod {
    const known = this.#read.get(pod.metadata.uid ?? '');
    return known?.metadata.resourceVersion === pod.metadata.resourceVersion ? (known ?? pod) : pod;
  }

  /** The live pod, read only if its resourceVersion changed since the last read; undefined when it is gone, being deleted, or may not be read. */
  async read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const known = this.asRead(pod);
    if (known !== pod) return known;
    const { namespace = '' } = pod.metadata;
    if (this.#rights.in(namespace)) return undefined;
    try {
      const live = await this.readNow(pod, signal);
      return live === undefined ? undefined : this.remember(live);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (!isForbidden(error)) throw error;
      this.#rights.note(namespace, error);
      return undefined;
    }
  }

  /** Undefined when another pod has its name, or it is being deleted: the caches will catch up. @throws what the host answers */
  async readNow({ metadata }: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, name, uid } = metadata;
    const live = await get<Pod>(this.#host, PODS, { namespace, name }, { signal });
    return live.metadata.uid === uid && live.metadata.deletionTimestamp === undefined ? live : undefined;
  }

  remember(live: Pod): Pod {
    const known = withoutBulk(live);
    this.#read.set(live.metadata.uid ?? '', known);
    return known;
  }
}
