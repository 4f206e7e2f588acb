export interface FloorFacts {
  /** Copies that the mirrored budget covers, those that are still to come among them, and how many of them are healthy. */
  copies: number;
  healthy: number;
  /** How many of them the member may evict. */
  evictable: number;
  /** The host has as many healthy pods as the budget asks for. */
  isMet: boolean;
  /** `minAvailable` as it is; undefined: there is no mirrored budget yet. */
  current: number | undefined;
}

/** `when`: at once where the member could evict too many, and after a while where it could evict more. */
export interface Floor {
  minAvailable: number;
  when: 'now' | 'later' | 'never';
}

/**
 * How many copies have to stay healthy in the member. Its own controller counts them, so an eviction there uses the allowance up
 * without anything being written, and what has failed by itself uses it up, too.
 */
export function wantedFloor({ copies, healthy, evictable, isMet, current }: FloorFacts): Floor {
  const least = Math.max(0, healthy - evictable);
  // Those that are not healthy yet are going to be, and would be evictable then.
  const safe = evictable > 0 ? least : copies;
  const isShort = current !== undefined && current < (evictable === 0 && !isMet ? copies : least);
  if (current === undefined || isShort) return { minAvailable: safe, when: 'now' };
  if (evictable > 0 && healthy > 0 && current > least) return { minAvailable: least, when: 'later' };
  // Pods that are not healthy can be evicted from a budget that is met without them: in the host, so here.
  if (isMet && healthy < copies && current > healthy) return { minAvailable: healthy, when: 'later' };
  return { minAvailable: current, when: 'never' };
}
