import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';

/** Between two questions of one attempt of a scheduler lie milliseconds. */
const SAME_ATTEMPT_MS = 5_000;
const MAX_REFUSED = 4_096;

/**
 * Pods for which others were evicted, or that something else nominated to a node: a scheduler asks about that node alone
 * first, and about all others only when it is not to be. So such a question says nothing of the other nodes; but if the same
 * is asked right after it was refused, that is all there is.
 */
export class Nominations {
  readonly #monotonic: () => number;
  /** By UID of the pod, when (monotonic, in ms). */
  readonly #refused = new LRUCache<string, number>(atMost(MAX_REFUSED));

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Whether a question leaves out nodes that the scheduler has not looked at. */
  leavesNodesOut({ metadata, status }: Pod, nodeNames: readonly string[]): boolean {
    const { uid = '' } = metadata;
    const refusedAt = this.#refused.get(uid);
    this.#refused.delete(uid);
    const isNominated = nodeNames.length === 1 && nodeNames[0] === status?.nominatedNodeName;
    return isNominated && (refusedAt === undefined || this.#monotonic() - refusedAt > SAME_ATTEMPT_MS);
  }

  refused({ metadata }: Pod): void {
    this.#refused.set(metadata.uid ?? '', this.#monotonic());
  }
}
