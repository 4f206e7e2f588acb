import { isFinished } from '../api/pod-phase.ts';
import { asOwned } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { isDaemonPod } from '../pods/daemon-pod.ts';

/** Pods that a refusal names. */
const MOST_NAMED = 5;

/** kubectl drain's own flags. */
export interface DrainChoices {
  /** Pods without a controller go, too: nobody makes them anew. */
  force: boolean;
  /** Pods with emptyDir volumes go, too: what is in these is lost. */
  deleteEmptydirData: boolean;
}

export interface DrainPlan {
  /** Those that are being deleted already among them: it is waited for these, too. */
  evict: Pod[];
  /** Pods that stay without harm. */
  skipped: { pod: Pod; why: string }[];
  /** Pods that nobody may evict without a word of the person; then none is evicted. */
  refused: { pod: Pod; why: string }[];
}

/** What becomes of the pods of a member that is drained, by the rules of kubectl drain. Those of DaemonSets stay: they would come back. */
export function drainPlan(pods: readonly Pod[], { force, deleteEmptydirData }: DrainChoices): DrainPlan {
  const plan: DrainPlan = { evict: [], skipped: [], refused: [] };
  for (const pod of pods) {
    const { deletionTimestamp } = pod.metadata;
    // One that is being moved is out of its ReplicaSet for a while, which has another one already.
    const isControlled = controllerOf(asOwned(pod)) !== undefined;
    const hasData = (pod.spec.volumes ?? []).some(({ emptyDir }) => emptyDir !== undefined);
    if (isDaemonPod(pod)) plan.skipped.push({ pod, why: 'a DaemonSet would make it anew' });
    else if (isFinished(pod) || deletionTimestamp !== undefined) plan.evict.push(pod);
    else if (!isControlled && !force)
      plan.refused.push({ pod, why: 'it has no controller that makes it anew (use --force)' });
    else if (hasData && !deleteEmptydirData)
      plan.refused.push({ pod, why: 'it has emptyDir volumes (use --delete-emptydir-data)' });
    else plan.evict.push(pod);
  }
  return plan;
}

/** The first of them, each with its reason. */
export function refusedInWords(refused: DrainPlan['refused']): string {
  return refused
    .slice(0, MOST_NAMED)
    .map(({ pod, why }) => `${keyOf(pod)}: ${why}`)
    .join('; ');
}
