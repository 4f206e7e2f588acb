import type { Failure } from './dependent.ts';
import type { DependentKind } from '../pods/references.ts';

/** Why a pod cannot start yet. Reasons are API, see docs/pod-translation.md. */
export interface NotReady {
  ready: false;
  reason: string;
  message: string;
  /** All goes its usual way and the answer is a matter of moments: nothing to tell users yet. */
  pending: boolean;
}
export type Readiness = { ready: true } | NotReady;

/** How things stand with one ConfigMap or Secret, for every pod that refers to it. */
export type CopyState =
  | { is: 'ready' }
  | { is: 'pending' }
  /** The host has none. */
  | { is: 'absent' }
  | { is: 'unreadable'; problem: string }
  /** The member has one that is not ours. */
  | { is: 'taken' }
  /** Its copy is as override policies make it for another MemberCluster that stands for the same cluster. */
  | { is: 'others' }
  | { is: 'token' }
  /** An override policy cannot be applied to it. */
  | { is: 'overrides-refused'; problem: string }
  | { is: 'not-copied'; problem: string; permanent?: boolean };

export interface ReadinessContext {
  kind: DependentKind;
  namespace: string;
  name: string;
  member: string;
  memberNamespace: string;
  optional: boolean;
  /** Only an override policy refers to it. */
  byPolicy: boolean;
  /** It has been pending for so long that users should know. */
  overdue: boolean;
}

/** What a pod that refers to the object is told; undefined when it can start. */
export function notReady(state: CopyState, context: ReadinessContext): NotReady | undefined {
  const { kind, namespace, name, member, memberNamespace, optional } = context;
  const object = `${kind} "${name}"`;
  const say = (reason: string, message: string): NotReady => ({ ready: false, reason, message, pending: false });
  switch (state.is) {
    case 'ready':
      return undefined;
    case 'pending': {
      const message = `${object} is being copied to cluster "${member}". The pod starts by itself when it is there.`;
      return { ...say('DependentsPending', message), pending: !context.overdue };
    }
    case 'absent':
      return optional
        ? undefined
        : say(
            `Mandatory${kind}NotFound`,
            `${object}, which the pod needs, does not exist in namespace "${namespace}". The pod starts by itself when it is created.`,
          );
    case 'unreadable':
      return say(
        `FailedToRead${optional ? 'Optional' : 'Mandatory'}${kind}`,
        unreadable(object, context, state.problem),
      );
    case 'taken':
      return say(
        `${kind}NameTaken`,
        `Cluster "${member}" already has a ${object} in namespace "${memberNamespace}" that does not belong to this host. It is left alone; the pod starts by itself when that one is gone.`,
      );
    case 'others':
      return say(
        `${kind}NameTaken`,
        `Cluster "${member}" already has ${object} in namespace "${memberNamespace}" as override policies make it for another ` +
          'MemberCluster, which stands for the same cluster. It is left alone; the pod starts by itself when that one is gone. ' +
          'Let the two use different namespaces there (spec.namespaces), or let policies make the same of it for both.',
      );
    case 'token':
      return say(
        'ServiceAccountTokenNotAvailable',
        `${object} is the token of a service account of this cluster and is not given to cluster "${member}". Remove the reference, or keep the pod on real nodes.`,
      );
    case 'overrides-refused':
      return say('OverrideRefused', state.problem);
    case 'not-copied':
      return say(
        `${kind}NotCopied`,
        `${object} could not be copied to namespace "${memberNamespace}" of cluster "${member}": ${state.problem}. ${whatNext(kind, state.permanent)}`,
      );
  }
}

function whatNext(kind: DependentKind, permanent = false): string {
  return permanent
    ? `This does not pass by itself: change the ${kind}, or the override policy that changes its copy. It is tried again when it changes, and now and then.`
    : 'It is tried again by itself.';
}

/** The Event for an object whose copy, which pods use, does not follow any more. */
export function notFollowed(
  { kind, name, memberNamespace, member }: Pick<ReadinessContext, 'kind' | 'name' | 'memberNamespace' | 'member'>,
  { words, permanent }: Failure,
): { reason: string; message: string } {
  return {
    reason: `${kind}NotCopied`,
    message:
      `The copy of ${kind} "${name}" in namespace "${memberNamespace}" of cluster "${member}" stays as it was, and pods there ` +
      `go on with it: ${words}. ${whatNext(kind, permanent)}`,
  };
}

function unreadable(object: string, { namespace, byPolicy }: ReadinessContext, problem: string): string {
  const who = byPolicy ? 'which an override policy adds to the pod' : 'to which the pod refers';
  const advice = byPolicy ? ` ${GRANT}` : '';
  return `${object}, ${who}, cannot be read in namespace "${namespace}": ${problem}. It is tried again by itself.${advice}`;
}

/** Virtual nodes may read what pods on the host refer to; for all else somebody has to decide. */
const GRANT = 'If the manager may not read it, bind it a Role that names it: see docs/concepts/overrides.md.';

/** The Event for a pull secret that only a policy refers to and that we may not read: the member may have it. */
export function pullSecretUnread(
  namespace: string,
  name: string,
  problem: string,
): { reason: string; message: string } {
  return {
    reason: 'FailedToReadOptionalSecret',
    message:
      `Secret "${name}", with which an override policy makes the pod pull images, cannot be read in namespace "${namespace}": ` +
      `${problem}. The pod is created without a copy and pulls with the one that the member has, if any. ${GRANT}`,
  };
}

/** The Event for something optional that is missing: the pod starts without it. */
export function optionalMissing(
  kind: DependentKind,
  namespace: string,
  name: string,
): { reason: string; message: string } {
  return {
    reason: `Optional${kind}NotFound`,
    message: `${kind} "${name}", which is optional, does not exist in namespace "${namespace}". The pod starts without it.`,
  };
}
