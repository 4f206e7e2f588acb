import { cleanText } from '../../kube/clean-text.ts';
import { redact, redactText } from '../../telemetry/redaction.ts';

const REDACTED = '[redacted]';
/** Of one value, and of one line of a log, in bytes. */
const LONGEST_VALUE = 4_000;
const LONGEST_LINE = 16_000;

/** `user:password@` of a URL. */
const USER_IN_URL = /:\/\/[^\s/@"']{1,1000}@/g;
/** What is called a secret, with what follows it up to the next mark. */
const NAMED_SECRET =
  /((?:password|passwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|authorization|cookie)s?\\?["']?[ \t]{0,3}[:=][ \t]{0,3}\\?["']?)(?:(?:Bearer|Basic) )?[^\s"',;&\\]{3,}/gi;
/** Nothing harmless is that long without a mark inside of it, digests of images aside. */
const OPAQUE = /(?<![A-Za-z0-9+_]|sha256:)[A-Za-z0-9+_]{40,}={0,2}/g;

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
  return redactText(text)
    .replaceAll(USER_IN_URL, `://${REDACTED}@`)
    .replaceAll(NAMED_SECRET, (_match, name: string) => `${name}${REDACTED}`)
    .replaceAll(OPAQUE, REDACTED);
}
