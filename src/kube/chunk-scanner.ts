/** Size of a chunk and its extensions, or one trailer: more than any server sends. */
const LONGEST_LINE = 4_096;
const [CR, LF, SEMICOLON] = [13, 10, 59];

/**
 * Follows the chunks of an HTTP/1.1 body that is passed on as it came, in pieces of any size, to tell whether it came to
 * its end. What is in the chunks is not looked at.
 */
export class ChunkScanner {
  #state: 'size' | 'data' | 'trailer' | 'done' | 'broken' = 'size';
  /** Of the chunk, its line end included. */
  #left = 0;
  /** The beginning of a line whose end has not come yet. */
  #line = '';
  /** Where the line of the last chunk ends in the bytes that were fed last. */
  #last: number | undefined;
  readonly #onData: ((data: Buffer) => void) | undefined;

  /** `onData` gets what is in the chunks, piece by piece. */
  constructor(onData?: (data: Buffer) => void) {
    this.#onData = onData;
  }

  /** The last chunk was seen, and nothing after it. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** Returns how many of these bytes come before the line feed of the last chunk, with which a reader knows the end. */
  feed(bytes: Buffer): number {
    this.#last = this.#state === 'trailer' || this.#state === 'done' ? 0 : undefined;
    let at = 0;
    while (at < bytes.length && this.#state !== 'broken') {
      if (this.#state === 'data') at = this.#skip(bytes, at);
      else if (this.#state === 'done') this.#state = 'broken';
      else at = this.#readLine(bytes, at);
    }
    return this.#last ?? bytes.length;
  }

  #skip(bytes: Buffer, at: number): number {
    const taken = Math.min(this.#left, bytes.length - at);
    if (this.#onData !== undefined) {
      const data = bytes.subarray(at, at + Math.max(0, Math.min(taken, this.#left - 2)));
      if (data.length > 0) this.#onData(data);
    }
    this.#left -= taken;
    if (this.#left === 0) this.#state = 'size';
    return at + taken;
  }

  #readLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at);
    const stop = end < 0 ? bytes.length : end;
    const before = this.#state;
    if (this.#line.length + stop - at > LONGEST_LINE) {
      this.#state = 'broken';
      return bytes.length;
    }
    if (end < 0 || this.#line !== '') {
      this.#line += bytes.toString('latin1', at, stop);
      if (end >= 0) this.#endOfLine(Buffer.from(this.#line, 'latin1'), 0, this.#line.length);
    } else {
      this.#endOfLine(bytes, at, stop);
    }
    if (before === 'size' && this.#state === 'trailer') this.#last = end;
    return stop + 1;
  }

  #endOfLine(bytes: Buffer, from: number, to: number): void {
    this.#line = '';
    const end = bytes[to - 1] === CR && to > from ? to - 1 : to;
    if (this.#state === 'trailer') {
      if (end === from) this.#state = 'done';
      return;
    }
    const size = sizeIn(bytes, from, end);
    if (size === undefined) {
      this.#state = 'broken';
    } else if (size === 0) {
      this.#state = 'trailer';
    } else {
      this.#left = size + 2;
      this.#state = 'data';
    }
  }
}

/** The hexadecimal number at the beginning of a line, up to its end or the first extension. */
function sizeIn(bytes: Buffer, from: number, end: number): number | undefined {
  let size = 0;
  let at = from;
  for (; at < end && bytes[at] !== SEMICOLON; at++) {
    const digit = digitOf(bytes[at] ?? 0);
    if (digit === undefined || at - from >= 12) return undefined;
    size = size * 16 + digit;
  }
  return at === from ? undefined : size;
}

function digitOf(code: number): number | undefined {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : undefined;
}
