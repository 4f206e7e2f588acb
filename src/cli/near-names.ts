import leven from 'leven';

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

/** Letters to be left out, added or replaced; two that changed places are one typing error. */
function edits(word: string, name: string): number {
  const found = leven(word, name);
  return found === 2 && lettersOf(word) === lettersOf(name) ? 1 : found;
}

function lettersOf(name: string): string {
  return name.split('').toSorted().join('');
}
