import type { Advice } from './explanation.ts';

const EVENTS_PAGE = 'reference/events.md#pods';
const advice = (help: string, page = EVENTS_PAGE): Advice => ({ help, page });
const waiting = (page = EVENTS_PAGE): Advice => ({ page });

const HELP: Readonly<Record<string, Advice>> = {
  MemberUnreachable: advice(
    'see kubectl spillway clusters: when the member answers again the pod goes on by itself',
    'concepts/failover.md',
  ),
  MemberUnavailable: waiting(),
  MemberQuotaExceeded: advice(
    'raise the ResourceQuota of the namespace in the member, or make room in it',
    'concepts/capacity.md',
  ),
  MemberPodSecurity: advice(
    'change the securityContext of the pod, or the Pod Security level of the namespace in the member: ' +
      'kubectl label --overwrite namespace NAME pod-security.kubernetes.io/enforce=privileged there',
    'concepts/virtual-nodes.md',
  ),
  MemberPriorityClass: advice(
    'make the PriorityClass in the member, or change spec.podPriority of the MemberCluster',
    'concepts/virtual-nodes.md#whose-pods-go-first-in-a-member',
  ),
  MemberServiceAccount: advice(
    'make the ServiceAccount in the member, or ask for another service account mode',
    'concepts/service-accounts.md#member',
  ),
  MemberForbidden: advice('apply manifests/member in the member: the credentials lack a right', 'reference/rights.md'),
  MemberInvalid: advice('change the pod: the API server of the member refuses it'),
  MemberRefused: advice('read the words of the admission policy or webhook of the member, and change the pod'),
  MemberUnschedulable: advice('make room in the member, or tolerate the taints of its nodes', 'concepts/capacity.md'),
  NameTaken: advice(
    'rename the pod, or use another namespace mapping: the member has a pod of that name that is not ours',
    'concepts/virtual-nodes.md',
  ),
  FormerPodLeaving: advice(
    'nothing, as a rule; where the former pod does not go by itself, look in the member for a node that is dead, or a finalizer that keeps it',
    'concepts/virtual-nodes.md',
  ),
  NamespaceNotAllowed: advice('let the owner of the member label that namespace spillway.dev/allow-host=any there'),
  NamespaceMissing: advice('create the namespace in the member, or set spec.namespaces.create of the MemberCluster'),
  NamespaceCreateForbidden: advice(
    'create the namespace in the member, with label spillway.dev/allow-host=any; or, where the message names a Pod Security level, ' +
      'let the owner of the member apply manifests/member/guard.yaml of this version and, for privileged, privileged.yaml there',
    'concepts/virtual-nodes.md',
  ),
  NamespaceTerminating: waiting(),
  MemberIdentityChanged: advice('see condition IdentityPinned of the MemberCluster', 'security.md'),
  MandatoryConfigMapNotFound: advice('create the ConfigMap in the namespace of the pod, in this cluster'),
  MandatorySecretNotFound: advice('create the Secret in the namespace of the pod, in this cluster'),
  OptionalConfigMapNotFound: waiting(),
  OptionalSecretNotFound: waiting(),
  FailedToReadMandatoryConfigMap: advice('grant the manager the right to read it', 'reference/rights.md'),
  FailedToReadMandatorySecret: advice('grant the manager the right to read it', 'reference/rights.md'),
  FailedToReadOptionalConfigMap: advice('grant the manager the right to read it', 'reference/rights.md'),
  FailedToReadOptionalSecret: advice('grant the manager the right to read it', 'reference/rights.md'),
  ConfigMapNameTaken: advice('rename one of the two, or use another namespace mapping'),
  SecretNameTaken: advice('rename one of the two, or use another namespace mapping'),
  ConfigMapNotCopied: advice(
    'read the words of the member; make the object smaller, or change the override policy that adds to it',
  ),
  SecretNotCopied: advice(
    'read the words of the member; make the object smaller, or change the override policy that adds to it',
  ),
  DependentsPending: waiting(),
  OverrideRefused: advice(
    'correct the override policy that the message names, or mend what it says cannot be read',
    'concepts/overrides.md',
  ),
  OverridePoliciesNotRead: advice('apply manifests/crds and manifests/rbac.yaml', 'concepts/overrides.md'),
  ClaimElsewhere: advice('use another claim, or let the pod run where the data are', 'concepts/storage.md'),
  ClaimClassNotMapped: advice(
    'use a class of provisioner member.spillway.dev that the MemberCluster maps',
    'concepts/storage.md',
  ),
  ClaimNotSupported: advice('make the claim anew without selector and data source', 'concepts/storage.md'),
  ClaimNotFound: advice('create the claim', 'concepts/storage.md'),
  ClaimNotOwned: advice(
    'rename the pod or the volume, or remove the claim if nobody needs its data',
    'concepts/storage.md',
  ),
  ClaimPending: waiting('concepts/storage.md'),
  ClaimNotCreated: advice('read the words of the member: a quota, a right, a class', 'concepts/storage.md'),
  ClaimNameTaken: advice(
    'give the claim another name: the one in the member has the data of others, or of a former claim',
    'concepts/storage.md',
  ),
  ClaimTerminating: advice('save the data in the member while they are there', 'concepts/storage.md'),
  ClaimLost: advice(
    'look in the member whether the data were restored or can be saved, as the message says',
    'concepts/storage.md',
  ),
  HostPathNotAllowed: advice(
    'take the volume out, or allow the path in spec.hostPath of the MemberCluster',
    'security.md',
  ),
  ResourceClaimsNotSupported: advice('use an extended resource in place of the resource claim'),
  ServiceAccountTokenNotAvailable: advice('ask for another service account mode', 'concepts/service-accounts.md'),
  ServiceAccountModeInvalid: advice(
    'correct spillway.dev/service-account-mode of the pod or its namespace',
    'concepts/service-accounts.md',
  ),
  ServiceAccountModeNotAllowed: advice('ask for a mode that the MemberCluster allows', 'concepts/service-accounts.md'),
  NamespacesNotRead: advice('apply manifests/rbac.yaml', 'reference/rights.md'),
  PodCertificateNotAvailable: advice('remove the volume source podCertificate: it cannot be had in a member'),
  StaticPodNotSupported: advice('static pods do not run in members'),
  DaemonSetIgnored: advice(
    'set spec.daemonSets: Run in the MemberCluster if it is to run there',
    'concepts/virtual-nodes.md',
  ),
  NodePoolMismatch: advice('delete the pod: its selector contradicts the pool of its node'),
  InvalidMemberConstraints: advice(
    'correct annotation spillway.dev/member-constraints in the pod template',
    'concepts/constraints.md',
  ),
  NodeConstraintsMismatch: advice(
    'delete the pod; let the scheduler ask Spillway so that it does not come back',
    'guides/scheduling.md',
  ),
  InvalidPod: advice('shorten the names of the pod and its namespace'),
  MemberPodLost: advice('its controller replaces it; a pod without one has to be made anew', 'invariants.md'),
  CreationUnanswered: waiting('concepts/virtual-nodes.md'),
  MemberPodDeleted: advice('somebody deleted it in the member; its controller replaces it'),
  MemberStatusLost: advice('its exit code is not known to anybody'),
  NeverStarted: waiting(),
};

/**
 * What can be done about each reason that a pod is held back for, or ended with. The table in docs/reference/events.md has the same
 * reasons; a test compares the two.
 */
export const REASON_HELP: ReadonlyMap<string, Advice> = new Map(Object.entries(HELP));
