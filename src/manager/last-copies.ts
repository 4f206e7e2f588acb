import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ifThere } from '../kube/if-there.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';

/** Most that are asked for: with more copies than these, a list that lacks some would still show others. */
const MOST = 50;

/** Copies that were seen on a virtual node that retires: a list that lacks them does not say that they are gone. */
export class LastCopies {
  /** By UID. */
  readonly #pods = new Map<string, Pod>();
  /** Whether that pod of the member is a copy on the virtual node still, as its labels say. */
  readonly #isThere: (pod: Pod) => boolean;

  constructor(isThere: (pod: Pod) => boolean) {
    this.#isThere = isThere;
  }

  /** Those that the cache shows now. */
  seen(pods: readonly Pod[]): void {
    for (const pod of pods) if (this.#pods.size < MOST) this.#pods.set(pod.metadata.uid ?? '', pod);
  }

  /** Whether the member, asked for each of them, has none any more. @throws what it answers else */
  async areGone(member: KubeClient, signal: AbortSignal): Promise<boolean> {
    for (const [uid, { metadata }] of this.#pods) {
      const { namespace = '', name } = metadata;
      const now = await ifThere(get<Pod>(member, PODS, { namespace, name }, { signal }));
      if (now?.metadata.uid === uid && this.#isThere(now)) return false;
      this.#pods.delete(uid);
    }
    return true;
  }
}
