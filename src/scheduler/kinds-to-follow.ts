/** A kind that could be followed. */
export interface FollowCandidate {
  readonly key: string;
  /** A policy of the whole cluster chooses by it. */
  readonly isForAll: boolean;
  /** When a pod or an owner last named it, in monotonic ms. */
  readonly ownsAt: number;
  /** When something last named it, in monotonic ms. */
  readonly wantedAt: number;
  readonly isFollowed: boolean;
}

/** Kinds of owners that are not Kubernetes' own are followed up to so many. */
export const MOST_KINDS = 16;
/** A kind that nothing names is followed for so long still, in ms. */
export const IDLE_MS = 600_000;

/**
 * Which of the kinds are to be followed: those that policies of the whole cluster choose by come first, then those that own anything. Who may write policies of
 * one namespace may name many that own nothing there: these come last. Of each the ones that were needed last, and then those that are followed
 * already, so that kinds that are needed all the time do not take turns.
 */
export function kindsToFollow(candidates: readonly FollowCandidate[], now: number): ReadonlySet<string> {
  const needed = candidates.filter(({ wantedAt }) => now - wantedAt < IDLE_MS);
  const rank = ({ isForAll, ownsAt, wantedAt, isFollowed }: FollowCandidate): readonly number[] => [
    isForAll ? 0 : now - ownsAt < IDLE_MS ? 1 : 2,
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
