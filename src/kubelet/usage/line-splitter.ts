import { StringDecoder } from 'node:string_decoder';

const NEWLINE = '\n';

/** Cuts a stream of bytes into lines, which it hands on one at a time. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  readonly #maxLine: number;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  constructor(onLine: (line: string) => void, maxLine = 65_536) {
    this.#onLine = onLine;
    this.#maxLine = maxLine;
  }

  /** Throws when a line is longer than anything that metrics have. */
  push(chunk: Buffer): void {
    const text = this.#rest + this.#decoder.write(chunk);
    let start = 0;
    for (let end = text.indexOf(NEWLINE); end >= 0; end = text.indexOf(NEWLINE, start)) {
      this.#onLine(text.slice(start, end));
      start = end + 1;
    }
    this.#rest = text.slice(start);
    if (this.#rest.length > this.#maxLine) throw new Error(`a line is longer than ${this.#maxLine} characters`);
  }

  /** The last line, if it had no line end. */
  end(): void {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = '';
    if (rest !== '') this.#onLine(rest);
  }
}
