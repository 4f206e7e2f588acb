/** `a, b and 3 more`: the first of many names, and how many more there are. */
export function someOf(names: readonly string[], most = 5): string {
  const more = names.length > most ? ` and ${names.length - most} more` : '';
  return `${names.slice(0, most).join(', ')}${more}`;
}
