import { type LabelRequirement, type LabelSelector, matchesLabels } from './label-selector.ts';

/** Whether labels fulfil a selector. */
export type LabelMatcher = (labels: Readonly<Record<string, string>> | undefined) => boolean;

/** All that a selector says of one key. */
interface KeyRule {
  isWanted: boolean;
  isUnwanted: boolean;
  oneOf: ReadonlySet<string> | undefined;
  readonly noneOf: Set<string>;
}

/** Keys and values that are looked through faster than in tables. */
const FEW = 12;

/**
 * Compiles a selector whose length anybody may choose: the answers are those of {@link matchesLabels}, and how long one takes depends
 * on the labels only. Operators Gt and Lt, which labels of pods are not chosen by, are not meant.
 */
export function labelMatcher(selector: LabelSelector | undefined): LabelMatcher {
  const size = (selector ?? []).reduce((sum, { values }) => sum + 1 + values.length, 0);
  const isCompared = selector?.some(({ operator }) => operator === 'Gt' || operator === 'Lt') === true;
  if (selector === undefined || size <= FEW || isCompared) return (labels) => matchesLabels(selector, labels);
  const rules = new Map<string, KeyRule>();
  for (const requirement of selector) note(rules, requirement);
  const wanted = [...rules.values()].filter(({ isWanted }) => isWanted).length;
  return (labels = {}) => {
    let met = 0;
    for (const [key, value] of Object.entries(labels)) {
      const rule = rules.get(key);
      if (rule === undefined) continue;
      if (rule.isUnwanted || rule.noneOf.has(value) || rule.oneOf?.has(value) === false) return false;
      if (rule.isWanted) met += 1;
    }
    return met === wanted;
  };
}

function note(rules: Map<string, KeyRule>, { key, operator, values }: LabelRequirement): void {
  const rule = rules.get(key) ?? { isWanted: false, isUnwanted: false, oneOf: undefined, noneOf: new Set<string>() };
  rules.set(key, rule);
  if (operator === 'DoesNotExist') rule.isUnwanted = true;
  else if (operator === 'NotIn') for (const value of values) rule.noneOf.add(value);
  else rule.isWanted = true;
  if (operator !== 'In') return;
  const { oneOf } = rule;
  rule.oneOf = new Set(oneOf === undefined ? values : values.filter((value) => oneOf.has(value)));
}
