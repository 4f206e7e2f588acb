import { EXTENDER_RESOURCE } from '../api/marks.ts';
import { formatAmounts, type Amounts } from '../kube/amounts.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import type { Pod } from '../kube/core-v1.ts';
import { amountInWords, shortOf } from './allowance.ts';
import type { FitRequest } from './fit-request.ts';
import type { AdmittedRequest } from './namespace-rules.ts';
import { podRequests } from './pod-requests.ts';

/**
 * The request, with what the host's scheduler counts for the pod where that is more than its copy asks for: overrides lower requests, and a
 * scheduler compares (NodeResourcesFit) what the pod asks for in the host with what the virtual node has left.
 */
export function withHostCount(request: FitRequest, hostPod: Pod): FitRequest {
  const more = new Map(
    [...podRequests(hostPod)].filter(
      ([name, amount]) => name !== EXTENDER_RESOURCE && amount > (request.requests.get(name) ?? 0n),
    ),
  );
  if (more.size === 0) return request;
  return { ...request, key: canonicalJson([request.key, formatAmounts(more)]), hostCount: more };
}

/** For people; undefined where the host's scheduler lets the pod onto the virtual node, whose room left (as the member counts) is given. */
export function whyOverHostCount(hostCount: Amounts, room: Amounts): string | undefined {
  const leftOf = (name: string): bigint => room.get(name) ?? 0n;
  const short = shortOf(hostCount, leftOf);
  if (short === undefined) return undefined;
  const counted = amountInWords(hostCount.get(short) ?? 0n, short);
  return `the host's scheduler counts ${counted} ${short} for it, and its virtual node has ${amountInWords(leftOf(short), short)} left`;
}

/** How many such pods it lets there, one after the other: each that is there takes no more than its copy asks for. */
export function slotsByHostCount({ request, requests }: AdmittedRequest, room: Amounts): number {
  let slots = Infinity;
  for (const [name, counted] of request.hostCount ?? []) {
    const beside = (room.get(name) ?? 0n) - counted;
    if (beside < 0n) return 0;
    const taken = requests.get(name) ?? 0n;
    if (taken > 0n) slots = Math.min(slots, Number(beside / taken) + 1);
  }
  return slots;
}
