/**
 * What must never happen, by number, and in one sentence each. Every one has a guard at the place where the harm would be
 * done, which refuses and counts it; docs/invariants.md says where.
 */
export const INVARIANTS = {
  I1: 'A member pod is deleted only on positive evidence about the host pod it runs for, and only if it is ours.',
  I2: 'Deletions for host pods that merely cannot be found are few; beyond that they stop until an operator has looked.',
  I3: 'Nothing is written to a cluster that is not the pinned one, nor to any while the host is not the pinned one.',
  I4: 'A finished pod never changes and is never created again.',
  I5: 'Exit codes and success come from the member; what is not known is marked lost, never shown as success.',
  I6: 'A host pod has one member pod at most, and a new one waits until the former one is gone.',
  I7: 'Without complete caches nothing is written.',
  I8: 'No write to a pod leaves it as it was: a start touches no healthy pod.',
  I9: 'A host pod is removed only at the end of its deletion, and called lost only, when its member pod is known to be gone.',
  I12: 'Of the taints of a Node only our own are removed.',
  I13: 'Only ConfigMaps and Secrets that pods refer to are copied, and never the token of a service account.',
  I14: 'A deletion is followed until the member confirms it.',
  I15: 'Everything made in a member carries our label, and keeps it; nothing else there is changed or deleted.',
  I17: 'Neither a virtual node nor what runs on it is removed because this program, or the Node object, goes. A Node is removed only when it is not wanted and nothing is on it, or an administrator said that its member is gone for good.',
  I19: 'The status of a host pod does not go back: start time, Running and containers stay, restart counts stay or grow.',
  I20: 'Data in a member are deleted only when the host claim is gone for good and its reclaim policy says so.',
} as const;

export type InvariantId = keyof typeof INVARIANTS;

/** A guard stopped something that must never happen. Retrying may help if what led to it was a race. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
  readonly invariant: InvariantId;

  constructor(invariant: InvariantId, what: string) {
    super(`${invariant}: ${what}`);
    this.invariant = invariant;
  }
}

/** Where guards report. */
export interface Invariants {
  /** Counts and logs a violation that was stopped, and returns the error to throw. `about` goes into the log. */
  violated(invariant: InvariantId, what: string, about?: Record<string, unknown>): InvariantError;
}

/** Stops without counting: for parts that run outside the program. */
export const UNCOUNTED: Invariants = { violated: (invariant, what) => new InvariantError(invariant, what) };
