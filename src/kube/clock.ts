/**
 * Milliseconds since a moment that means nothing. Durations are measured by it, as the wall clock of a machine may be set by any
 * amount, forward or back. It stands still while the machine sleeps: who must not overlook that looks at both, as leases do.
 */
export function monotonic(): number {
  return performance.now();
}

/** A moment by both clocks: to be told by `wall`, in ms since 1970, and to be measured from by `monotonic`. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

/**
 * The wall clock, in ms since 1970, as it goes on from now unless somebody sets it: for times that are written down to be
 * measured from here later. Not to be kept for long, as it never learns that it was wrong.
 */
export function steadyClock(): () => number {
  const beginning = Date.now() - monotonic();
  return () => beginning + monotonic();
}
