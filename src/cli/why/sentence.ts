/** A text of unknown origin as a sentence, so that another may follow. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
