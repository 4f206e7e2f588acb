import type { MemberCluster } from '../api/member-cluster.ts';
import type { Condition } from '../kube/core-v1.ts';

/**
 * How long conditions of members have been as they are, measured by this process on its monotonic clock: a wall clock that is wrong, here or at the
 * writer, has nothing come or go sooner. What is written in their times only makes it begin anew, as a restart does.
 */
export class ConditionAges {
  readonly #monotonic: () => number;
  /** When each was first seen as it is (monotonic ms). */
  #seen = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** All members as they are now. */
  observe(members: readonly MemberCluster[]): void {
    const now = this.#monotonic();
    const keys = members.flatMap((member) => (member.status?.conditions ?? []).map((one) => keyOf(member, one)));
    this.#seen = new Map(keys.map((key) => [key, this.#seen.get(key) ?? now]));
  }

  /** In ms; 0 for one that was not seen. */
  forMs(member: MemberCluster, condition: Pick<Condition, 'type' | 'status' | 'lastTransitionTime'>): number {
    const now = this.#monotonic();
    return now - (this.#seen.get(keyOf(member, condition)) ?? now);
  }
}

function keyOf(
  { metadata: { uid = '' } }: MemberCluster,
  { type, status, lastTransitionTime = '' }: Pick<Condition, 'type' | 'status' | 'lastTransitionTime'>,
): string {
  return `${uid} ${type} ${status} ${lastTransitionTime}`;
}
