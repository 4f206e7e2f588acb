export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/** As `kubectl taint` shows it. */
export function taintInWords({ key, value = '', effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  /** Of effect NoExecute: how long the pod stays, in s; not given: for ever. */
  tolerationSeconds?: number;
}

export interface TolerationOptions {
  /** Whether Lt and Gt count (alpha since 1.35, KEP-5471). Without it they tolerate nothing, as in a cluster that has them off. */
  comparisonOperators?: boolean;
}

/** The effects that keep a pod from being scheduled on a node. */
export const HARD_EFFECTS: readonly string[] = ['NoSchedule', 'NoExecute'];

/**
 * Whether a toleration covers a taint, by the rules of v1.Toleration: an empty effect covers every effect; an empty key
 * (then with Exists) covers every key; no operator means Equal; Exists covers every value.
 */
export function tolerates(toleration: Toleration, taint: Taint, options: TolerationOptions = {}): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  switch (operator) {
    case '':
    case 'Equal':
      return value === (taint.value ?? '');
    case 'Exists':
      return true;
    case 'Lt':
    case 'Gt':
      return options.comparisonOperators === true && compares(operator, taint.value ?? '', value);
    default:
      return false;
  }
}

function compares(operator: 'Lt' | 'Gt', taintValue: string, tolerationValue: string): boolean {
  const [left, right] = [decimal(taintValue), decimal(tolerationValue)];
  if (left === undefined || right === undefined) return false;
  return operator === 'Lt' ? left < right : left > right;
}

/** An int64 without leading zeros or plus sign, else undefined. */
function decimal(text: string): bigint | undefined {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return undefined;
  const number = BigInt(text);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

/** The first taint with one of the effects that no toleration covers; undefined when all are tolerated. */
export function firstUntolerated<T extends Taint>(
  tolerations: readonly Toleration[],
  taints: readonly T[],
  effects: readonly string[] = HARD_EFFECTS,
  options: TolerationOptions = {},
): T | undefined {
  return taints.find(
    (taint) =>
      effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint, options)),
  );
}

/** Whether every taint with one of the effects is covered by some toleration. */
export function toleratesAll(
  tolerations: readonly Toleration[],
  taints: readonly Taint[],
  effects: readonly string[] = HARD_EFFECTS,
  options: TolerationOptions = {},
): boolean {
  return firstUntolerated(tolerations, taints, effects, options) === undefined;
}
