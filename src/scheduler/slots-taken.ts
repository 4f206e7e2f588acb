import type { Amounts } from '../kube/amounts.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import { quotaUsageOf, type QuotaUsage } from '../capacity/quotas.ts';

const usages = new WeakMap<FitRequest, QuotaUsage>();

function usageOf(request: FitRequest): QuotaUsage {
  const known = usages.get(request);
  if (known !== undefined) return known;
  const usage = quotaUsageOf(request.spec);
  usages.set(request, usage);
  return usage;
}

/**
 * How many pods like the second one there is room for no more, at the most, once one like the first one has come, wherever it goes. Undefined:
 * nobody can say, as one of them keeps others away.
 */
export function slotsTaken(by: FitRequest, slot: FitRequest): number | undefined {
  if (by.key === slot.key) return 1;
  if ([by, slot].some(({ interPod: { antiAffinity, spread } }) => antiAffinity.length + spread.length > 0))
    return undefined;
  if (mayEndAll(by, slot)) return undefined;
  const taken = timesIn(by.requests, slot.requests);
  return by.namespace === slot.namespace ? Math.max(taken, timesIn(usageOf(by), usageOf(slot))) : taken;
}

/** It takes of a resource of which pods like the second take nothing, and ask for some in the host. */
function mayEndAll(by: FitRequest, { hostCount, requests }: FitRequest): boolean {
  const isTaken = (of: Amounts, name: string): boolean => (of.get(name) ?? 0n) > 0n;
  return [...(hostCount?.keys() ?? [])].some((name) => isTaken(by.requests, name) && !isTaken(requests, name));
}

/** How many of the slots are touched, where only what they ask for counts. */
function timesIn(amounts: Amounts, slot: Amounts): number {
  let most = 1;
  for (const [name, nanos] of slot) {
    if (nanos <= 0n) continue;
    const asked = amounts.get(name) ?? 0n;
    most = Math.max(most, Number((asked + nanos - 1n) / nanos));
  }
  return most;
}
