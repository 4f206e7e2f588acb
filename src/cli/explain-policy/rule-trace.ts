import type { OverridePolicy } from '../../api/override-policy.ts';
import { jsonEqual } from '../../kube/json-equal.ts';
import type { KubeObject } from '../../kube/object.ts';
import { applyRules, type OverrideContext } from '../../overrides/apply-overrides.ts';
import { parsePointer, valueAt } from '../../overrides/json-pointer.ts';
import { planRules } from '../../overrides/planned-rules.ts';
import { changedPaths } from './changed-paths.ts';

/** What one rule does to an object, after all rules that come before it. */
export interface TracedRule {
  /** `OverridePolicy shop/gold` */
  readonly policy: string;
  /** Its place in overrideRules. */
  readonly rule: number;
  readonly fields: readonly TracedField[];
}

export interface TracedField {
  /** JSON Pointer into the object. */
  readonly path: string;
  /** The last rule after this one that undoes it, `OverridePolicy shop/gold, overrideRules[1]`; null: none does. */
  readonly overruledBy: string | null;
  /** The last rule after this one that changes it too and undoes nothing, such as one that adds to the same list; null: none does. */
  readonly changedAgainBy: string | null;
}

/** Each rule that applies to an object in a member, in their order, up to the first that is refused. `object`: as it comes to that member without policies. */
export function traceRules(
  object: KubeObject,
  policies: readonly OverridePolicy[],
  context: OverrideContext,
): TracedRule[] {
  const plan = planRules(context.subject, policies, context.member);
  if (!('rules' in plan)) return [];
  const steps: Step[] = [];
  let current = object;
  for (const planned of plan.rules) {
    const outcome = applyRules(current, [planned], context);
    if ('refused' in outcome) break;
    steps.push({
      policy: planned.policy,
      rule: planned.rule,
      paths: changedPaths(current, outcome.object),
      before: current,
      after: outcome.object,
    });
    current = outcome.object;
  }
  return steps.map((step, at) => ({
    policy: step.policy,
    rule: step.rule,
    fields: step.paths.map((path) => {
      const later = steps.slice(at + 1).filter((one) => one.paths.some((other) => meet(path, other)));
      const winner = later.findLast((one) =>
        one.paths.some((other) => meet(path, other) && isUndone(step, path, one, other)),
      );
      const overruledBy = named(winner);
      return { path, overruledBy, changedAgainBy: winner === undefined ? named(later.at(-1)) : null };
    }),
  }));
}

interface Step {
  readonly policy: string;
  readonly rule: number;
  readonly paths: readonly string[];
  readonly before: KubeObject;
  readonly after: KubeObject;
}

function named(step: Step | undefined): string | null {
  return step === undefined ? null : `${step.policy}, overrideRules[${String(step.rule)}]`;
}

/** Whether a later step undoes what one did to a field. In a list each item counts for itself: rules may add to it one after the other. */
function isUndone(step: Step, path: string, later: Step, other: string): boolean {
  const shared = parsePointer(path.length < other.length ? path : other) ?? [];
  const [before, after, then] = [step.before, step.after, later.after].map((object) => valueAt(object, shared));
  if (!Array.isArray(after)) return true;
  return !isWithin(added(before, after), then) || isWithinAny(added(after, before), then);
}

/** Items of the second list that the first one lacks; what is no list has none. */
function added(from: unknown, to: unknown): unknown[] {
  return Array.isArray(to) ? to.filter((item: unknown) => !isItem(item, from)) : [];
}

const isItem = (item: unknown, list: unknown): boolean =>
  Array.isArray(list) && list.some((one: unknown) => jsonEqual(one, item));
const isWithin = (items: readonly unknown[], list: unknown): boolean => items.every((item) => isItem(item, list));
const isWithinAny = (items: readonly unknown[], list: unknown): boolean => items.some((item) => isItem(item, list));

/** One is the other, or a part of it. */
function meet(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
