import { cleanText } from '../../kube/clean-text.ts';
import { redact, redactText } from '../../telemetry/redaction.ts';

const REDACTED = '[redacted]';
/** Of one value, and of one line of a log, in bytes. */
const LONGEST_VALUE = 4_000;
const LONGEST_LINE = 16_000;

/** `user@` of a URL, and `user:password@`, whose password may have any mark in it. No image is meant by that. */
const USER_IN_URL = /:\/\/(?:[^\s/@"':]{0,200}:[^\s"']{1,300}|[^\s/@"']{1,1000})@(?!sha256:)/g;

const NAMES =
  '(?:password|passwd|passphrase|pwd|(?<![a-z])pass(?![a-z])|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|authorization|cookie)s?';
/** In JSON that stands in JSON, too. */
const QUOTE = String.raw`\\?["']?`;
const BECOMES = String.raw`${QUOTE}[ \t]{0,3}[:=][ \t]{0,3}`;
/** To its closing quotation mark, or up to the next mark. All that can be long in it is taken as it comes: no text takes time by the square of it. */
const VALUE = String.raw`(?:(\\")(?:[^"\\]|\\\\\\"|\\[^"]){1,4000}|(")(?:[^"\\]|\\[^]){1,4000}|(')[^']{1,4000}|(?:(?:Bearer|Basic) )?[^\s"',;&\\]{3,})`;
/** What is called a secret, `DB_PASS=x` or `"token_value": "x"`, with what follows it. */
const NAMED_SECRET = new RegExp(String.raw`(${NAMES}(?:_[a-z0-9]{1,20}){0,4}${BECOMES})${VALUE}`, 'gi');
/** `--password x`, also as items of a list. */
const FLAG_SECRET = new RegExp(
  String.raw`((?<![\w-])--?(?:[a-z0-9]{1,30}[-_]){0,5}${NAMES}(?:[ \t]{1,3}|\\?["'],[ \t]{0,3}(?=\\?["'])))(?!-)${VALUE}`,
  'gi',
);
/** `"name": "DB_PASSWORD", "value": "x"`, as environments of containers have it. */
const NAMED_VALUE = new RegExp(
  String.raw`(\bname${BECOMES}${QUOTE}[\w.-]{0,60}${NAMES}[\w.-]{0,40}${QUOTE}(?:[,\s]|\\n){1,12}${QUOTE}value${BECOMES})${VALUE}`,
  'gi',
);
/** Nothing harmless is that long without a mark inside of it, digests of images aside. */
const OPAQUE = /(?<![A-Za-z0-9+_]|sha256:)[A-Za-z0-9+_]{40,}={0,2}/g;
/** Keys in base64 and base64url, and paths. */
const PERHAPS_OPAQUE = /(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{40,}={0,2}/g;

/** The text as one line of plain characters, without what looks like a secret. */
export function harmlessText(text: string): string {
  return cleanText(withoutSecrets(text), LONGEST_VALUE);
}

/** The last lines of a log that fit into so many bytes, each made harmless. */
export function harmlessLines(text: string, maxBytes: number): string {
  // A key has several lines, which are not known as one each for itself.
  const lines = redactText(text).split('\n').map(harmlessLine);
  let size = 0;
  let first = lines.length;
  while (first > 0) {
    size += Buffer.byteLength(lines[first - 1] ?? '') + 1;
    if (size > maxBytes) break;
    first -= 1;
  }
  return lines.slice(first).join('\n');
}

/** A line of JSON, such as ours, also has names of fields that tell what is a secret; before it may stand a time. */
function harmlessLine(line: string): string {
  const start = line.indexOf('{');
  if (start >= 0) {
    try {
      const fields: unknown = JSON.parse(line.slice(start));
      return cleanText(withoutSecrets(`${line.slice(0, start)}${JSON.stringify(redact(fields))}`), LONGEST_LINE);
    } catch {
      // No JSON, then.
    }
  }
  return cleanText(withoutSecrets(line), LONGEST_LINE);
}

function withoutSecrets(text: string): string {
  const named = (_match: string, name: string, ...quotes: (string | undefined)[]): string =>
    `${name}${quotes.slice(0, 3).find((quote) => quote !== undefined) ?? ''}${REDACTED}`;
  return redactText(text)
    .replaceAll(USER_IN_URL, `://${REDACTED}@`)
    .replaceAll(NAMED_VALUE, named)
    .replaceAll(NAMED_SECRET, named)
    .replaceAll(FLAG_SECRET, named)
    .replaceAll(OPAQUE, REDACTED)
    .replaceAll(PERHAPS_OPAQUE, (run) => (isRandom(run) ? REDACTED : run));
}

/** Paths and names of Kubernetes hardly have capital letters, and those of its kinds no digits; of what is random each is an eighth at least. */
function isRandom(run: string): boolean {
  const share = run.length / 8;
  const many = (kind: RegExp): boolean => (run.match(kind)?.length ?? 0) >= share;
  return /[0-9+]/.test(run) && many(/[A-Z]/g) && many(/[a-z]/g);
}
