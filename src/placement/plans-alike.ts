import { jsonEqual } from '../kube/json-equal.ts';
import type { Plan } from './decision.ts';

/** Whether two plans give the same clusters the same seats. None at all is a plan without any. */
export function plansAlike(a: Plan | undefined, b: Plan): boolean {
  const seats = (plan: Plan | undefined): object => ({
    affinityName: plan?.affinityName,
    targets: Object.fromEntries([...(plan?.targets ?? [])].filter(([, count]) => count > 0)),
  });
  return jsonEqual(seats(a), seats(b));
}
