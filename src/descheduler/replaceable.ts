import { GANG_LABEL } from '../api/marks.ts';
import { isTrue } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf, groupKindOf } from '../kube/owner-references.ts';
import { usesClaims } from '../kube/uses-claims.ts';
import type { KeptOwner, TypedObject } from '../placement/owner-chain.ts';
import type { MoveRules } from '../placement/placed-pods.ts';

/** Controllers that make a replacement as soon as a pod is being deleted. */
const REPLACING_AT_ONCE = new Set(['apps/ReplicaSet', '/ReplicationController']);
/** Controllers that make a replacement once a pod is gone. */
const REPLACING = new Set([...REPLACING_AT_ONCE, 'apps/StatefulSet', 'batch/Job']);

/**
 * Why a pod of an unreachable member is not replaced; undefined when it may be. As it may still run, pods that must not run twice
 * or are bound to data are held.
 */
export function whyNotReplaced(
  pod: Pod,
  { failover, workload }: Pick<MoveRules, 'failover' | 'workload'>,
): string | undefined {
  const action = failover?.onMemberLost?.action;
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
  return action === 'Replace' ? whyJobWaits(workload) : 'its work would be done twice';
}

/**
 * Why a Job makes no other pod while one is Terminating, as it is for as long as its member is lost: evicted, it would only lose its work once that answers
 * again. API servers write down what holds where nobody said it, so without a word the Job is not known.
 */
function whyJobWaits(job: TypedObject): string | undefined {
  const { spec = {} }: KeptOwner = job;
  switch (spec.podReplacementPolicy) {
    case 'TerminatingOrFailed':
      return undefined;
    case 'Failed':
      return 'its Job makes no other one before this one is known to have ended (podReplacementPolicy: Failed)';
    default:
      return 'it is not known whether its Job makes another one before this one has ended (podReplacementPolicy)';
  }
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

/** The same for one that never started where it is: volumes of its own have no data yet, and go with it. */
export function whyNotMovedUnstarted(pod: Pod): string | undefined {
  const volumes = (pod.spec.volumes ?? []).filter(({ ephemeral }) => ephemeral === undefined);
  const why = whyNotMovedAtWill({ ...pod, spec: { ...pod.spec, volumes } });
  if (why !== undefined) return why;
  // A pod that is made with the name of its node never was a scheduler's.
  return isTrue(pod, 'PodScheduled') ? undefined : 'no scheduler chose its node, so another one would come to the same';
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
