import { cleanText } from './clean-text.ts';

/** So many are told apart; what a hostile server sends beyond that changes nothing any more. */
const MOST = 1_000;
/** Of what is said about one, in bytes. */
const LONGEST_WORDS = 300;
/** What one takes in memory, in bytes, beside its characters. */
const ENTRY = 160;

/** Where it is counted what is remembered. */
interface Room {
  hold(bytes: number): boolean;
  drop(bytes: number): void;
}

/**
 * Objects of a collection that are left out because they are not what the API promises. What was known of them stays: to be
 * left out is not to be deleted.
 */
export class UnusableObjects {
  readonly #plural: string;
  readonly #room: Room | undefined;
  readonly #problems = new Map<string, string>();

  constructor(plural: string, room?: Room) {
    this.#plural = plural;
    this.#room = room;
  }

  get size(): number {
    return this.#problems.size;
  }

  /** One line for people with an example; undefined while there is none. */
  get words(): string | undefined {
    for (const [key, problem] of this.#problems) {
      const count = this.#problems.size;
      const what =
        count === 1
          ? `1 of its ${this.#plural} is`
          : `${count === MOST ? `${MOST} or more` : count} of its ${this.#plural} are`;
      return cleanText(
        `${what} left out as no valid object, such as ${key} (${problem}); what was known stays`,
        LONGEST_WORDS,
      );
    }
    return undefined;
  }

  /** Whether that is new; `telling`, and worth a line in the log: the first ones, and then ever fewer. */
  add(key: string, problem: string): 'known' | 'new' | 'telling' {
    if (this.#problems.has(key)) return 'known';
    if (this.#problems.size >= MOST) return 'new';
    const words = cleanText(problem, LONGEST_WORDS);
    if (this.#room?.hold(bytesOf(key, words)) === false) return 'new';
    this.#problems.set(key, words);
    return Number.isInteger(Math.log2(this.#problems.size)) ? 'telling' : 'new';
  }

  /** It is well again, or gone. */
  remove(key: string): void {
    const words = this.#problems.get(key);
    if (words === undefined) return;
    this.#problems.delete(key);
    this.#room?.drop(bytesOf(key, words));
  }

  /** A complete list: others do not exist any more. */
  keep(listed: ReadonlyMap<string, unknown>): void {
    for (const key of this.#problems.keys()) if (!listed.has(key)) this.remove(key);
  }
}

function bytesOf(key: string, words: string): number {
  return ENTRY + 2 * (key.length + words.length);
}
