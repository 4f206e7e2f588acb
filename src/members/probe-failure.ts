import { mayBeLost, type UnreachableReason } from '../api/unreachable.ts';
import {
  ApiError,
  CredentialsError,
  describeError,
  isForbidden,
  isUnauthorized,
  TransportError,
} from '../kube/errors.ts';
import type { TransportErrorKind } from '../kube/errors.ts';
import type { ProbeFailure } from './reachability.ts';

const TRANSPORT_REASONS: Record<TransportErrorKind, UnreachableReason> = {
  timeout: 'Timeout',
  refused: 'Refused',
  reset: 'ConnectionReset',
  dns: 'NameNotFound',
  tls: 'TLSVerifyFailed',
  proxy: 'ProxyFailed',
  malformed: 'NotAKubernetesAPI',
  aborted: 'Aborted',
};

const HINTS: Record<string, string> = {
  TLSVerifyFailed: 'The certificate is not of the CA in the kubeconfig, or for another name; nothing is sent to it.',
  Unauthorized: 'The member does not accept the credentials; put fresh ones into the Secret.',
  Forbidden: 'The credentials are valid but lack rights; apply manifests/member in that cluster.',
  NotAKubernetesAPI: 'Something else than an API server answers at this address.',
};

/** What becomes of pods there, until the member answers. */
const LOST_NEXT =
  'The probe goes on; what runs there is left alone, and replaced elsewhere after a while where the rules of failover say so.';

/** What an error of the probe means, in words that say what happens next. */
export function probeFailure(error: unknown): ProbeFailure {
  const reason = reasonOf(error);
  const next = HINTS[reason] ?? (mayBeLost(reason) ? LOST_NEXT : 'Running pods are left alone and the probe goes on.');
  return { reason, message: `${describeError(error)}. ${next}` };
}

/** Credentials that cannot be used say so in words of their own. */
function reasonOf(error: unknown): string {
  if (error instanceof TransportError) return TRANSPORT_REASONS[error.kind];
  if (error instanceof CredentialsError) return error.reason;
  return answerReason(error);
}

function answerReason(error: unknown): UnreachableReason {
  if (isUnauthorized(error)) return 'Unauthorized';
  if (isForbidden(error)) return 'Forbidden';
  if (error instanceof ApiError && error.code === 429) return 'TooManyRequests';
  if (error instanceof ApiError && error.code >= 500) return 'ServerError';
  return 'ProbeFailed';
}
