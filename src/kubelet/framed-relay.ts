import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { ChunkScanner } from '../kube/chunk-scanner.ts';
import type { Framing } from '../kube/framed-stream.ts';
import { corkForThisTurn } from './cork.ts';

/** Bytes that may wait in this process for the caller before the member is read no further. */
const MOST_HELD = 131_072;

/**
 * Answers in chunks with a body that already is in its HTTP/1.1 framing, chunks byte for byte, no faster than the caller
 * reads. Only a body that came to its own end makes a whole answer; any other breaks it. Other headers are set before.
 * Resolves when the answer is over; never rejects.
 *
 * What ends the body goes out by itself, when all before it has: an API server that gives a log to a WebSocket drops what it
 * reads in one piece with the end, which a kubelet never sends so, nor in an answer of known length.
 */
export function relayFramed(response: ServerResponse, body: Readable, framing: Framing): Promise<void> {
  response.setHeader('Transfer-Encoding', 'chunked');
  response.flushHeaders();
  // The pieces are chunks, or parts of them; Node would put them into chunks once more.
  response.chunkedEncoding = false;
  const rest = framing.kind === 'chunked' ? new RestOfChunks() : new RestOfLength(framing.bytes);
  return new Promise((resolve) => {
    let unsent = 0;
    const finish = (): void => {
      if (unsent === 0 && rest.done && !response.writableEnded && !response.destroyed) response.end(rest.end);
    };
    const sent = (): void => {
      unsent -= 1;
      finish();
    };
    const send = (piece: Buffer | string): void => {
      unsent += 1;
      corkForThisTurn(response);
      if (!response.write(piece, sent) && response.writableLength > MOST_HELD) body.pause();
    };
    const settle = (): void => {
      if (rest.done) finish();
      else response.destroy();
      body.destroy();
    };
    response.once('close', () => {
      body.destroy();
      resolve();
    });
    response.on('drain', () => body.resume());
    response.on('error', () => undefined);
    body.on('data', (piece: Buffer) => {
      const part = rest.take(piece);
      if (part.length > 0) send(part);
      if (rest.done) settle();
    });
    body.on('error', settle);
    body.once('end', settle);
    body.once('close', settle);
    if (rest.begin !== '') send(rest.begin);
    if (response.destroyed || body.destroyed || rest.done) settle();
    else body.resume();
  });
}

/** What is still to come of a body: `begin` stands before it in our answer, `end` after it. */
interface Rest {
  readonly begin: string;
  readonly end: string;
  readonly done: boolean;
  /** The part of a piece that goes out before `end`. */
  take(piece: Buffer): Buffer;
}

class RestOfChunks implements Rest {
  readonly begin = '';
  /** From the end of the last chunk's line on. Trailers are left out: nothing in the head announces them. */
  readonly end = '\n\r\n';
  readonly #chunks = new ChunkScanner();

  get done(): boolean {
    return this.#chunks.done;
  }

  take(piece: Buffer): Buffer {
    return piece.subarray(0, this.#chunks.feed(piece));
  }
}

/** A body of known length is one chunk. */
class RestOfLength implements Rest {
  readonly begin: string;
  readonly end: string;
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
    this.begin = bytes === 0 ? '' : `${bytes.toString(16)}\r\n`;
    this.end = `${bytes === 0 ? '' : '\r\n'}0\r\n\r\n`;
  }

  get done(): boolean {
    return this.#left === 0;
  }

  take(piece: Buffer): Buffer {
    this.#left -= piece.length;
    return piece;
  }
}
