import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import { keyFor } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { applyRules, type OverrideContext } from '../overrides/apply-overrides.ts';
import { APPLIED_OVERRIDES_ANNOTATION, writeCopyRecord } from '../overrides/override-record.ts';
import { planRules, type PlannedRule } from '../overrides/planned-rules.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { CopyOverridesPort } from './copy-overrides.ts';
import { memberClaimFor } from './member-volume.ts';

/** Policies of the host that change claims on their way to the member. */
export interface ClaimOverridesPort extends CopyOverridesPort {
  /** The pod of that key and UID, and its owners; undefined: not known yet. */
  podIdentities(podKey: string, uid: string): OverrideSubject['identities'] | undefined;
}

/** The rules for one claim, in their order, and what they are applied with. */
export interface ClaimRules {
  rules: readonly PlannedRule[];
  context: OverrideContext;
}

/** `unknown`: what decides has not been read yet. */
export type ClaimPlan = 'none' | 'unknown' | { refused: string } | ClaimRules;

/** What the host's override policies make of a claim that is to be made in the member. Tried, so that a refusal is known before. */
export function planClaim(claim: PersistentVolumeClaim, port: ClaimOverridesPort | undefined): ClaimPlan {
  if (port === undefined) return 'none';
  if (port.unknown() !== undefined) return 'unknown';
  const { namespace = '', name, labels = {} } = claim.metadata;
  const [policies, member] = [port.policies(namespace), port.member()];
  if (policies.length === 0) return 'none';
  const subject: OverrideSubject = {
    namespace,
    identities: [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, labels }],
  };
  const own = planRules(subject, policies, member);
  if ('unknown' in own) return 'unknown';
  if ('refused' in own) return { refused: own.refused.message };
  const ofPod = rulesOfPod(claim, port);
  if (ofPod === 'unknown' || 'refused' in ofPod) return ofPod;
  const isOwn = ({ policy, rule }: PlannedRule): boolean =>
    own.rules.some((one) => one.policy === policy && one.rule === rule);
  const rules = [...ofPod.rules.filter((rule) => !isOwn(rule)), ...own.rules];
  if (rules.length === 0) return 'none';
  const plan = { rules, context: { subject, member } };
  const trial = overriddenClaim(claim, plan, { hostId: '', namespace: '', memberClass: undefined });
  return 'refused' in trial ? trial : plan;
}

/** The claim of a generic ephemeral volume is part of its pod: policies for the pod, or its owners, choose its class. */
function rulesOfPod(
  { metadata }: PersistentVolumeClaim,
  port: ClaimOverridesPort,
): 'unknown' | { refused: string } | { rules: PlannedRule[] } {
  const { namespace = '' } = metadata;
  const pod = controllerOf({ metadata });
  if (pod?.kind !== 'Pod') return { rules: [] };
  const identities = port.podIdentities(keyFor(namespace, pod.name), pod.uid);
  if (identities === undefined) return 'unknown';
  const plan = planRules({ namespace, identities }, port.policies(namespace), port.member());
  if ('unknown' in plan) return 'unknown';
  if ('refused' in plan) return { refused: plan.refused.message };
  const rules = plan.rules.flatMap((rule): PlannedRule[] => {
    const { storageClassOverrider } = rule.overriders;
    return storageClassOverrider === undefined ? [] : [{ ...rule, overriders: { storageClassOverrider } }];
  });
  return { rules };
}

/**
 * The claim for the member with its rules applied. Rules see the class that the claim has in the host, so `from` is what
 * users wrote; a class that they put there is one of the member, and one that they leave becomes what the MemberCluster
 * says, `memberClass`. Undefined is the default class of the member.
 */
export function overriddenClaim(
  claim: PersistentVolumeClaim,
  { rules, context }: ClaimRules,
  { memberClass, ...place }: { hostId: string; namespace: string; memberClass: string | undefined },
): { claim: PersistentVolumeClaim } | { refused: string } {
  const hostClass = claim.spec.storageClassName;
  const outcome = applyRules(memberClaimFor(claim, hostClass, place), rules, context);
  if ('refused' in outcome) return { refused: outcome.refused.message };
  const { metadata, spec, ...rest } = outcome.object;
  const { storageClassName: chosen, ...others } = spec;
  const name = chosen === hostClass ? memberClass : chosen;
  const record = writeCopyRecord(outcome.applied, { labels: [], annotations: [] });
  const annotations = {
    ...metadata.annotations,
    ...(record === undefined ? {} : { [APPLIED_OVERRIDES_ANNOTATION]: record }),
  };
  return {
    claim: {
      ...rest,
      metadata: { ...metadata, annotations },
      spec: { ...others, ...(name === undefined ? {} : { storageClassName: name }) },
    },
  };
}
