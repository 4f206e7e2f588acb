/** The longest answer, and the longest line of a watch. etcd takes objects of 1.5 MiB; a page that is longer is asked for in smaller ones. */
export const LONGEST_ANSWER_BYTES = 16 * 1024 * 1024;
/** Of all answers and lines of one client that have not come to their end. */
const MOST_BYTES = 24 * 1024 * 1024;
/** What a piece costs beside its bytes: an endless number of tiny ones must not be cheaper than it is. */
const PIECE_BYTES = 256;

/** Bounds what a server can make its client hold in unfinished answers. */
export class AnswerRoom {
  #used = 0;

  /** Holds room for a piece; undefined when there is none, else how much was taken, to be given back. */
  take(bytes: number): number | undefined {
    const cost = bytes + PIECE_BYTES;
    if (this.#used + cost > MOST_BYTES) return undefined;
    this.#used += cost;
    return cost;
  }

  give(cost: number): void {
    this.#used -= cost;
  }
}
