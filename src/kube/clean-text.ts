/** Line ends and tabs become spaces; other control characters and the marks that turn the direction of text around go. */
const SPACES = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;
const HIDDEN = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;
const ELLIPSIS = '…';

/**
 * Text of unknown origin made fit for Events, conditions and terminals: one line, no control or direction characters,
 * whole characters, at most `maxBytes` of UTF-8; an ellipsis shows that something was cut.
 */
export function cleanText(text: string, maxBytes: number): string {
  const line = text.replaceAll(SPACES, ' ').replaceAll(HIDDEN, '').trim();
  const bytes = Buffer.from(line);
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes - Buffer.byteLength(ELLIPSIS);
  // 10xxxxxx continues a character: step back to its first byte.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString().trimEnd()}${ELLIPSIS}`;
}
