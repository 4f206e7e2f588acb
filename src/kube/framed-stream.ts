import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Readable } from 'node:stream';
import type { Outgoing } from './exchange.ts';
import { ChunkScanner } from './chunk-scanner.ts';
import { dialServer, type Route } from './dial.ts';

/** How the end of a body is told. */
export type Framing = { readonly kind: 'chunked' } | { readonly kind: 'length'; readonly bytes: number };

/** An answer whose body comes as it is on the wire, chunks and all. */
export interface FramedAnswer {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  /** Undefined: the body ends with the connection. */
  readonly framing: Framing | undefined;
  readonly body: Readable;
}

const LARGEST_HEAD = 65_536;
/** Of an answer that refuses, in bytes. */
export const LARGEST_REFUSAL = 1_048_576;
const END_OF_HEAD = '\r\n\r\n';

/**
 * One request on a connection of its own, up to the start of the answer's body, which is left in its HTTP/1.1 framing: a
 * relay can pass it on as it is, for a quarter of what it costs to take thousands of small chunks out and put them in again.
 * The connection is asked to be closed after it. Rejects with the socket's own error, or the signal's reason. The signal
 * also cuts the body.
 */
export async function openFramed(route: Route, outgoing: Outgoing, signal: AbortSignal): Promise<FramedAnswer> {
  const socket = await dialServer(route, signal);
  const onAbort = (): void => {
    socket.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', onAbort));
  if (signal.aborted) onAbort();
  return await new Promise<FramedAnswer>((resolve, reject) => {
    // Stays: an error after the answer has begun also reaches the reader of the body.
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed before the answer')));
    let head = Buffer.alloc(0);
    const fail = (what: string): void => {
      socket.destroy(new Error(what));
    };
    const onEnd = (): void => fail('the connection ended before the answer');
    const onData = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf(END_OF_HEAD);
      if (end < 0) {
        if (head.length > LARGEST_HEAD) fail('the head of the answer is longer than 64 KiB');
        return;
      }
      socket.off('data', onData);
      socket.off('end', onEnd);
      socket.pause();
      const read = readHead(head.toString('latin1', 0, end));
      if (read === undefined) {
        fail('the answer is not HTTP/1.1');
        return;
      }
      const rest = head.subarray(end + END_OF_HEAD.length);
      if (rest.length > 0) socket.unshift(rest);
      resolve({ ...read, body: socket });
    };
    socket.on('data', onData);
    socket.once('end', onEnd);
    socket.write(requestText(new URL(route.origin).host, outgoing), 'latin1');
  });
}

/** The whole body of an answer that refuses, taken out of its framing; what is too long for one is cut off. */
export async function readFramed({ framing, body }: FramedAnswer): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  const take = (piece: Buffer): void => {
    size += piece.length;
    pieces.push(piece);
  };
  const chunks = framing?.kind === 'chunked' ? new ChunkScanner(take) : undefined;
  for await (const piece of body as AsyncIterable<Buffer>) {
    if (chunks === undefined) take(piece);
    else chunks.feed(piece);
    const whole = framing?.kind === 'length' ? size >= framing.bytes : chunks?.done === true;
    if (whole || size > LARGEST_REFUSAL) break;
  }
  return Buffer.concat(pieces);
}

/** The beginning of a body; what is longer is cut off. */
export async function readUpTo(body: Readable, bytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    size += piece.length;
    pieces.push(piece);
    if (size > bytes) break;
  }
  return Buffer.concat(pieces);
}

function requestText(host: string, { method, path, headers }: Outgoing): string {
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n`;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

function readHead(text: string): Omit<FramedAnswer, 'body'> | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const code = /^HTTP\/1\.1 ([2-5]\d\d)(?: |$)/.exec(first)?.[1];
  if (code === undefined) return undefined;
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) return undefined;
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const framing = framingOf(headers['transfer-encoding'], headers['content-length']);
  return framing === 'unknown' ? undefined : { statusCode: Number(code), headers, framing };
}

function framingOf(coding: string | undefined, length: string | undefined): Framing | undefined | 'unknown' {
  if (coding !== undefined) return coding.toLowerCase() === 'chunked' ? { kind: 'chunked' } : 'unknown';
  if (length === undefined) return undefined;
  return /^\d{1,15}$/.test(length) ? { kind: 'length', bytes: Number(length) } : 'unknown';
}
