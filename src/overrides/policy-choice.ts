import type { OverridePolicy } from '../api/override-policy.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { AlikePods } from './alike-pods.ts';
import { type OverrideSubject, selectPolicies } from './selection.ts';

/** By what a policy may choose a pod; undefined: not known yet. */
export type IdentitiesOf = (pod: Pod) => OverrideSubject['identities'] | undefined;

/** Whether a policy chooses any of the pods; undefined: not known. */
export type ChoosesAny = (group: AlikePods) => boolean | undefined;

/** All rules of a policy choose the same pods, so each group is gone through once. */
export function choiceOf(policy: OverridePolicy, identitiesOf: IdentitiesOf): ChoosesAny {
  const known = new Map<AlikePods, boolean | undefined>();
  return (group) => {
    if (!known.has(group)) known.set(group, choosesAnyOf(policy, group.pods, identitiesOf));
    return known.get(group);
  };
}

function choosesAnyOf(policy: OverridePolicy, pods: readonly Pod[], identitiesOf: IdentitiesOf): boolean | undefined {
  let isUnknown = false;
  for (const pod of pods) {
    const isChosen = chooses(policy, pod, identitiesOf(pod));
    if (isChosen === true) return true;
    if (isChosen === undefined) isUnknown = true;
  }
  return isUnknown ? undefined : false;
}

function chooses(
  policy: OverridePolicy,
  { metadata: { namespace = '' } }: Pod,
  identities: OverrideSubject['identities'] | undefined,
): boolean | undefined {
  if (identities === undefined) return undefined;
  const selection = selectPolicies({ namespace, identities }, [policy]);
  return 'unknown' in selection ? undefined : selection.selected.length > 0;
}
