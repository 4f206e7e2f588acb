import type { MemberClusterSpec } from '../api/member-cluster.ts';
import { AFTER_LIMIT } from '../kube/limit-error.ts';
import { someOf } from '../kube/some-of.ts';

/** What is to be said of Services on the MemberCluster. */
export interface ServicesFinding {
  status: 'True' | 'False';
  reason:
    | 'Mirrored'
    | 'NotMirrored'
    | 'ServiceRightMissing'
    | 'NamespaceRightMissing'
    | 'HostServicesUnknown'
    | 'NameTaken'
    | 'ServiceRefused'
    | 'CacheLimit'
    | 'NamespaceNotAllowed';
  message: string;
}

/** Why one Service does not stand in the member. */
export interface ServiceProblem {
  reason: 'NameTaken' | 'ServiceRefused' | 'CacheLimit' | 'NamespaceNotAllowed';
  message: string;
}

interface Facts {
  readonly member: string;
  readonly mode: MemberClusterSpec['services']['mode'];
  /** Services of the host stand there. */
  readonly copies: number;
  /** Why Services or EndpointSlices of the host cannot be read; undefined once they were. */
  readonly hostProblem: string | undefined;
  /** What the member said when it refused to show them. */
  readonly memberProblem: string | undefined;
  /** Which limit of memory what it shows has met. */
  readonly memberLimit: string | undefined;
  /** What was said when the right to keep them was missing, by namespace of the host. */
  readonly refusals: ReadonlyMap<string, string>;
  readonly synced: boolean;
  /** Namespaces of the host that the MemberCluster lists, and that no namespace of the member stands for. */
  readonly unmapped: readonly string[];
  /** By `namespace/name` of the host's Service. */
  readonly problems: ReadonlyMap<string, ServiceProblem>;
}

const ORDER = ['NameTaken', 'ServiceRefused', 'CacheLimit', 'NamespaceNotAllowed'] as const;

/** The condition `ServicesMirrored` of a MemberCluster; undefined while there is nothing to say. */
export function servicesFinding(facts: Facts): ServicesFinding | undefined {
  const { member, mode, copies, hostProblem, memberProblem, memberLimit, refusals, synced, unmapped, problems } = facts;
  if (mode === 'None') {
    if (copies > 0) return undefined;
    return { status: 'False', reason: 'NotMirrored', message: 'Services of the host do not stand in the member.' };
  }
  if (hostProblem !== undefined) {
    const message = `Services of the host are not brought up to date in the member, as they cannot be read with their EndpointSlices: ${hostProblem}. Apply manifests/rbac.yaml in the host. It is tried again by itself.`;
    return { status: 'False', reason: 'HostServicesUnknown', message };
  }
  if (memberProblem !== undefined && memberLimit !== undefined) {
    const message = `Services of the host are not brought up to date in the member: ${memberLimit}. ${AFTER_LIMIT}`;
    return { status: 'False', reason: 'CacheLimit', message };
  }
  if (memberProblem !== undefined) {
    const message =
      `Services of the host are not brought up to date in the member: cluster "${member}" refuses to show them (${memberProblem}). ` +
      'Its owner applies manifests/member/services.yaml, or set spec.services.mode: None. It is tried again by itself.';
    return { status: 'False', reason: 'ServiceRightMissing', message };
  }
  const [refused] = refusals.values();
  if (refused !== undefined) {
    const message =
      `Services of these namespaces of the host are not brought up to date in the member, as cluster "${member}" refuses to keep them: ` +
      `${someOf([...refusals.keys()].toSorted())} (${refused}). Its owner applies manifests/member/services.yaml, or binds ClusterRole ` +
      'spillway-services there; or set spec.services.mode: None. It is tried again by itself.';
    return { status: 'False', reason: 'NamespaceRightMissing', message };
  }
  const all = [...problems].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const wanted of ORDER) {
    const some = all.filter(([, { reason }]) => reason === wanted);
    const [first] = some;
    if (first === undefined) continue;
    const keys = someOf(some.map(([key]) => key));
    const message = `Of the Services of the host these do not stand in the member as they should: ${keys}. ${first[1].message}`;
    return { status: 'False', reason: wanted, message };
  }
  if (unmapped.length > 0) {
    const message =
      `Services of these namespaces of the host, which spec.services.namespaces lists, do not stand in the member, as spec.namespaces maps ` +
      `them to none there: ${someOf(unmapped)}. Map them, or list them no more.`;
    return { status: 'False', reason: 'NamespaceNotAllowed', message };
  }
  if (!synced) return undefined;
  return {
    status: 'True',
    reason: 'Mirrored',
    message: 'Services of the host stand in the member, where their pods are.',
  };
}
