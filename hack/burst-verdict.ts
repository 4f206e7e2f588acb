import type { Moment } from './burst-history.ts';

/** Revisions as in {@link Moment}. */
export interface Loss {
  /** When `a` was cut off. */
  cut: number;
  /** Up to here others took the places of its pods, or were waited for. */
  replaced: number;
  /** Up to here the pods went back to it, or had stayed for long after it answered. */
  settled: number;
  /** Its policy says that they go back. */
  goesHome: boolean;
}

/** Of the pace that was set. */
const TOLERANCE = 0.1;

/**
 * What is not as it should be of a member that was lost and came back, a line each.
 *
 * @param pace pods a second that may leave it, as it was set.
 */
export function judgeLoss(moments: readonly Moment[], loss: Loss, pace: number): string[] {
  const at = (revision: number): Moment | undefined => moments.findLast((one) => one.revision <= revision);
  const [before, replaced, settled] = [at(loss.cut), at(loss.replaced), at(loss.settled)];
  if (before === undefined || replaced === undefined || settled === undefined) return ['nothing was seen of it'];
  const during = moments.filter(({ revision }) => revision >= loss.cut && revision <= loss.replaced);
  const moved = { a: 0, b: before.a + before.b };
  const back = loss.goesHome ? before : moved;
  const since = moments.filter(({ revision }) => revision > loss.replaced && revision <= loss.settled);
  const returned = loss.goesHome ? 0 : Math.max(0, ...since.map(({ a }) => a));
  return [
    ...paceOf(during, pace),
    ...isAs(replaced, moved, 'while a does not answer'),
    ...placeless(replaced, 'while a does not answer'),
    ...isAs(
      settled,
      back,
      `once a answers again, where its policy ${loss.goesHome ? 'takes them home' : 'lets them stay'}`,
    ),
    ...(returned > settled.a ? [`${pods(returned)} went back to a for a time, and its policy lets them stay`] : []),
    ...placeless(settled, 'once a answers again'),
  ];
}

/** By when each pod left `a`. */
function paceOf(moments: readonly Moment[], pace: number): string[] {
  const left = moments.flatMap(({ a, at }, index) => {
    const fewer = (moments[index - 1]?.a ?? a) - a;
    return Array.from({ length: Math.max(0, fewer) }, () => at);
  });
  const [first, last] = [left[0], left.at(-1)];
  if (first === undefined || last === undefined || left.length < 2) {
    return [`only ${pods(left.length)} left a: no pace can be told of it`];
  }
  const seen = (left.length - 1) / ((last - first) / 1_000);
  if (Math.abs(seen - pace) <= pace * TOLERANCE) return [];
  const times = left.map((at) => ((at - first) / 1_000).toFixed(1)).join(', ');
  return [
    `${seen.toFixed(2)} pods a second left a (after ${times} s), and it was set to ${String(pace)} (10 % more or less)`,
  ];
}

function isAs({ a, b }: Moment, is: Pick<Moment, 'a' | 'b'>, when: string): string[] {
  if (a === is.a && b === is.b) return [];
  return [`${when}, a has ${pods(a)} and b ${pods(b)}, and not ${String(is.a)} and ${String(is.b)}`];
}

function placeless({ wanted, local, a, b }: Moment, when: string): string[] {
  const missing = wanted - local - a - b;
  return missing > 0 ? [`${when}, ${pods(missing)} of ${String(wanted)} has no place`] : [];
}

function pods(count: number): string {
  return `${String(count)} ${count === 1 ? 'pod' : 'pods'}`;
}
