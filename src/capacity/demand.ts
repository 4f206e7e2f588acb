import type { Amounts } from '../kube/amounts.ts';
import { UNIT } from '../kube/amounts.ts';

const MILLI = UNIT / 1000n;

/** Amounts in the whole numbers that kube-scheduler compares: thousandths of a CPU, and units of everything else. */
export interface Demand {
  /** Equal for equal amounts. */
  readonly key: string;
  /** More than nothing each; `pods` is not among them, as a pod always counts as one. */
  readonly amounts: readonly { readonly resource: string; readonly amount: number }[];
}

/** A pod's requests, rounded up as kube-scheduler does. Beyond 2^53 amounts are no longer exact; no node has that much. */
export function demandOf(requests: Amounts): Demand {
  const amounts = [...requests]
    .filter(([resource, nanos]) => resource !== 'pods' && nanos > 0n)
    .map(([resource, nanos]) => ({ resource, amount: scaled(resource, nanos) }))
    .toSorted((a, b) => (a.resource < b.resource ? -1 : 1));
  return { key: amounts.map(({ resource, amount }) => `${resource}=${String(amount)}`).join(), amounts };
}

/** What kube-scheduler makes of one amount: rounded up to thousandths (cpu) or whole units. */
export function scaled(resource: string, nanos: bigint): number {
  const unit = resource === 'cpu' ? MILLI : UNIT;
  const whole = nanos / unit;
  return Number(nanos % unit > 0n ? whole + 1n : whole);
}

/** The other way. */
export function nanosOf(resource: string, amount: number): bigint {
  return BigInt(amount) * (resource === 'cpu' ? MILLI : UNIT);
}
