/** White space, line ends among it, becomes one space; other control characters and the marks that turn the direction of text around go. */
const SPACES = /[\s\u0085]+/g;
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;
const ELLIPSIS = '…';
/** Words of plain ASCII with one space between them: most of what comes is clean already. */
const CLEAN = /^[!-~]+(?: [!-~]+)*$/;
/** Of a text that is much longer than what is kept, no more than this many times as much is looked at. */
const LOOKED_AT = 8;

/** All of those but line ends and tabs. */
const HIDDEN_IN_LINES = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff](?<![\t\n])/gu;

/**
 * Text of unknown origin made fit for Events, conditions and terminals: one line, no control or direction characters,
 * whole characters, at most `maxBytes` of UTF-8; an ellipsis shows that something was cut.
 * What members say passes here before people see it.
 */
export function cleanText(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && CLEAN.test(text)) return text;
  return cut(text, maxBytes, (looked) => looked.replaceAll(SPACES, ' ').replaceAll(HIDDEN, '').trim());
}

/** The same for text that may have several lines, such as the last words of a container: line ends and tabs stay. */
export function cleanLines(text: string, maxBytes: number): string {
  return cut(text, maxBytes, (looked) => looked.replaceAll(HIDDEN_IN_LINES, ''));
}

function cut(text: string, maxBytes: number, clean: (looked: string) => string): string {
  const looked = text.length > LOOKED_AT * maxBytes ? text.slice(0, LOOKED_AT * maxBytes) : text;
  const bytes = Buffer.from(clean(looked));
  if (bytes.length <= maxBytes && looked === text) return bytes.toString();
  let end = Math.min(bytes.length, maxBytes - Buffer.byteLength(ELLIPSIS));
  // 10xxxxxx continues a character: step back to its first byte.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString().trimEnd()}${ELLIPSIS}`;
}
