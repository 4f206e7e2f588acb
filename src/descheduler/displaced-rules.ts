import type { Failover } from '../api/failover.ts';
import type { Displacement } from '../placement/better-place.ts';
import { parseDuration } from '../placement/duration.ts';

/** An edit is seen by all replicas by then, and one that is taken back at once has moved nothing, in ms. */
const EAGER_AFTER_MS = 15_000;

/** How long a better place must have been there before pods move to it, in ms, by why it is better; what is not there moves nothing. */
export function displacedAfterMs(failover: Failover | undefined): ReadonlyMap<Displacement, number> {
  const { repatriate, divisionDrift, spreadViolation, activation } = failover ?? {};
  const found = new Map<Displacement, number>();
  if (repatriate !== undefined) found.set('Repatriate', parseDuration(repatriate.after));
  if (divisionDrift !== undefined) found.set('DivisionDrift', parseDuration(divisionDrift.after));
  if (spreadViolation !== undefined) found.set('SpreadViolation', parseDuration(spreadViolation.after));
  if (activation === 'Eager') found.set('PolicyChanged', EAGER_AFTER_MS);
  return found;
}
