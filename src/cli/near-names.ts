/** Further away than so many typing errors a name is another one. */
const MOST_EDITS = 2;

/**
 * Those of `names` that somebody who typed `word` most likely meant, the nearest ones alone: with a letter left out, added, mistaken or
 * changed places with the next one, or, where none is that near, those of which it is the beginning.
 */
export function nearNames(word: string, names: readonly string[]): string[] {
  // Of a short name two changed letters leave nothing.
  const most = Math.min(MOST_EDITS, Math.floor((word.length - 1) / 2));
  const measured = names.map((name) => ({ name, edits: edits(word, name) })).filter(({ edits: n }) => n <= most);
  const least = Math.min(...measured.map(({ edits: n }) => n));
  const near = measured.filter(({ edits: n }) => n === least).map(({ name }) => name);
  const found = near.length > 0 || word.length < 2 ? near : names.filter((name) => name.startsWith(word));
  return found.toSorted();
}

/** `did you mean east?`, with `prefix` before each name; undefined: nothing is near. */
export function didYouMean(word: string, names: readonly string[], prefix = ''): string | undefined {
  const near = nearNames(word, names).map((name) => `${prefix}${name}`);
  return near.length === 0 ? undefined : `did you mean ${near.slice(0, 3).join(' or ')}?`;
}

/** Letters to be left out, added, replaced, or changed places with the next one (optimal string alignment). */
function edits(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MOST_EDITS) return Infinity;
  let twoBack: number[] = [];
  let back = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const plain = Math.min((back[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (back[j - 1] ?? 0) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(swapped ? Math.min(plain, (twoBack[j - 2] ?? 0) + 1) : plain);
    }
    twoBack = back;
    back = row;
  }
  return back[b.length] ?? Infinity;
}
