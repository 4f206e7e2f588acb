import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isConflict } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { PODS } from '../kube/resource.ts';
import { isOlder } from '../kube/resource-version.ts';
import { get } from '../kube/verbs.ts';
import type { StatusSource } from './evidence.ts';
import type { PodMemory } from './pod-memory.ts';
import { type PodWrites, refOf } from './pod-writes.ts';

/** So long the cache is given to show what a write was too late for, before the pod is read past it, in ms. */
const CATCH_UP_MS = 1_000;
/** So many times in a row a write is tried again as soon as there is something newer; from then on once in {@link CATCH_UP_MS}. */
const PROMPT = 3;

/** The host pod is not any more what a write of its status was made for. Nothing was written; to be decided anew. */
export class HostPodChanged extends Error {
  override readonly name = 'HostPodChanged';
  /** When to look again, in ms, unless the cache has news before. */
  readonly againMs: number;

  constructor(againMs: number) {
    super('the host pod has changed meanwhile');
    this.againMs = againMs;
  }
}

export interface HostStatusWriterOptions {
  host: KubeClient;
  writes: Pick<PodWrites, 'patchHostStatus'>;
  monotonic: () => number;
}

/**
 * Writes statuses of host pods, each for exactly the version of the pod that it was made for: one that gets no answer and is
 * carried out late cannot take back what was written after it. The price is that a write may come too late; then the cache
 * shows why in a moment, and what is to be written is decided anew. Somebody who writes to the pod all the time makes our
 * tries rare, not endless.
 */
export class HostStatusWriter {
  readonly #o: HostStatusWriterOptions;

  constructor(options: HostStatusWriterOptions) {
    this.#o = options;
  }

  /**
   * Writes a status and remembers the answer in `memory.host`.
   * @throws HostPodChanged when `hostPod` is not the newest version, or it is too early for another try.
   */
  async write(
    hostPod: Pod,
    body: Record<string, unknown>,
    source: StatusSource,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Pod> {
    const { uid: of = '', resourceVersion: version } = hostPod.metadata;
    const before = memory.conflict?.of === of ? memory.conflict : undefined;
    if (before?.version === version) await this.#catchUp(hostPod, memory, signal);
    else if (before !== undefined && before.times > PROMPT) this.#rest(before.at);
    try {
      const written = await this.#o.writes.patchHostStatus(hostPod, body, source, signal);
      memory.host = written;
      delete memory.conflict;
      return written;
    } catch (error) {
      if (!isConflict(error)) throw error;
      memory.conflict = { of, version, times: (before?.times ?? 0) + 1, at: this.#o.monotonic() };
      throw new HostPodChanged(CATCH_UP_MS);
    }
  }

  #rest(since: number): void {
    const rest = since + CATCH_UP_MS - this.#o.monotonic();
    if (rest > 0) throw new HostPodChanged(rest);
  }

  /** Nothing newer is known than what a write was too late for: waits for the cache, then asks the host. */
  async #catchUp(hostPod: Pod, memory: PodMemory, signal: AbortSignal): Promise<void> {
    const { conflict } = memory;
    if (conflict === undefined) return;
    this.#rest(conflict.at);
    const { uid, resourceVersion: known } = hostPod.metadata;
    const live = await ifThere(get<Pod>(this.#o.host, PODS, refOf(hostPod), { signal }));
    const { resourceVersion: version } = live?.metadata ?? {};
    // Then it was not the version that was in the way.
    if (live?.metadata.uid === uid && version === known) return;
    if (live === undefined || live.metadata.uid !== uid || isOlder(version, known)) {
      // Gone, or of a host that went back in time: that the cache has to find out.
      conflict.at = this.#o.monotonic();
      throw new HostPodChanged(CATCH_UP_MS);
    }
    memory.host = live;
    throw new HostPodChanged(1);
  }
}
