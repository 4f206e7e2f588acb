/** Label and annotation keys that Spillway writes. Nothing else in the API group is ever put on a user's object. */
export const GROUP = 'spillway.dev';
/** Of our own kinds, as `apiVersion`. */
export const OWN_VERSION = `${GROUP}/v1alpha1`;

/** Member objects: the host cluster's id (see {@link hostIdOf}). Ownership of anything in a member is this label. */
export const HOST_LABEL = `${GROUP}/host`;
/** Member objects and virtual nodes: the virtual node's name. */
export const NODE_LABEL = `${GROUP}/node`;
/** Member pods: the UID of the host pod they run for. */
export const UID_LABEL = `${GROUP}/uid`;
/** Virtual nodes: the MemberCluster they stand for. ConfigMaps and Secrets in members: the one that wrote them last. */
export const MEMBER_LABEL = `${GROUP}/member`;

/** Member objects: where the host object lives. */
export const HOST_NAMESPACE_ANNOTATION = `${GROUP}/host-namespace`;
export const HOST_NAME_ANNOTATION = `${GROUP}/host-name`;
export const HOST_UID_ANNOTATION = `${GROUP}/host-uid`;

/**
 * Member pods: the host pod's resourceVersion when they were made. A host that is older than that was restored from a
 * backup, and does not know what it lacks.
 */
export const HOST_VERSION_ANNOTATION = `${GROUP}/host-version`;

/**
 * Member namespaces: put there by the member's owner to lend an existing namespace. Value: a host id, or `any`.
 * Without it a namespace that Spillway did not create is never used.
 */
export const ALLOW_HOST_LABEL = `${GROUP}/allow-host`;

/** Virtual nodes carry this taint unless their MemberCluster says otherwise. */
export const VIRTUAL_NODE_TAINT = `${GROUP}/virtual-node`;
/**
 * Virtual nodes: put there by somebody who wants the node emptied, with effect NoSchedule: no new pods come, and the descheduler
 * moves those that are there.
 */
export const DRAIN_TAINT = `${GROUP}/drain`;
/**
 * Kubernetes' own (KEP-2268), put on a node by an administrator: nothing runs there any more. On a virtual node it is heeded while
 * its member does not answer, with whatever effect.
 */
export const OUT_OF_SERVICE_TAINT = 'node.kubernetes.io/out-of-service';
/**
 * Host pods: a resource of which a container asks for 0 pieces. The scheduler sends such pods to the extender or, while that does
 * not answer, lets them wait (`managedResources`). Never in a member.
 */
export const EXTENDER_RESOURCE = `${GROUP}/extender`;
/** Put on a virtual node while nothing can be heard of its member, which may be lost. */
export const UNREACHABLE_TAINT = `${GROUP}/member-unreachable`;
/** In place of it while the member answers and cannot serve, or cannot be asked for a reason on this side. */
export const NOT_READY_TAINT = `${GROUP}/member-not-ready`;

/**
 * On a namespace, `enabled`: pods that no policy speaks about stay local while there is room, then go to any member;
 * `policies`: they stay local. On a pod or one of its owners, `disabled`: not this one.
 */
export const BURST_LABEL = `${GROUP}/burst`;

/** Host pod condition: the member pod exists or existed; its message says where. Never removed. */
export const MIRRORED_CONDITION = `${GROUP}/Mirrored`;

/** The host's id in marks: its kube-system namespace UID without dashes, first 16 characters. */
export function hostIdOf(kubeSystemUid: string): string {
  return kubeSystemUid.replaceAll('-', '').slice(0, 16);
}

/** MemberClusters: the administrator accepts this cluster identity (a kube-system namespace UID) instead of the pinned one. */
export const CONFIRM_IDENTITY_ANNOTATION = `${GROUP}/confirm-identity`;

/** MemberClusters: finalizer, from before anything of ours can be in the member until nothing is there any more. */
export const LEAVING_FINALIZER = `${GROUP}/leaving`;

/**
 * MemberClusters: the administrator's word, by the UID of the MemberCluster itself, that nothing of ours runs in the cluster any
 * more or is to be waited for, although it does not answer.
 */
export const FORCE_LEAVE_ANNOTATION = `${GROUP}/force-leave`;

/** MemberClusters: the administrator confirms deletions that were held back, by the token that the condition names. */
export const CONFIRM_DELETIONS_ANNOTATION = `${GROUP}/confirm-deletions`;

/** Secrets with the credentials of a member: its token is renewed by Spillway as long as this is `true`. */
export const RENEWED_TOKEN_LABEL = `${GROUP}/renew-token`;

/** Host pods: name of the group, within their namespace, that is placed all in one cluster or not at all. */
export const GANG_LABEL = `${GROUP}/gang`;
/** Host pods of a gang: how many there have to be. */
export const GANG_SIZE_ANNOTATION = `${GROUP}/gang-size`;
/** Host pods of a gang: how long a place is held for those that have no node yet, in seconds. */
export const GANG_TIMEOUT_ANNOTATION = `${GROUP}/gang-timeout-seconds`;
/** Host pods of a gang: when it got its place. Where that is, the pod's node selector says. */
export const GANG_PLACED_ANNOTATION = `${GROUP}/gang-placed-at`;
/** Scheduling gate of pods that wait for their group to be placed. */
export const GANG_GATE = `${GROUP}/gang`;

/** Host pods: JSON of the ReplicaSet that a pod was released from, while another one comes up in its place (see released.ts). */
export const RELEASED_ANNOTATION = `${GROUP}/released`;

/** Leases: the process that wrote it last, to tell it from a former one of the same identity. */
export const INCARNATION_ANNOTATION = `${GROUP}/process`;
/** The descheduler's Lease: as long as it is there, whatever it says, no move of a pod begins (see moves-stopped.ts). */
export const MOVES_STOPPED_ANNOTATION = `${GROUP}/moves-stopped`;
/**
 * Host pods: JSON of what the pod asks of nodes in a member (see docs/concepts/constraints.md). Written at admission with
 * what the pod asked for itself, or by the user.
 */
export const MEMBER_CONSTRAINTS_ANNOTATION = `${GROUP}/member-constraints`;

/**
 * Host PodDisruptionBudgets: JSON of how many evictions each member may grant of its pods at most, and which members are
 * being drained (see budgets/claims.ts).
 */
export const MEMBER_EVICTIONS_ANNOTATION = `${GROUP}/member-evictions`;
