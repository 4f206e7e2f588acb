import type { OverridePolicy } from '../api/override-policy.ts';
import { cleanText } from '../kube/clean-text.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Cluster } from '../api/cluster.ts';
import { fieldsOf, type JsonRecord, recordOf, rewriteObject } from '../kube/json-fields.ts';
import { applyOverriders } from './apply-overriders.ts';
import { OverrideError } from './override-error.ts';
import { isOfClusterPolicy, type OverrideRefusal, type PlannedRule, planRules, refusalOf } from './planned-rules.ts';
import { privilegesOf } from './privileges.ts';
import { lostRestriction, restrictionsOf } from './restrictions.ts';
import { changedProtectedField } from './protected-fields.ts';
import type { ObjectIdentity, OverrideSubject } from './selection.ts';

/** Of a privilege that is not given, in bytes. */
const LONGEST_WORDS = 256;

/** A rule that was applied. */
export interface AppliedRule extends PlannedRule {
  /** Names of the overriders that changed something; often none, as rules are for many objects. */
  readonly changes: readonly string[];
}

export interface OverrideContext {
  /** The object of the host that is rendered. */
  readonly subject: OverrideSubject;
  readonly member: Cluster;
  /** Labels of the member's nodes that a pod must stay on. Default: none. */
  readonly pool?: Readonly<Record<string, string>>;
}

export type OverrideOutcome<T> = { object: T; applied: AppliedRule[] } | { refused: OverrideRefusal };

/**
 * An object as it was rendered for a member, with the policies applied. The object given is not changed; the answer
 * shares all that stayed, and is the same object if everything did. `unknown` is an owner of the object whose labels
 * decide whether a policy applies, and which are not known yet.
 */
export function applyOverrides<T extends KubeObject>(
  object: T,
  policies: Iterable<OverridePolicy>,
  context: OverrideContext,
): OverrideOutcome<T> | { unknown: ObjectIdentity } {
  const plan = planRules(context.subject, policies, context.member);
  return 'rules' in plan ? applyRules(object, plan.rules, context) : plan;
}

/** The same for rules that were chosen before. */
export function applyRules<T extends KubeObject>(
  object: T,
  rules: readonly PlannedRule[],
  context: OverrideContext,
): OverrideOutcome<T> {
  let current = fieldsOf(object);
  const applied: AppliedRule[] = [];
  for (const rule of rules) {
    try {
      const after = applyOverriders(current, rule.overriders);
      guard(current, after.object, rule, context);
      current = after.object;
      applied.push({ ...rule, changes: after.changes });
    } catch (error) {
      if (!(error instanceof OverrideError)) throw error;
      return { refused: refusalOf(error, rule, context.subject, context.member.name) };
    }
  }
  return { object: rewriteObject(object, () => current), applied };
}

/** Parts that stay are shared. */
function saysTheSameOfRights(before: JsonRecord, after: JsonRecord): boolean {
  const annotations = ({ metadata }: JsonRecord): unknown => recordOf(metadata)?.['annotations'];
  return before['spec'] === after['spec'] && annotations(before) === annotations(after);
}

function guard(before: JsonRecord, after: JsonRecord, rule: PlannedRule, { pool = {} }: OverrideContext): void {
  if (before === after) return;
  const field = changedProtectedField(before, after, pool);
  if (field !== undefined) throw new OverrideError(`overriders at ${field}`, 'policies may not change that');
  if (isOfClusterPolicy(rule) || saysTheSameOfRights(before, after)) return;
  const had = privilegesOf(before);
  for (const [key, privilege] of privilegesOf(after)) {
    if (!had.has(key)) {
      const words = cleanText(privilege, LONGEST_WORDS);
      throw new OverrideError('overriders', `only a ClusterOverridePolicy may give a pod ${words}`);
    }
  }
  const lost = lostRestriction(restrictionsOf(before), restrictionsOf(after));
  if (lost !== undefined) {
    throw new OverrideError('overriders', `only a ClusterOverridePolicy may take ${lost} from a pod`);
  }
}
