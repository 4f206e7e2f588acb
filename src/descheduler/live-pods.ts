import { LRUCache } from 'lru-cache';
import { GROUP } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Container, Pod } from '../kube/core-v1.ts';
import { isRightMissing } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { atMost } from '../kube/lru-limit.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import { heldUnread, isOfOnePod } from './eviction-refusal.ts';
import type { MissingRights } from './missing-rights.ts';
import type { Held } from './wanted-move.ts';

/** Pods of the host read past the caches, which keep only a part of each. What was read counts until the pod has another resourceVersion. */
export class LivePods {
  readonly #host: KubeClient;
  readonly #rights: MissingRights;
  readonly #monotonic: () => number;
  /** By UID, without bulk. */
  readonly #read = new LRUCache<string, Pod>(atMost());
  /** UIDs of those that were seen to be gone, or on their way out, for good. */
  readonly #gone = new LRUCache<string, true>(atMost());
  /** By UID, until when one that the host failed at is not read again for {@link read} (monotonic ms). */
  readonly #unreadUntil = new LRUCache<string, number>(atMost());

  /** `monotonic` in ms. */
  constructor({ host, monotonic }: { host: KubeClient; monotonic: () => number }, rights: MissingRights) {
    this.#host = host;
    this.#rights = rights;
    this.#monotonic = monotonic;
  }

  /** The pod as last read live if its resourceVersion is unchanged; else the cached one. */
  asRead(pod: Pod): Pod {
    const known = this.#read.get(pod.metadata.uid ?? '');
    return known?.metadata.resourceVersion === pod.metadata.resourceVersion ? (known ?? pod) : pod;
  }

  /** The live pod, read only if its resourceVersion changed since the last read; undefined when it is gone, being deleted, or cannot be read, nor could be a moment ago. */
  async read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const known = this.asRead(pod);
    if (known !== pod) return known;
    if (this.#rights.in(pod.metadata.namespace ?? '')) return undefined;
    if ((this.#unreadUntil.get(pod.metadata.uid ?? '') ?? 0) > this.#monotonic()) return undefined;
    const found = await this.readNow(pod, signal);
    return 'live' in found ? this.remember(found.live) : undefined;
  }

  /**
   * The live pod, or why it stays for now: it may not be read, or the host fails at this one. Not wanted when another pod has its name, or it is being deleted: the
   * caches will catch up. @throws what the host answers that says nothing of the pod
   */
  async readNow({ metadata }: Pod, signal: AbortSignal): Promise<{ live: Pod } | { stays: 'notWanted' | Held }> {
    const { namespace = '', name, uid } = metadata;
    try {
      const live = await ifThere(get<Pod>(this.#host, PODS, { namespace, name }, { signal }));
      const isIt = live?.metadata.uid === uid && live?.metadata.deletionTimestamp === undefined;
      if (live !== undefined && isIt) return { live };
      this.#gone.set(uid ?? '', true);
      return { stays: 'notWanted' };
    } catch (error) {
      if (isRightMissing(error)) {
        this.#rights.note(namespace, error);
        return { stays: this.#rights.held(namespace) };
      }
      if (!isOfOnePod(error)) throw error;
      const held = heldUnread(error);
      this.#unreadUntil.set(uid ?? '', this.#monotonic() + (held.forMs ?? 0));
      return { stays: held };
    }
  }

  /** Whether it was seen to be gone, or on its way out: what caches show of it is old. */
  isGone({ metadata: { uid = '' } }: Pod): boolean {
    return this.#gone.has(uid);
  }

  remember(live: Pod): Pod {
    const known = withoutBulk(live);
    this.#read.set(live.metadata.uid ?? '', known);
    return known;
  }
}

/** Drops fields that neither strategies nor placement read. */
function withoutBulk({ metadata, spec, status }: Pod): Pod {
  const { annotations = {}, ...rest } = metadata;
  const own = Object.entries(annotations).filter(([key]) => key.startsWith(`${GROUP}/`));
  const { containers, initContainers, ...others } = spec;
  return {
    metadata: { ...rest, annotations: Object.fromEntries(own) },
    spec: {
      ...others,
      containers: containers.map(asked),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(asked) }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** The fields of a container that scheduling depends on. */
function asked({ name, image, resources, ports, restartPolicy }: Container): Container {
  return {
    name,
    ...(image === undefined ? {} : { image }),
    ...(resources === undefined ? {} : { resources }),
    ...(ports === undefined ? {} : { ports }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}
