/**
 * What a division by weight has to end on, worked out by the rule alone and nothing of the program: seat by seat to the
 * largest weight / (2 * seats + 1), of equals to the one with fewer seats, then by name, backwards if `descending`. Names
 * without a seat are left out. @param weights whole numbers, by name; a name without weight gets nothing.
 */
export function exactDivision(
  replicas: number,
  weights: ReadonlyMap<string, number>,
  descending: boolean,
): Map<string, number> {
  const names = [...weights.keys()].filter((name) => (weights.get(name) ?? 0) > 0).toSorted();
  if (descending) names.reverse();
  const seats = new Map<string, number>();
  const claim = (name: string): [weight: number, divisor: number, seats: number] => {
    const has = seats.get(name) ?? 0;
    return [weights.get(name) ?? 0, 2 * has + 1, has];
  };
  for (let seat = 0; seat < replicas; seat++) {
    let best = names[0];
    if (best === undefined) break;
    for (const name of names) {
      const [weight, divisor, has] = claim(name);
      const [bestWeight, bestDivisor, bestHas] = claim(best);
      const ahead = weight * bestDivisor - bestWeight * divisor;
      if (ahead > 0 || (ahead === 0 && has < bestHas)) best = name;
    }
    seats.set(best, (seats.get(best) ?? 0) + 1);
  }
  return seats;
}

/** Names whose counts are not the same in both. */
export function differing(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): string[] {
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((name) => (a.get(name) ?? 0) !== (b.get(name) ?? 0))
    .toSorted();
}
