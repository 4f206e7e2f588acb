/** What the probe found out about a member that is shown as not reachable. */
export type Silence = 'silent' | 'refusing' | 'answering' | 'not asked';

/**
 * Reasons of condition `Reachable` while it is False, and what each says of the member. `silent`: nothing comes of it, or what
 * comes is not from it. `refusing`: it answers, and does not let us work there. `answering`: it lives and is slow, or we hear too
 * little. `not asked`: the fault is on this side, before anything was sent.
 */
export const UNREACHABLE = {
  Timeout: 'silent',
  Refused: 'silent',
  ConnectionReset: 'silent',
  NameNotFound: 'silent',
  ProxyFailed: 'silent',
  TLSVerifyFailed: 'silent',
  NotAKubernetesAPI: 'silent',
  Unauthorized: 'refusing',
  Forbidden: 'refusing',
  TooManyRequests: 'answering',
  ServerError: 'answering',
  ProbeFailed: 'answering',
  WatchStale: 'answering',
  Aborted: 'not asked',
} as const satisfies Record<string, Silence>;

export type UnreachableReason = keyof typeof UNREACHABLE;

/** Whether a member that is not reachable for that reason answers all the same, so that its pods run as far as anybody knows. */
export function isAnswering(reason: string): boolean {
  return silenceOf(reason) === 'answering';
}

/** Whether a member that is not reachable for that reason may be lost. Reasons of credentials that cannot be used are none of these. */
export function mayBeLost(reason: string): boolean {
  const found = silenceOf(reason);
  return found === 'silent' || found === 'refusing';
}

/**
 * Reasons of condition `Ready` of a virtual node that is not ready because of its member (`spec.probe.nodesReady`). By its status
 * Kubernetes chooses the taint: `unreachable` for Unknown, `not-ready` for False.
 */
export type UnreadyReason = 'MemberUnreachable' | 'MemberNotReady';

/** What a member that is not reachable for that reason is in the words of a Node. */
export function unreadyReason(reason: string): UnreadyReason {
  return mayBeLost(reason) ? 'MemberUnreachable' : 'MemberNotReady';
}

/** Whether a virtual node with that reason of condition `Ready` is served, and only its member keeps it from being ready. */
export function isUnreadyByMember(reason: string | undefined): boolean {
  return reason === 'MemberUnreachable' || reason === 'MemberNotReady';
}

function silenceOf(reason: string): Silence | undefined {
  return Object.hasOwn(UNREACHABLE, reason) ? UNREACHABLE[reason as UnreachableReason] : undefined;
}
