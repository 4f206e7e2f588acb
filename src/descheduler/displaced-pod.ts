import type { Pod } from '../kube/core-v1.ts';
import type { BetterPlace, PlaceUnknown } from '../placement/better-place.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { Mover } from './mover.ts';
import { byYouth } from './pod-age.ts';

export interface DisplacedPod {
  readonly pod: Pod;
  /** The cluster it is in. */
  readonly from: string;
  readonly better: BetterPlace;
}

/**
 * A pod of a workload that would be elsewhere if it came now, for a reason that counts. One of each cluster is asked about, as they are
 * alike: the youngest, which has least to lose, of those whose turn it is. `unread`: there may be one, but not all of these could be read: they are gone by now, the host does not let us, or their member
 * is silent, so that what the host shows of them may be old. `unknown`: there may be one, but of one it is not known where it would go.
 */
export async function displacedPod(
  pods: readonly Pod[],
  {
    placed,
    mover,
  }: {
    placed: Pick<PlacedPods, 'member' | 'clusterOf' | 'betterPlace'>;
    mover: Pick<Mover, 'read' | 'wasSent' | 'inTurn'>;
  },
  counts: (strategy: BetterPlace['strategy']) => boolean,
  signal: AbortSignal,
): Promise<DisplacedPod | PlaceUnknown | 'unread' | undefined> {
  const byCluster = new Map<string, Pod>();
  // The last of a cluster counts.
  for (const pod of mover.inTurn(pods.toSorted(byYouth)).toReversed()) {
    const { nodeName } = pod.spec;
    if (nodeName === undefined || pod.metadata.deletionTimestamp !== undefined || mover.wasSent(pod)) continue;
    byCluster.set(placed.clusterOf(nodeName), pod);
  }
  let isUnread = false;
  let unknown: PlaceUnknown | undefined;
  for (const pod of mover.inTurn([...byCluster.values()])) {
    const from = placed.clusterOf(pod.spec.nodeName ?? '');
    if (placed.member(from)?.silent !== undefined) {
      isUnread = true;
      continue;
    }
    const live = await mover.read(pod, signal);
    isUnread ||= live === undefined;
    const better = live === undefined ? undefined : placed.betterPlace(live, from, counts);
    if (better !== undefined && 'unknown' in better) unknown = better;
    else if (better !== undefined) return { pod, from, better };
  }
  return isUnread ? 'unread' : unknown;
}
