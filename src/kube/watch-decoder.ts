import { AnswerRoom, LONGEST_ANSWER_BYTES } from './answer-room.ts';
import { jsonText } from './body-text.ts';
import { LimitError } from './limit-error.ts';
import { parseJson } from './json.ts';
import { isDense, TOO_DENSE } from './response-body.ts';

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export interface WatchEvent {
  type: WatchEventType;
  object: unknown;
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);
const NEWLINE = 10;
/**
 * Splits a watch body into events, one JSON document a line. Pieces of an unfinished line are kept apart until its end
 * comes, so a large object costs no repeated copying. Throws SyntaxError at a line that is no watch event, and LimitError at
 * one that is too long. {@link end} has to be called when nothing more comes.
 */
export class WatchDecoder {
  readonly #room: AnswerRoom;
  readonly #managedFields: boolean;
  #pieces: Buffer[] = [];
  #length = 0;
  #held = 0;

  /** `managedFields`: see {@link KubeRequest.managedFields}. */
  constructor(room = new AnswerRoom(), managedFields = true) {
    this.#room = room;
    this.#managedFields = managedFields;
  }

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
        onEvent(decode(line, this.#managedFields));
      }
    }
    if (start < chunk.length) {
      const rest = chunk.subarray(start);
      this.#length += rest.length;
      const cost = this.#length > LONGEST_ANSWER_BYTES ? undefined : this.#room.take(rest.length);
      if (cost === undefined) {
        throw new LimitError('a line of a watch is longer than 16 MiB, or than there is room for');
      }
      this.#held += cost;
      this.#pieces.push(rest);
    }
  }

  end(): void {
    this.#pieces = [];
    this.#length = 0;
    this.#room.give(this.#held);
    this.#held = 0;
  }

  #join(tail: Buffer): Buffer {
    this.#pieces.push(tail);
    const line = Buffer.concat(this.#pieces);
    this.end();
    return line;
  }
}

function decode(line: Buffer, managedFields: boolean): WatchEvent {
  if (isDense(line)) throw new LimitError(`a line of a watch ${TOO_DENSE}`);
  const value = parseJson(jsonText(line, managedFields));
  if (typeof value !== 'object' || value === null || !('type' in value) || !('object' in value)) {
    throw new SyntaxError('a watch line is not an event');
  }
  if (!TYPES.has(value.type)) {
    throw new SyntaxError('a watch event has an unknown type');
  }
  return value as WatchEvent;
}
