import { LRUCache } from 'lru-cache';
import { unscheduledOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';

/** Pods that had gates and wait, at the most. */
const MAX_WAITING = 50_000;
/** Both times are in whole seconds, and one is taken right after the other. */
const MADE_WITH_MS = 1_000;

/**
 * Since when pods wait for a place. Behind scheduling gates (Kueue, gangs, gates of one's own) nobody looks for one, so that time
 * does not count: a pod that had gates waits since they were seen to be gone, or since a scheduler first asked about it. All
 * others wait since they were made.
 */
export class PodWaits {
  readonly #monotonic: () => number;
  /** UIDs. */
  readonly #gated = new Set<string>();
  /** By UID, in monotonic ms. */
  readonly #since = new LRUCache<string, number>(atMost(MAX_WAITING));

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** The pod as the host shows it. */
  set(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    if ((pod.spec.schedulingGates ?? []).length > 0) this.#gated.add(uid);
    else if (this.#gated.delete(uid)) this.#since.set(uid, this.#monotonic());
    if ((pod.spec.nodeName ?? '') !== '') this.delete(pod);
  }

  delete({ metadata }: Pod): void {
    this.#gated.delete(metadata.uid ?? '');
    this.#since.delete(metadata.uid ?? '');
  }

  /** How long the pod has waited, in ms; asked about by a scheduler, so that it has no gates any more. `now`: wall clock in ms. */
  waitedMs(pod: Pod, now: number): number {
    const { uid = '', creationTimestamp } = pod.metadata;
    if (!this.#since.has(uid) && (this.#gated.has(uid) || hadGates(pod))) this.#since.set(uid, this.#monotonic());
    const since = this.#since.get(uid);
    if (since !== undefined) return this.#monotonic() - since;
    const waited = now - Date.parse(creationTimestamp ?? '');
    // The clock of the API server may be ahead of ours.
    return Number.isNaN(waited) ? 0 : Math.max(0, waited);
  }
}

/**
 * A pod that is made with gates has condition PodScheduled from the API server, with the time of that, which schedulers leave when they fail
 * and change the reason, as the status is still False. Opening its gates is a change of its spec, and next to nothing else is before a
 * pod has a node; of one that only was, and was refused in its first second, the time counts anew. Hosts before 1.33 count no changes, and
 * write no time there.
 */
function hadGates(pod: Pod): boolean {
  const condition = unscheduledOf(pod);
  if (condition === undefined) return false;
  const { creationTimestamp = '', generation = 1 } = pod.metadata;
  const { reason, lastTransitionTime } = condition;
  if (reason === 'SchedulingGated' || (lastTransitionTime ?? '') === '') return true;
  return generation > 1 && Date.parse(lastTransitionTime ?? '') - Date.parse(creationTimestamp) <= MADE_WITH_MS;
}
