import type { Pod } from '../kube/core-v1.ts';
import type { BetterPlace } from '../placement/better-place.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { Mover } from './mover.ts';
import { madeAt } from './pod-age.ts';

export interface DisplacedPod {
  readonly pod: Pod;
  /** The cluster it is in. */
  readonly from: string;
  readonly better: BetterPlace;
}

/**
 * A pod of a workload that would be elsewhere if it came now, for a reason that counts. One of each cluster is asked about, as they are
 * alike. `unread`: there may be one, but not all of these could be read: they are gone by now, the host does not let us, or their member
 * is silent, so that what the host shows of them may be old.
 */
export async function displacedPod(
  pods: readonly Pod[],
  {
    placed,
    mover,
  }: { placed: Pick<PlacedPods, 'member' | 'clusterOf' | 'betterPlace'>; mover: Pick<Mover, 'read' | 'wasSent'> },
  counts: (strategy: BetterPlace['strategy']) => boolean,
  signal: AbortSignal,
): Promise<DisplacedPod | 'unread' | undefined> {
  const byCluster = new Map<string, Pod>();
  for (const pod of pods.toSorted(byAge)) {
    const { nodeName } = pod.spec;
    if (nodeName === undefined || pod.metadata.deletionTimestamp !== undefined || mover.wasSent(pod)) continue;
    byCluster.set(placed.clusterOf(nodeName), pod);
  }
  let isUnread = false;
  for (const [from, pod] of byCluster) {
    if (placed.member(from)?.silent !== undefined) {
      isUnread = true;
      continue;
    }
    const live = await mover.read(pod, signal);
    isUnread ||= live === undefined;
    const better = live === undefined ? undefined : placed.betterPlace(live, from, counts);
    if (better !== undefined) return { pod, from, better };
  }
  return isUnread ? 'unread' : undefined;
}

/** The youngest of a cluster is the last, and goes: it has least to lose. */
function byAge(a: Pod, b: Pod): number {
  return madeAt(a).localeCompare(madeAt(b)) || (a.metadata.name < b.metadata.name ? -1 : 1);
}
