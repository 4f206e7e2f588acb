import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isNotFound } from '../kube/errors.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';

/** Most that are asked for: with more copies than these, a list that lacks some would still show others. */
const MOST = 50;

/** The copies that were seen last on a virtual node that retires: a list that lacks them does not say that they are gone. */
export class LastCopies {
  #pods: readonly Pod[] = [];

  /** Those that the cache shows now. */
  seen(pods: readonly Pod[]): void {
    if (pods.length > 0) this.#pods = pods.slice(0, MOST);
  }

  /** Whether the member, asked for each of them, has none any more. @throws what it answers else */
  async areGone(member: KubeClient, signal: AbortSignal): Promise<boolean> {
    for (const { metadata } of this.#pods) {
      const { namespace = '', name, uid } = metadata;
      try {
        const now = await get<Pod>(member, PODS, { namespace, name }, { signal });
        if (now.metadata.uid === uid) return false;
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    this.#pods = [];
    return true;
  }
}
