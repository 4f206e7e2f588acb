import { type Condition, conditionNow } from '../api/conditions.ts';
import type { PlacementPolicyStatus } from '../api/placement-policy.ts';

/**
 * Whether schedulers let policies act: one has asked; none has, and there was no pod that it should have asked about; none has,
 * although pods of this policy were there to be scheduled.
 */
export type SchedulerNews = 'asks' | 'notYet' | 'passesBy';

const PAGE = 'docs/guides/scheduling.md';
const EFFECTIVE: Readonly<Record<SchedulerNews, readonly [Condition['status'], reason: string, message: string]>> = {
  asks: ['True', 'SchedulerAsks', 'kube-scheduler asks Spillway where pods go'],
  notYet: [
    'Unknown',
    'NotAskedYet',
    `no kube-scheduler has asked Spillway about a pod yet; it does with the first pod that it schedules, if it is told to (${PAGE})`,
  ],
  passesBy: [
    'False',
    'NoSchedulerAsks',
    `pods of this policy are there, but no kube-scheduler has ever asked Spillway about one, so the policy has no effect. Pods have to have the scheduler spillway-scheduler, or the cluster's own one has to be told to ask: ${PAGE}`,
  ],
};

/** The status of a policy for what was found out about it; times of conditions that stay as they are do not change. */
export function policyStatus(found: {
  generation: number;
  problems: readonly string[];
  warnings: readonly string[];
  scheduler: SchedulerNews;
  before: PlacementPolicyStatus | undefined;
  now: number;
}): PlacementPolicyStatus {
  const { generation, problems, warnings, scheduler, before, now } = found;
  const condition = (type: string, status: Condition['status'], reason: string, message: string): Condition =>
    conditionNow(before, { type, status, observedGeneration: generation, reason, message }, now);
  const accepted =
    problems.length === 0
      ? condition('Accepted', 'True', 'Accepted', 'the policy is in use')
      : condition(
          'Accepted',
          'False',
          'Invalid',
          `the policy is not used until this is put right: ${problems.join('; ')}`,
        );
  const consistent =
    problems.length + warnings.length === 0
      ? condition('Consistent', 'True', 'Consistent', 'no contradictions were found')
      : condition('Consistent', 'False', 'Contradictory', [...problems, ...warnings].join('; '));
  return {
    observedGeneration: generation,
    conditions: [accepted, consistent, condition('Effective', ...EFFECTIVE[scheduler])],
  };
}
