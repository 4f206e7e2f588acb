/** What the manager gives pods that come without, by a PATCH each: measured by itself in the burst suite. */
export const OUTAGE_TOLERATIONS = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'].map((key) => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
}));
