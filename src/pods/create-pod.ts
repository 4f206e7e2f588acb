import { InvariantError } from '../api/invariants.ts';
import { HOST_LABEL, HOST_VERSION_ANNOTATION, UID_LABEL } from '../api/marks.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../api/wire.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import { type Hold, nameTaken } from './decide.ts';
import type { PodOverrides } from './pod-overrides.ts';
import { type PodWrites, refOf } from './pod-writes.ts';
import type { DependentsPort, MemberPort, NamespacesPort, ServiceAccountsPort } from './pod-ports.ts';
import { refusalOf } from './refusal.ts';
import { type TranslateContext, translatePod } from './translate.ts';

export interface CreateOptions {
  member: MemberPort;
  namespaces: NamespacesPort;
  dependents: DependentsPort;
  /** Default: no pod has a service account in the member. */
  serviceAccounts?: ServiceAccountsPort | undefined;
  overrides: PodOverrides;
  hostId: string;
  nodeName: string;
  writes: Pick<PodWrites, 'createMember'>;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
}

/** `created`: the member pod exists and is ours for this host pod, be it made now or by an earlier, unanswered call. */
export type CreateOutcome = { created: Pod } | { wait: string } | { hold: Hold; transient: boolean };

/**
 * Makes the member pod of a host pod that never had one: namespace, then dependents, then the pod. One API call when
 * all is in place. Refusals come back as a hold; only an abort is thrown.
 */
export async function createMemberPod(
  hostPod: Pod,
  options: CreateOptions,
  signal: AbortSignal,
): Promise<CreateOutcome> {
  const { member, namespaces, dependents, overrides } = options;
  const place = await namespaces.ensure(hostPod.metadata.namespace ?? '', signal);
  if ('hold' in place) return { hold: place.hold, transient: false };
  const account = options.serviceAccounts?.modeOf(hostPod) ?? { mode: 'None' };
  if ('wait' in account) return account;
  if ('hold' in account) return { hold: account.hold, transient: false };
  const context = options.translateContext(hostPod, place.namespace, account.mode);
  const translation = translatePod(hostPod, context);
  if (translation.kind === 'refused') {
    return { hold: { reason: translation.reason, message: translation.message }, transient: false };
  }
  const made = await overrides.forNewPod(hostPod, translation.pod, context, signal);
  if ('wait' in made) return made;
  if ('hold' in made) return { hold: made.hold, transient: false };
  const required = dependents.require(hostPod, made.references);
  if (!required.ready) return outcomeOf(required);
  if (account.mode === 'Host') {
    const tokens = options.serviceAccounts?.requireTokens(hostPod) ?? { ready: true };
    if (!tokens.ready) return outcomeOf(tokens);
  }
  try {
    return { created: await options.writes.createMember(hostPod, withHostVersion(made.pod, hostPod), signal) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InvariantError) throw error;
    if (!isAlreadyExists(error)) return { hold: refusalOf(error, member.name), transient: true };
  }
  return await occupied(hostPod, made.pod, options, signal);
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
    return { hold: refusalOf(error, member.name), transient: true };
  }
  const labels = found.metadata.labels ?? {};
  if (labels[HOST_LABEL] !== options.hostId)
    return { hold: nameTaken(hostPod, found, { member: member.name, hostId: options.hostId }), transient: false };
  if (labels[UID_LABEL] === hostPod.metadata.uid) return { created: found };
  return { wait: `a former pod ${keyOf(found)} has not left the member yet` };
}
