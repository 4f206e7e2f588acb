/** Reason of a member where pods did not get well. */
export const PODS_UNHEALTHY = 'PodUnhealthy';

/** A member that refused a pod of a workload, left it Pending, or where pods did not get well, and that is left alone for a while. Times in ms. */
export interface Avoided {
  readonly cluster: string;
  /** One word, such as the reason of the pod that was refused. */
  readonly reason: string;
  /** What the member said. */
  readonly message: string;
  /** When it began to be avoided: later refusals only move the end. */
  readonly since: number;
  readonly until: number;
}

/** A reason to avoid a cluster, from when on and for how long apart. */
export type RefusedThere = Pick<Avoided, 'cluster' | 'reason' | 'message'>;

/** Without what has expired; the same list if nothing has. */
export function stillAvoided(avoided: readonly Avoided[], now: number): readonly Avoided[] {
  return avoided.some(({ until }) => until <= now) ? avoided.filter(({ until }) => until > now) : avoided;
}

/** With one more refusal; a member that is avoided already is so for longer, never for less long, for the newest reason. */
export function avoid(
  avoided: readonly Avoided[],
  refusal: RefusedThere,
  now: number,
  forMs: number,
): readonly Avoided[] {
  const current = stillAvoided(avoided, now);
  const before = current.find(({ cluster }) => cluster === refusal.cluster);
  const others = current.filter((one) => one !== before);
  const until = Math.max(before?.until ?? 0, now + forMs);
  return [...others, { ...refusal, since: before?.since ?? now, until }];
}

/** What two replicas know: of a member that both say is avoided the longer time, for the reason that is the newer one then. */
export function mergedAvoided(one: readonly Avoided[], other: readonly Avoided[]): readonly Avoided[] {
  if (other.length === 0) return one;
  const merged = new Map(one.map((avoided) => [avoided.cluster, avoided]));
  for (const avoided of other) {
    const known = merged.get(avoided.cluster);
    const newest = known !== undefined && known.until >= avoided.until ? known : avoided;
    const since = Math.min(known?.since ?? avoided.since, avoided.since);
    merged.set(avoided.cluster, { ...newest, since });
  }
  return [...merged.values()];
}
