import { GANG_LABEL } from '../api/marks.ts';
import type { Failover } from '../api/failover.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf, groupKindOf } from '../kube/owner-references.ts';
import { usesClaims } from '../kube/uses-claims.ts';

type Action = NonNullable<Failover['onMemberLost']>['action'];

/** Controllers that make a replacement as soon as a pod is being deleted. */
const REPLACING_AT_ONCE = new Set(['apps/ReplicaSet', '/ReplicationController']);
/** Controllers that make a replacement once a pod is gone. */
const REPLACING = new Set([...REPLACING_AT_ONCE, 'apps/StatefulSet', 'batch/Job']);

/**
 * Why a pod of an unreachable member is not replaced; undefined when it may be. As it may still run, pods that must not run twice
 * or are bound to data are held.
 */
export function whyNotReplaced(pod: Pod, action: Action): string | undefined {
  if (action === 'Hold') return 'its policy says Hold';
  if (action === 'ReplaceWhenFenced')
    return 'its policy says ReplaceWhenFenced, and its virtual node is not out of service';
  const never = whyNotMoved(pod);
  if (never !== undefined) return never;
  const controller = controllerKindOf(pod);
  if (REPLACING_AT_ONCE.has(controller)) return undefined;
  if (controller === 'apps/StatefulSet') {
    return 'a StatefulSet makes no other pod of that name before this one is known to have ended';
  }
  return action === 'Replace' ? undefined : 'its work would be done twice';
}

/** The same for a pod of a reachable member, whose end is known before a replacement starts. */
export function whyNotMoved(pod: Pod): string | undefined {
  const never = whyNotMadeAnew(pod);
  if (never !== undefined) return never;
  if (pod.metadata.labels?.[GANG_LABEL] !== undefined) return 'the pods of a gang have one place together';
  return usesClaims(pod) ? 'it uses claims, and its data are there' : undefined;
}

/** The same for a move that nobody is forced to make, nor asked for by the name of one workload: it is to cost the controller nothing. */
export function whyNotMovedAtWill(pod: Pod): string | undefined {
  return controllerKindOf(pod) === 'batch/Job'
    ? 'a Job counts a pod that is deleted as one that failed'
    : whyNotMoved(pod);
}

/** Why nobody would make another one once the pod is gone; undefined when somebody would. */
export function whyNotMadeAnew(pod: Pod): string | undefined {
  const controller = controllerKindOf(pod);
  if (controller === '') return 'it has no controller that would make another one';
  if (controller === 'apps/DaemonSet') return 'a DaemonSet has one pod for each node';
  return REPLACING.has(controller) ? undefined : `it is not known that a ${controller} would make another one`;
}

function controllerKindOf(pod: Pod): string {
  const controller = controllerOf(pod);
  return controller === undefined ? '' : groupKindOf(controller);
}
