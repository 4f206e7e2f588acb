import { InvariantError } from '../api/invariants.ts';
import { HOST_LABEL, HOST_VERSION_ANNOTATION, UID_LABEL } from '../api/marks.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, isAlreadyExists } from '../kube/errors.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import { nameTaken } from './decide.ts';
import type { Hold } from './hold.ts';
import type { PodOverrides } from './pod-overrides.ts';
import { type PodWrites, refOf } from './pod-writes.ts';
import type { DependentsPort, MemberPort, NamespacesPort, ServiceAccountsPort, ServicesPort } from './pod-ports.ts';
import { refusalOf } from './member-refusal.ts';
import { type TranslateContext, translatePod } from './translate.ts';
import { openAfterMs } from './unanswered-creation.ts';

export interface CreateOptions {
  member: MemberPort;
  namespaces: NamespacesPort;
  dependents: DependentsPort;
  /** Default: no pod has a service account in the member. */
  serviceAccounts?: ServiceAccountsPort | undefined;
  /** Default: pods get variables of Services as in the host. */
  services?: ServicesPort | undefined;
  overrides: PodOverrides;
  hostId: string;
  nodeName: string;
  writes: Pick<PodWrites, 'createMember'>;
  /** Ask whether the member would take the pod, before anything is written down for it: it did not before. */
  rehearse: boolean;
  /** The namespace in which an earlier creation may be carried out yet. */
  unansweredIn: string | undefined;
  /** Writes down on the host pod what is about to be done, where that is needed; answers the host pod as it is then. */
  intend: (memberPod: Pod) => Promise<Pod>;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
}

/**
 * `created`: the member pod exists and is ours for this host pod, be it made now (`sent`) or by an earlier, unanswered call.
 */
export type CreateOutcome =
  | { created: Pod; sent?: 'carried-out' }
  | { wait: string }
  /** `sent`: what is known of the request that was to make the pod, or how long it may be carried out yet; left out if there was none. */
  | { hold: Hold; transient: boolean; sent?: 'refused' | { openMs: number } };

/**
 * Makes the member pod of a host pod that never had one: namespace, then dependents, then the pod. One API call when
 * all is in place. Refusals come back as a hold; only an abort is thrown.
 */
export async function createMemberPod(
  hostPod: Pod,
  options: CreateOptions,
  signal: AbortSignal,
): Promise<CreateOutcome> {
  const { member, namespaces, dependents, overrides, unansweredIn } = options;
  const place = await namespaces.ensure(hostPod.metadata.namespace ?? '', signal);
  if ('hold' in place) return { hold: place.hold, transient: false };
  const account = options.serviceAccounts?.modeOf(hostPod) ?? { mode: 'None' };
  if ('wait' in account) return account;
  if ('hold' in account) return { hold: account.hold, transient: false };
  // The variables are part of what the pod is translated to.
  const services = options.services?.require(hostPod) ?? { ready: true };
  if (!services.ready) return { wait: services.message };
  const context = options.translateContext(hostPod, place.namespace, account.mode);
  const translation = translatePod(hostPod, context);
  if (translation.kind === 'refused') {
    return { hold: { reason: translation.reason, message: translation.message }, transient: false };
  }
  const made = await overrides.forNewPod(hostPod, translation.pod, context, signal);
  if ('wait' in made) return made;
  if ('hold' in made) return { hold: made.hold, transient: false };
  const required = dependents.require(hostPod, made.references, place.namespace);
  if (!required.ready) return outcomeOf(required);
  if (account.mode === 'Host') {
    const tokens = options.serviceAccounts?.requireTokens(hostPod) ?? { ready: true };
    if (!tokens.ready) return outcomeOf(tokens);
  }
  const pod = withHostVersion(made.pod, hostPod);
  const unwanted = options.rehearse ? await rehearsal(hostPod, pod, options, signal) : undefined;
  if (unwanted !== undefined) return unwanted;
  const intended = await options.intend(pod);
  if (intended.metadata.deletionTimestamp !== undefined) return { wait: 'the host pod is being deleted by now' };
  try {
    return { created: await options.writes.createMember(intended, pod, signal, { unansweredIn }), sent: 'carried-out' };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InvariantError) throw error;
    if (!isAlreadyExists(error)) {
      const openMs = openAfterMs(error);
      return { hold: refusalOf(error, member.name), transient: true, sent: openMs === 0 ? 'refused' : { openMs } };
    }
  }
  return await occupied(hostPod, pod, options, signal);
}

/** What speaks against making the pod, by the member's own words; undefined: nothing, or it does not say. */
async function rehearsal(
  hostPod: Pod,
  pod: Pod,
  options: CreateOptions,
  signal: AbortSignal,
): Promise<CreateOutcome | undefined> {
  try {
    await options.writes.createMember(hostPod, pod, signal, { rehearsed: true });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InvariantError) throw error;
    if (isAlreadyExists(error)) return await occupied(hostPod, pod, options, signal);
    // A webhook that has effects of its own answers no rehearsal.
    if (error instanceof ApiError && error.code === 400 && /dry ?run/i.test(error.status.message ?? ''))
      return undefined;
    return { hold: refusalOf(error, options.member.name), transient: true };
  }
}

function outcomeOf({ pending, reason, message }: Hold & { pending: boolean }): CreateOutcome {
  return pending ? { wait: message } : { hold: { reason, message }, transient: false };
}

/** The one mark that is about the moment, not about the pod. */
function withHostVersion(memberPod: Pod, hostPod: Pod): Pod {
  const { resourceVersion } = hostPod.metadata;
  if (resourceVersion === undefined) return memberPod;
  const annotations = { ...memberPod.metadata.annotations, [HOST_VERSION_ANNOTATION]: resourceVersion };
  return { ...memberPod, metadata: { ...memberPod.metadata, annotations } };
}

/** The name is taken: by our own earlier attempt, by a former pod of ours that is leaving, or by a stranger. */
async function occupied(
  hostPod: Pod,
  wanted: Pod,
  options: CreateOptions,
  signal: AbortSignal,
): Promise<CreateOutcome> {
  const { member } = options;
  let found: Pod;
  try {
    found = await get<Pod>(member.client, PODS, refOf(wanted), { signal });
  } catch (error) {
    signal.throwIfAborted();
    return { hold: refusalOf(error, member.name), transient: true, sent: 'refused' };
  }
  const labels = found.metadata.labels ?? {};
  if (labels[HOST_LABEL] !== options.hostId) {
    const hold = nameTaken(hostPod, found, { member: member.name, hostId: options.hostId });
    return { hold, transient: false, sent: 'refused' };
  }
  if (labels[UID_LABEL] === hostPod.metadata.uid) return { created: found };
  return { wait: `a former pod ${keyOf(found)} has not left the member yet` };
}
