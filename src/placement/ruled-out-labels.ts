import { recordOf } from '../kube/json-fields.ts';
import type { KeptOwner, TypedObject } from './owner-chain.ts';

/** The requirements of a selector that a pod may cease to meet by a label that it is given; undefined: there are none. */
export function rulingOut(selector: unknown): readonly unknown[] | undefined {
  const all = recordOf(selector)?.['matchExpressions'];
  const found = Array.isArray(all) ? all.filter((one) => keyRuledOutBy(one) !== undefined) : [];
  return found.length === 0 ? undefined : found;
}

/** Labels that no pod of the workload may be given: its controller, which might not know it by them any more, would let go of it and make another. */
export function ruledOutLabels(workload: TypedObject): ReadonlySet<string> {
  const { spec }: KeptOwner = workload;
  const keys = (rulingOut(spec?.selector) ?? []).map(keyRuledOutBy);
  return new Set(keys.filter((key) => key !== undefined));
}

function keyRuledOutBy(requirement: unknown): string | undefined {
  const { key, operator } = recordOf(requirement) ?? {};
  return typeof key === 'string' && (operator === 'NotIn' || operator === 'DoesNotExist') ? key : undefined;
}
