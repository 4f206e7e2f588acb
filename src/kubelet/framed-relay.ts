import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { ChunkScanner } from '../kube/chunk-scanner.ts';
import type { Framing } from '../kube/framed-stream.ts';
import { corkForThisTurn } from './cork.ts';

/** Bytes that may wait in this process for the caller before the member is read no further. */
const MOST_HELD = 131_072;

/**
 * Answers with a body that already is in its HTTP/1.1 framing, byte for byte, no faster than the caller reads. Only a body
 * that came to its own end makes a whole answer; any other breaks it. Other headers are set before. Resolves when the
 * answer is over; never rejects.
 */
export function relayFramed(response: ServerResponse, body: Readable, framing: Framing): Promise<void> {
  if (framing.kind === 'chunked') response.setHeader('Transfer-Encoding', 'chunked');
  else response.setHeader('Content-Length', framing.bytes);
  response.flushHeaders();
  // The pieces are chunks, or parts of them; Node would put them into chunks once more.
  response.chunkedEncoding = false;
  const end = framing.kind === 'chunked' ? new ChunkScanner() : new LengthScanner(framing.bytes);
  return new Promise((resolve) => {
    const settle = (): void => {
      if (end.done && !response.destroyed) response.end();
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
      end.feed(piece);
      corkForThisTurn(response);
      if (!response.write(piece) && response.writableLength > MOST_HELD) body.pause();
      if (end.done) settle();
    });
    body.on('error', settle);
    body.once('end', settle);
    body.once('close', settle);
    if (response.destroyed || body.destroyed) settle();
    else if (end.done) settle();
    else body.resume();
  });
}

class LengthScanner {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  get done(): boolean {
    return this.#left === 0;
  }

  feed(piece: Buffer): void {
    this.#left -= piece.length;
  }
}
