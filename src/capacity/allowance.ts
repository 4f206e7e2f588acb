import { formatAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';

/** The first resource of which more is asked for than is left; `leftOf` undefined: it is not limited. */
export function shortOf(requests: Amounts, leftOf: (resource: string) => bigint | undefined): string | undefined {
  for (const [name, nanos] of requests) {
    const most = leftOf(name);
    if (most !== undefined && nanos > most) return name;
  }
  return undefined;
}

/** As people read it, less than nothing as nothing: `500m`. */
export function amountInWords(amount: bigint, resource: string): string {
  return formatAmounts(new Map([[resource, amount > 0n ? amount : 0n]]))[resource] ?? '0';
}

/** For people: `headroom and caps leave 500m cpu`; undefined when the pod may have what it asks for. */
export function whyOverAllowance(requests: Amounts, left: Amounts): string | undefined {
  const short = shortOf(requests, (name) => left.get(name));
  if (short === undefined) return undefined;
  return `headroom and caps leave ${amountInWords(left.get(short) ?? 0n, short)} ${short}`;
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
