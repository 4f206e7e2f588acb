/** Label selectors: the string form of the API's `labelSelector` parameter and the object form of `spec.selector`. */

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

/** All requirements must hold; an empty list matches everything. */
export type LabelSelector = readonly LabelRequirement[];

/** The object form, as metav1.LabelSelector travels on the wire. */
export interface LabelSelectorObject {
  matchLabels?: Readonly<Record<string, string>>;
  matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

type Labels = Readonly<Record<string, string>> | undefined;

export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

const OPERATORS: ReadonlySet<unknown> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']);
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Makes a checked requirement: a qualified key, label-shaped values, and as many values as the operator needs.
 *
 * @throws SelectorError that names the key and the rule broken.
 */
export function labelRequirement(key: string, operator: string, values: readonly string[] = []): LabelRequirement {
  if (!isQualifiedName(key)) throw new SelectorError(`"${key}" is not a label key`);
  if (!isOperator(operator)) throw new SelectorError(`"${operator}" on key "${key}" is not an operator`);
  const wanted = valueRule(operator, values.length);
  if (wanted !== undefined) throw new SelectorError(`operator ${operator} on key "${key}" takes ${wanted}`);
  for (const value of values) {
    if (!isLabelValue(value)) throw new SelectorError(`"${value}" (key "${key}") is not a label value`);
    if ((operator === 'Gt' || operator === 'Lt') && integer(value) === undefined) {
      throw new SelectorError(`operator ${operator} on key "${key}" takes an integer, not "${value}"`);
    }
  }
  return { key, operator, values };
}

export function isOperator(operator: unknown): operator is LabelOperator {
  return OPERATORS.has(operator);
}

/** What the operator takes, in words, when the count of values is wrong. */
function valueRule(operator: LabelOperator, count: number): string | undefined {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return count === 0 ? 'at least one value' : undefined;
    case 'Gt':
    case 'Lt':
      return count === 1 ? undefined : 'exactly one value';
    case 'Exists':
    case 'DoesNotExist':
      return count === 0 ? undefined : 'no value';
  }
}

/** `[prefix/]name` as label and taint keys must be. */
export function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  const name = key.slice(slash + 1);
  if (prefix !== undefined && (prefix.length > 253 || !PREFIX.test(prefix))) return false;
  return name.length <= 63 && NAME.test(name);
}

export function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= 63 && NAME.test(value));
}

/** The object form. Both parts are ANDed; an empty object matches everything. */
export function labelSelectorOf(object: LabelSelectorObject): LabelSelector {
  const equal = Object.entries(object.matchLabels ?? {}).map(([key, value]) => labelRequirement(key, 'In', [value]));
  const expressions = (object.matchExpressions ?? []).map(({ key, operator, values }) => {
    if (operator === 'Gt' || operator === 'Lt') throw new SelectorError(`"${operator}" is not an operator of labels`);
    return labelRequirement(key, operator, values);
  });
  return [...equal, ...expressions];
}

/** Whether the labels fulfil the selector. No selector at all (undefined) matches nothing, as in Kubernetes. */
export function matchesLabels(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector !== undefined && selector.every((requirement) => matchesRequirement(requirement, labels));
}

export function matchesRequirement(requirement: LabelRequirement, labels: Labels): boolean {
  const { key, operator, values } = requirement;
  // Only own properties count: a key such as "constructor" must not find Object's.
  return isMet(operator, values, labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined);
}

/** Whether a label has one of the values that the operator asks for; undefined: there is none of that key. */
export function isMet(operator: LabelOperator, values: readonly unknown[], value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt':
      return isBeyond(operator, value, values);
  }
}

/** As Kubernetes compares: whole numbers only, each exactly as it is written. */
function isBeyond(operator: 'Gt' | 'Lt', value: string | undefined, values: readonly unknown[]): boolean {
  const [left, right] = [integer(value), values.length === 1 ? integer(values[0]) : undefined];
  if (left === undefined || right === undefined) return false;
  return operator === 'Gt' ? left > right : left < right;
}

/** An int64 in decimal, of no more digits than a label has room for, else undefined. */
function integer(text: unknown): bigint | undefined {
  if (typeof text !== 'string' || !/^[+-]?\d{1,63}$/.test(text)) return undefined;
  const number = BigInt(text);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}
