/** At most so many characters of a text; an ellipsis shows that something was cut. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
