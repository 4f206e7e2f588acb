import type { OverridePolicy } from '../../api/override-policy.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { applyRules, type OverrideContext } from '../../overrides/apply-overrides.ts';
import { planRules } from '../../overrides/planned-rules.ts';
import { changedPaths } from './changed-paths.ts';

/** What one rule does to a pod, after all rules that come before it. */
export interface TracedRule {
  /** `OverridePolicy shop/gold` */
  readonly policy: string;
  /** Its place in overrideRules. */
  readonly rule: number;
  readonly fields: readonly TracedField[];
}

export interface TracedField {
  /** JSON Pointer into the pod. */
  readonly path: string;
  /** The last rule after this one that changes it again, `OverridePolicy shop/gold, overrideRules[1]`; null: none does. */
  readonly overruledBy: string | null;
}

/** Each rule that applies to a pod in a member, in their order, up to the first that is refused. `pod`: as it is translated for that member. */
export function traceRules(pod: Pod, policies: readonly OverridePolicy[], context: OverrideContext): TracedRule[] {
  const plan = planRules(context.subject, policies, context.member);
  if (!('rules' in plan)) return [];
  const steps: { policy: string; rule: number; paths: string[] }[] = [];
  let current = pod;
  for (const planned of plan.rules) {
    const outcome = applyRules(current, [planned], context);
    if ('refused' in outcome) break;
    steps.push({ policy: planned.policy, rule: planned.rule, paths: changedPaths(current, outcome.object) });
    current = outcome.object;
  }
  return steps.map(({ policy, rule, paths }, at) => ({
    policy,
    rule,
    fields: paths.map((path) => {
      const later = steps.slice(at + 1).findLast((one) => one.paths.some((other) => meet(path, other)));
      const overruledBy = later === undefined ? null : `${later.policy}, overrideRules[${String(later.rule)}]`;
      return { path, overruledBy };
    }),
  }));
}

/** One is the other, or a part of it. */
function meet(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
