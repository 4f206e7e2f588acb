import { decodeText } from './answer.ts';
import { parseJson } from './json.ts';

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export interface WatchEvent {
  type: WatchEventType;
  object: unknown;
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);
const NEWLINE = 10;
/** Far above any object that etcd takes (1.5 MiB by default); what is longer is no watch. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Splits a watch body into events, one JSON document a line. Pieces of an unfinished line are kept apart until its end
 * comes, so a large object costs no repeated copying. Throws SyntaxError at a line that is no watch event.
 */
export class WatchDecoder {
  #pieces: Buffer[] = [];
  #length = 0;

  push(chunk: Buffer, onEvent: (event: WatchEvent) => void): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) {
        break;
      }
      const tail = chunk.subarray(start, end);
      start = end + 1;
      const line = this.#pieces.length === 0 ? tail : this.#join(tail);
      if (line.length > 0) {
        onEvent(decode(line));
      }
    }
    if (start < chunk.length) {
      this.#pieces.push(chunk.subarray(start));
      this.#length += chunk.length - start;
      if (this.#length > MAX_LINE_BYTES) {
        throw new SyntaxError('a watch line has no end');
      }
    }
  }

  #join(tail: Buffer): Buffer {
    this.#pieces.push(tail);
    const line = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return line;
  }
}

function decode(line: Buffer): WatchEvent {
  const value = parseJson(decodeText(line));
  if (typeof value !== 'object' || value === null || !('type' in value) || !('object' in value)) {
    throw new SyntaxError('a watch line is not an event');
  }
  if (!TYPES.has(value.type)) {
    throw new SyntaxError('a watch event has an unknown type');
  }
  return value as WatchEvent;
}
