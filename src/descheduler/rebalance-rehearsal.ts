import type { RehearsedMove } from '../api/workload-rebalancer.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { SupposedMove } from '../placement/supposed-moves.ts';
import { displacedPod, type DisplacedPod } from './displaced-pod.ts';
import type { Mover } from './mover.ts';

/** What a rebalancer would move of a workload, if nothing else changed meanwhile. */
export interface Rehearsal {
  readonly moves: readonly RehearsedMove[];
  /** There are more. */
  readonly hasMore: boolean;
  /** Not all of its pods could be read, so that there may be more. */
  readonly isUnread: boolean;
  /** Why there may be more all the same, in words: of a pod it is not known where it would go. */
  readonly unknown: string | undefined;
  /** What would hold them now, in words. */
  readonly held: readonly string[];
}

export interface RehearsalOptions {
  placed: Pick<PlacedPods, 'member' | 'clusterOf' | 'betterPlace'>;
  mover: Pick<Mover, 'read' | 'wasSent' | 'inTurn'>;
  /** Asked about the first pod out of each cluster: why it would be held now. */
  whyHeld: (found: DisplacedPod) => string | undefined;
  /** How many moves are listed. */
  most: number;
}

/** One pod after the other as {@link displacedPod} finds them, each as if those before it had been moved. Moves nothing. */
export async function rehearse(
  pods: readonly Pod[],
  { placed, mover, whyHeld, most }: RehearsalOptions,
  signal: AbortSignal,
): Promise<Rehearsal> {
  const moves: RehearsedMove[] = [];
  const made: SupposedMove[] = [];
  const held = new Map<string, string | undefined>();
  const supposing = {
    member: (name: string) => placed.member(name),
    clusterOf: (nodeName: string) => placed.clusterOf(nodeName),
    betterPlace: (pod: Pod, from: string) => placed.betterPlace(pod, from, undefined, made),
  };
  let left = pods;
  for (;;) {
    const found = await displacedPod(left, { placed: supposing, mover }, () => true, signal);
    const isDone = found === undefined || found === 'unread' || 'unknown' in found;
    if (isDone || moves.length === most) {
      const whys = [...new Set([...held.values()].filter((why) => why !== undefined))];
      const unknown = isDone && found !== undefined && found !== 'unread' ? found.unknown : undefined;
      return { moves, hasMore: !isDone, isUnread: found === 'unread', unknown, held: whys };
    }
    const { pod, from, better } = found;
    const { cluster: to, strategy, why } = better;
    if (!held.has(from)) held.set(from, whyHeld(found));
    moves.push({ pod: pod.metadata.name, from, to, why: `${strategy}: ${why}` });
    made.push({ uid: pod.metadata.uid ?? '', from, to });
    left = left.filter((one) => one !== pod);
  }
}
