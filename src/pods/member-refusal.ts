import { ENFORCE_LABEL } from '../api/pod-security.ts';
import { SERVICE_ACCOUNT_MODE } from '../api/service-account-mode.ts';
import { cleanText } from '../kube/clean-text.ts';
import { ApiError, describeError, isConflict, isPermanent, isTransient } from '../kube/errors.ts';
import type { Hold } from './hold.ts';

/** Reasons of {@link refusalOf}. */
export const REFUSAL_REASONS: ReadonlySet<string> = new Set([
  'MemberUnavailable',
  'MemberQuotaExceeded',
  'MemberPodSecurity',
  'MemberPriorityClass',
  'MemberServiceAccount',
  'MemberForbidden',
  'NamespaceTerminating',
  'MemberInvalid',
  'MemberRefused',
]);
/** Longest part of a member's own words that is repeated to users, in bytes. */
const MAX_WORDS = 700;

/** A policy or webhook, whatever its code is. */
const DENIED = / denied (the )?request/;

/** Admission plugin ServiceAccount; the group is the name of the account. */
const NO_SERVICE_ACCOUNT = / is forbidden: error looking up service account \S+: serviceaccount "([^"]+)" not found/;
/** Each namespace has one, which the controllers of the cluster make a moment after it, and again when somebody deletes it. */
const DEFAULT_ACCOUNT = 'default';

/** Admission plugin Priority. */
const NO_PRIORITY_CLASS = /no PriorityClass with name \S+ was found/;
/** Admission plugin ResourceQuota, where it admits pods of some classes only beside a quota of scope PriorityClass. */
const NO_QUOTA_OF_SCOPE = /insufficient quota to match these scopes/;

/**
 * Why a member did not take a pod, from the error of the create call. The reason says which kind of refusal it is, the
 * message repeats the member's own words, names the cluster, and says what happens next. None of them ever makes the
 * pod Failed (invariant I10): a quota can be raised, a policy changed, an API server comes back.
 */
export function refusalOf(error: unknown, member: string): Hold {
  if (!(error instanceof ApiError) || isTransient(error) || isCountedAnew(error)) {
    return {
      reason: 'MemberUnavailable',
      message: `Cluster "${member}" could not take the pod just now: ${describeError(error)}. This is transient; it is tried again by itself.`,
    };
  }
  const words = clean(error.status.message ?? error.message);
  const noAccount = error.code === 403 ? NO_SERVICE_ACCOUNT.exec(words)?.[1] : undefined;
  if (noAccount === DEFAULT_ACCOUNT) {
    return {
      reason: 'MemberUnavailable',
      message: `Cluster "${member}" cannot take pods in that namespace yet: ${words}. It is tried again by itself.`,
    };
  }
  const said = `Cluster "${member}" refused the pod: ${words}.`;
  if (noAccount !== undefined) {
    return {
      reason: 'MemberServiceAccount',
      message:
        `${said} It is tried again by itself; let the owner of that cluster make the account, ask for another service account mode ` +
        `(${SERVICE_ACCOUNT_MODE}), or change the override policy that names it.`,
    };
  }
  if (error.code === 403 && /exceeded quota/.test(words)) {
    return {
      reason: 'MemberQuotaExceeded',
      message: `${said} It is tried again by itself; raise the quota there or free some of it.`,
    };
  }
  if (error.code === 403 && NO_QUOTA_OF_SCOPE.test(words)) {
    return {
      reason: 'MemberQuotaExceeded',
      message:
        `${said} It is tried again by itself; let the owner of that cluster make a ResourceQuota of that scope in the namespace, ` +
        `or change spec.podPriority of MemberCluster "${member}".`,
    };
  }
  if (error.code === 403 && NO_PRIORITY_CLASS.test(words)) {
    return {
      reason: 'MemberPriorityClass',
      message:
        `${said} It is tried again by itself; let the owner of that cluster make the class, or change spec.podPriority of ` +
        `MemberCluster "${member}" (or the override policy that names the class).`,
    };
  }
  if (error.code === 403 && /violates PodSecurity/.test(words)) {
    return {
      reason: 'MemberPodSecurity',
      message:
        `${said} It is tried again by itself; change the pod, or let the owner of that cluster change the level of the namespace there ` +
        `(label ${ENFORCE_LABEL}). Namespaces that Spillway makes there get that of spec.namespaces.podSecurity of the MemberCluster.`,
    };
  }
  if (error.code === 403 && /is forbidden: User/.test(words)) {
    return {
      reason: 'MemberForbidden',
      message: `${said} The credentials of this member lack the right; its administrator has to grant it. It is tried again by itself.`,
    };
  }
  if (error.code === 403 && /being terminated/.test(words)) {
    return { reason: 'NamespaceTerminating', message: `${said} It is tried again once the namespace is gone.` };
  }
  // An admission policy answers 422 by default, a webhook whatever it likes.
  if (!DENIED.test(words) && isPermanent(error)) {
    return {
      reason: 'MemberInvalid',
      message: `${said} The pod does not fit that cluster's API; change the pod, or place it elsewhere. It is tried again by itself.`,
    };
  }
  return { reason: 'MemberRefused', message: `${said} It is tried again by itself.` };
}

/** API servers count a pod in a quota by an update with a lock, which they give up where too many others are counted at that moment. */
function isCountedAnew(error: ApiError): boolean {
  return isConflict(error) && !DENIED.test(error.status.message ?? '');
}

function clean(text: string): string {
  return cleanText(text, MAX_WORDS).replace(/\.$/, '');
}
