import { formatAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';

/** For people: `headroom and caps leave 500m cpu`; undefined when the pod may have what it asks for. */
export function whyOverAllowance(requests: Amounts, left: Amounts): string | undefined {
  if (left.size === 0) return undefined;
  for (const [name, nanos] of requests) {
    const most = left.get(name);
    if (most === undefined || nanos <= most) continue;
    const shown = formatAmounts(new Map([[name, most > 0n ? most : 0n]]))[name] ?? '0';
    return `headroom and caps leave ${shown} ${name}`;
  }
  return undefined;
}

/** How many such pods the allowance is enough for; Infinity where it says nothing. */
export function slotsInAllowance(requests: Amounts, left: Amounts): number {
  let slots = Infinity;
  for (const [name, nanos] of requests) {
    const most = left.get(name);
    if (most === undefined || nanos <= 0n) continue;
    slots = Math.min(slots, most > 0n ? Number(most / nanos) : 0);
  }
  return slots;
}
