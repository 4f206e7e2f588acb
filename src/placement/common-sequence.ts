/** More differences than this are not looked into: it would take their square in memory and time. */
const MAX_DIFFERENCES = 1_000;

type Pair = readonly [number, number];

/**
 * The longest sequence that two lists have in common, as pairs of indexes (in `a`, in `b`) in no order: Myers' greedy
 * algorithm, after what is alike at both ends. Of several such sequences it is one that is alike for long at the start. Undefined where the lists differ in more than a thousand entries besides.
 */
export function commonSequence(a: readonly string[], b: readonly string[]): Pair[] | undefined {
  const pairs: Pair[] = [];
  let [from, endA, endB] = [0, a.length, b.length];
  for (; from < endA && from < endB && a[from] === b[from]; from += 1) pairs.push([from, from]);
  while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) pairs.push([(endA -= 1), (endB -= 1)]);
  if (from === endA || from === endB) return pairs;
  const middle = between(a.slice(from, endA), b.slice(from, endB));
  return middle && [...pairs, ...middle.map(([x, y]): Pair => [x + from, y + from])];
}

/**
 * How far along `a` one comes with so many differences, by diagonal: the index in `a` less that in `b`, from minus the number
 * of differences to that number.
 */
class Reach {
  readonly #differences: number;
  readonly #ends: Int32Array;

  constructor(differences: number) {
    this.#differences = differences;
    this.#ends = new Int32Array(2 * differences + 1).fill(-1);
  }

  at(diagonal: number): number {
    return this.#ends[diagonal + this.#differences] ?? -1;
  }

  set(diagonal: number, end: number): void {
    this.#ends[diagonal + this.#differences] = end;
  }

  /** Whether one more difference is best an entry of `b` that is passed over, not one of `a`, to come to a diagonal. */
  passesB(diagonal: number): boolean {
    const most = this.#differences + 1;
    return diagonal === -most || (diagonal !== most && this.at(diagonal - 1) < this.at(diagonal + 1));
  }

  /** Where one comes to a diagonal with one more difference. */
  next(diagonal: number): number {
    return this.passesB(diagonal) ? this.at(diagonal + 1) : this.at(diagonal - 1) + 1;
  }
}

function between(a: readonly string[], b: readonly string[]): Pair[] | undefined {
  const trail: Reach[] = [];
  for (let differences = 0; differences <= MAX_DIFFERENCES; differences += 1) {
    const [before, reach] = [trail.at(-1), new Reach(differences)];
    for (let diagonal = -differences; diagonal <= differences; diagonal += 2) {
      let x = before?.next(diagonal) ?? 0;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      reach.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return wayBack(trail, a.length, b.length);
    }
    trail.push(reach);
  }
  return undefined;
}

function wayBack(trail: Reach[], endA: number, endB: number): Pair[] {
  const pairs: Pair[] = [];
  let [x, y] = [endA, endB];
  const matchTo = (start: number): void => {
    while (x > start) pairs.push([(x -= 1), (y -= 1)]);
  };
  for (const before of trail.toReversed()) {
    const diagonal = x - y;
    matchTo(before.next(diagonal));
    if (before.passesB(diagonal)) y -= 1;
    else x -= 1;
  }
  matchTo(0);
  return pairs;
}
