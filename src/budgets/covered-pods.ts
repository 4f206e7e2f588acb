import { MIRRORED_CONDITION } from '../api/marks.ts';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { isReady, isTrue } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { MirroredBudget } from './mirrored-budget.ts';

export interface CoverFacts {
  /** Pods of the host that the budget covers and that are on virtual nodes of the member. */
  hostPods: Iterable<Pod>;
  /** Budgets in the member that stand for it. */
  mirrors: readonly Pick<MirroredBudget, 'namespace' | 'uids'>[];
  /** The copy for a host pod, by that pod's UID. */
  copyOf: (uid: string) => Pod | undefined;
  /** Whether the owner of the member empties that node of it. */
  isDrained: (node: string) => boolean;
}

export interface CopiesInNamespace {
  /** UIDs of their host pods, and of those whose copies are still to come. */
  uids: Set<string>;
  healthy: number;
}

export interface CoveredPods {
  /** Copies that are there and not being deleted, by their namespace. */
  namespaces: Map<string, CopiesInNamespace>;
  copies: number;
  /** UIDs of the pods that the host counts as healthy. */
  counted: Set<string>;
  /** How many of these are not healthy in the member: disruptions that the host does not know of yet. */
  inFlight: number;
  draining: boolean;
}

/** What there is in one member of the pods of a budget. */
export function coveredPods({ hostPods, mirrors, copyOf, isDrained }: CoverFacts): CoveredPods {
  const seen: CoveredPods = { namespaces: new Map(), copies: 0, counted: new Set(), inFlight: 0, draining: false };
  const add = (uid: string): Pod | undefined => {
    const copy = copyOf(uid);
    if (copy === undefined || !isActive(copy)) return undefined;
    const { namespace = '' } = copy.metadata;
    const there = seen.namespaces.get(namespace) ?? { uids: new Set(), healthy: 0 };
    seen.namespaces.set(namespace, there);
    if (there.uids.has(uid)) return copy;
    there.uids.add(uid);
    seen.copies += 1;
    if (isReady(copy)) there.healthy += 1;
    if (copy.spec.nodeName !== undefined && isDrained(copy.spec.nodeName)) seen.draining = true;
    return copy;
  };
  const coming: string[] = [];
  for (const pod of hostPods) {
    const { uid = '', deletionTimestamp } = pod.metadata;
    if (isFinished(pod)) continue;
    const copy = add(uid);
    if (copyOf(uid) === undefined && deletionTimestamp === undefined) coming.push(uid);
    // Pods of DaemonSets that are only shown as ready have no copy.
    const isCounted = deletionTimestamp === undefined && isReady(pod) && isTrue(pod, MIRRORED_CONDITION);
    if (!isCounted) continue;
    seen.counted.add(uid);
    if (copy === undefined || !isReady(copy)) seen.inFlight += 1;
  }
  // The member counts them, whether the host knows their pods or not.
  for (const { namespace, uids } of mirrors) {
    for (const uid of uids) if (copyOf(uid)?.metadata.namespace === namespace) add(uid);
  }
  // A copy may be ready sooner than a budget that names it is written. In which namespace it will be is clear where there is but one.
  const [there, ...others] = seen.namespaces.values();
  if (others.length === 0) for (const uid of coming) there?.uids.add(uid);
  return seen;
}
