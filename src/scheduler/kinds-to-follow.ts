/** A kind that could be followed. */
export interface FollowCandidate {
  readonly key: string;
  /** A policy chooses by it. */
  readonly byPolicy: boolean;
  /** When something last named it, in monotonic ms. */
  readonly wantedAt: number;
  readonly isFollowed: boolean;
}

/** Kinds of owners that are not Kubernetes' own are followed up to so many. */
export const MOST_KINDS = 16;
/** A kind that nothing names is followed for so long still, in ms. */
export const IDLE_MS = 600_000;

/**
 * Which of the kinds are to be followed: those that policies choose by come first, then those that were needed last, and of these the ones
 * that are followed already, so that kinds that are needed all the time do not take turns.
 */
export function kindsToFollow(candidates: readonly FollowCandidate[], now: number): ReadonlySet<string> {
  const needed = candidates.filter(({ wantedAt }) => now - wantedAt < IDLE_MS);
  const rank = ({ byPolicy, wantedAt, isFollowed }: FollowCandidate): readonly number[] => [
    byPolicy ? 0 : 1,
    -wantedAt,
    isFollowed ? 0 : 1,
  ];
  const first = needed.toSorted((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    const at = left.findIndex((value, index) => value !== right[index]);
    return at < 0 ? (a.key < b.key ? -1 : 1) : (left[at] ?? 0) - (right[at] ?? 0);
  });
  return new Set(first.slice(0, MOST_KINDS).map(({ key }) => key));
}
