import type { OverridePolicy } from '../api/override-policy.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type AppliedRule, applyOverrides } from '../overrides/apply-overrides.ts';
import { MAX_RECORD_BYTES, writePodRecord } from '../overrides/override-record.ts';
import { identitiesOfPod, tellsOwners } from '../overrides/owners.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { Cluster } from '../api/cluster.ts';
import type { Hold } from './hold.ts';
import { overrideRefused, ownerNotRead, recordTooLong } from './override-holds.ts';
import { fieldsOf } from '../kube/json-fields.ts';
import { refusalOfHostPaths } from './translate-refusals.ts';
import { excludingNodes } from './translate-scheduling.ts';
import { type TranslateContext, translatePod } from './translate.ts';

/** What decides how override policies change one pod in one member. */
export interface PodPolicies {
  /** Those that may concern objects of the pod's namespace. */
  readonly policies: readonly OverridePolicy[];
  /** The pod and its owners; undefined: they have not been read, and what the pod says of them has to do. */
  readonly owners: OverrideSubject['identities'] | undefined;
  readonly member: Cluster;
  /** Labels of the member's nodes that the pod must stay on. */
  readonly pool: Readonly<Record<string, string>>;
}

/**
 * `record`: the annotation that tells which rules were applied, undefined for none. `unknown`: what has to be read before
 * it can be told, in words for people.
 */
export type RenderedPod = { pod: Pod; record: string | undefined } | { hold: Hold } | { unknown: string };

const NOT_READ = { unknown: 'the owners of the pod have not been read yet' } as const;

/**
 * The pod as it will be in a member: translated, with the override policies applied. Pure, so that whoever has to know
 * beforehand whether a pod fits there sees what will be created (without its account's files, which take no room).
 */
export function renderPod(hostPod: Pod, context: TranslateContext, policies: PodPolicies): RenderedPod {
  const translation = translatePod(hostPod, context);
  if (translation.kind === 'refused') {
    return { hold: { reason: translation.reason, message: translation.message } };
  }
  return overriddenPod(hostPod, translation.pod, context, policies);
}

/** The second half of {@link renderPod}, for a pod that was translated before. */
export function overriddenPod(
  hostPod: Pod,
  translated: Pod,
  { excludedNodes, ...place }: Pick<TranslateContext, 'excludedNodes' | 'member' | 'hostPath'>,
  { policies, owners, member, pool }: PodPolicies,
): RenderedPod {
  if (policies.length === 0) return { pod: translated, record: undefined };
  if (owners === undefined && !tellsOwners(hostPod, policies)) return NOT_READ;
  const subject = { namespace: hostPod.metadata.namespace ?? '', identities: owners ?? identitiesOfPod(hostPod) };
  const outcome = applyOverrides(translated, policies, { subject, member, pool });
  if ('unknown' in outcome) return owners === undefined ? NOT_READ : { hold: ownerNotRead(outcome.unknown) };
  if ('refused' in outcome) return { hold: overrideRefused(outcome.refused.message) };
  // What a policy adds is no less on the node.
  const refusal = refusalOfHostPaths(fieldsOf(outcome.object.spec), place);
  if (refusal !== undefined) return { hold: refusal };
  const record = recordFor(outcome.applied);
  if (typeof record === 'object') return record;
  // A policy may write affinity anew, and knows nothing of nodes that the member keeps for itself.
  return { pod: excludingNodes(outcome.object, translated, excludedNodes), record };
}

function recordFor(applied: readonly AppliedRule[]): string | undefined | { hold: Hold } {
  const record = writePodRecord(applied);
  return typeof record === 'object' ? { hold: recordTooLong(record.bytes, MAX_RECORD_BYTES) } : record;
}
