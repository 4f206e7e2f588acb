/** A disruption budget, and how many evictions it grants now. */
export interface Grant {
  readonly key: string;
  readonly allowed: number;
}

/** A pod that may be evicted for one of higher priority. */
export interface Candidate {
  /** Of the pod of the host. */
  readonly uid: string;
  readonly priority: number;
  /** Since when it is there, in ms since 1970. */
  readonly since: number;
  /** Of the disruption budgets that cover it. */
  readonly budgets: readonly Grant[];
}

/** Pods whose leaving makes room, and how many of them some disruption budget does not let go. */
export interface Victims<C extends Candidate = Candidate> {
  /** The most important first: kube-scheduler takes the first one for the highest when it compares nodes (pickOneNodeForPreemption). */
  readonly pods: readonly C[];
  readonly violations: number;
}

/** Room that some pods may be taken out of, for as long as a question takes. */
export interface RoomWithout<C extends Candidate> {
  take(candidate: C): void;
  putBack(candidate: C): void;
  /** Whether the pod that wants to come has room as it is now. */
  fits(): boolean;
}

/**
 * Those of the candidates that have to leave: none of them could stay too. As kube-scheduler does (SelectVictimsOnNode), all are
 * taken out, and put back one by one as far as there is room for them beside the new pod: first those that a budget protects, and
 * of each kind the most important first. All are put back in the end. Undefined: not even without all of them is there room.
 */
export function victimsAmong<C extends Candidate>(
  candidates: readonly C[],
  room: RoomWithout<C>,
): Victims<C> | undefined {
  const [first] = candidates;
  if (first !== undefined && candidates.length === 1) return victimAlone(first, room);
  const byImportance = candidates.toSorted(compareImportance);
  for (const one of byImportance) room.take(one);
  if (!room.fits()) {
    for (const one of byImportance) room.putBack(one);
    return undefined;
  }
  const safe = protectedOf(byImportance);
  const pods: C[] = [];
  for (const one of [...safe, ...byImportance.filter((other) => !safe.has(other))]) {
    room.putBack(one);
    if (room.fits()) continue;
    room.take(one);
    pods.push(one);
  }
  for (const one of pods) room.putBack(one);
  return { pods: pods.toSorted(compareImportance), violations: pods.filter((one) => safe.has(one)).length };
}

/** The same with nothing to sort or to count: on most nodes there is but one, and there are many nodes. */
function victimAlone<C extends Candidate>(one: C, room: RoomWithout<C>): Victims<C> | undefined {
  room.take(one);
  const helps = room.fits();
  room.putBack(one);
  if (!helps) return undefined;
  if (room.fits()) return { pods: [], violations: 0 };
  return { pods: [one], violations: one.budgets.some(({ allowed }) => allowed < 1) ? 1 : 0 };
}

/** Those whose eviction, after that of all more important ones, a budget does not grant any more. */
function protectedOf<C extends Candidate>(byImportance: readonly C[]): ReadonlySet<C> {
  const left = new Map<string, number>();
  const found = new Set<C>();
  for (const one of byImportance) {
    for (const { key, allowed } of one.budgets) {
      const granted = left.get(key) ?? allowed;
      left.set(key, granted - 1);
      if (granted < 1) found.add(one);
    }
  }
  return found;
}

/** Negative when `a` is to be evicted rather than `b`, by the rules of kube-scheduler for nodes (pickOneNodeForPreemption). */
export function compareVictims(a: Victims, b: Victims): number {
  return (
    a.violations - b.violations ||
    compare(highestOf(a), highestOf(b)) ||
    sumOf(a) - sumOf(b) ||
    a.pods.length - b.pods.length ||
    compare(earliestOfHighest(b), earliestOfHighest(a))
  );
}

/** Also of infinities, as where nobody has to leave. */
function compare(one: number, other: number): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function highestOf({ pods }: Victims): number {
  return pods.reduce((most, { priority }) => Math.max(most, priority), Number.NEGATIVE_INFINITY);
}

/** Above every priority that there is, so that of two sums that of fewer pods is the lower one. */
const ABOVE_ALL = 2 ** 31;

function sumOf({ pods }: Victims): number {
  return pods.reduce((sum, { priority }) => sum + priority + ABOVE_ALL, 0);
}

function earliestOfHighest(victims: Victims): number {
  const highest = highestOf(victims);
  return victims.pods.reduce(
    (first, { priority, since }) => (priority === highest ? Math.min(first, since) : first),
    Number.POSITIVE_INFINITY,
  );
}

function compareImportance(a: Candidate, b: Candidate): number {
  return b.priority - a.priority || a.since - b.since || (a.uid < b.uid ? -1 : 1);
}
