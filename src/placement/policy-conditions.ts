import type { PlacementPolicyStatus } from '../api/placement-policy.ts';
import { timestamp } from '../kube/timestamps.ts';

type Condition = NonNullable<PlacementPolicyStatus['conditions']>[number];

/** The status of a policy for what was found out about it; times of conditions that stay as they are do not change. */
export function policyStatus(found: {
  generation: number;
  problems: readonly string[];
  warnings: readonly string[];
  before: PlacementPolicyStatus | undefined;
  now: number;
}): PlacementPolicyStatus {
  const { generation, problems, warnings, before, now } = found;
  const condition = (type: string, good: boolean, reason: string, message: string): Condition => {
    const old = before?.conditions?.find((one) => one.type === type);
    const status = good ? 'True' : 'False';
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : timestamp(now);
    return { type, status, observedGeneration: generation, lastTransitionTime, reason, message };
  };
  const accepted =
    problems.length === 0
      ? condition('Accepted', true, 'Accepted', 'the policy is in use')
      : condition(
          'Accepted',
          false,
          'Invalid',
          `the policy is not used until this is put right: ${problems.join('; ')}`,
        );
  const consistent =
    problems.length + warnings.length === 0
      ? condition('Consistent', true, 'Consistent', 'no contradictions were found')
      : condition('Consistent', false, 'Contradictory', [...problems, ...warnings].join('; '));
  return { observedGeneration: generation, conditions: [accepted, consistent] };
}
