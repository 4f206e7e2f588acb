import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/**
 * Objects that a cluster stored differently than they were sent, by its own answers, as a webhook there has it: not sent again, or they would
 * be sent for ever. What somebody changes of them afterwards is: so it is known what was sent, and what came of it.
 */
export class DeclinedWrites {
  /** By key, a digest of both. */
  readonly #digests = new Map<string, string>();

  /** Whether that was sent before, and what is there came of it. */
  has(key: string, sent: unknown, there: unknown): boolean {
    const before = this.#digests.get(key);
    return before !== undefined && before === digestOf(sent, there);
  }

  /** What was answered; `isAsSent`: all is as it was to be. */
  note(key: string, sent: unknown, answer: unknown, isAsSent: boolean): void {
    if (isAsSent) this.#digests.delete(key);
    else this.#digests.set(key, digestOf(sent, answer));
  }

  forget(key: string): void {
    this.#digests.delete(key);
  }
}

function digestOf(sent: unknown, stored: unknown): string {
  return createHash('sha256')
    .update(canonicalJson([sent, stored]))
    .digest('base64');
}
