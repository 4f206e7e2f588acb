import { gunzip } from 'node:zlib';
import { promisify } from 'node:util';
import PQueue from 'p-queue';
import { ApiError, TransportError } from './errors.ts';
import { LONGEST_ANSWER_BYTES } from './answer-room.ts';
import { decodeText, jsonText } from './body-text.ts';
import { TooLargeError } from './exchange.ts';
import { parseJson } from './json.ts';
import { retryAfterMs } from './retry-policy.ts';
import { asStatus, type Status } from './status.ts';
import { transportError } from './transport-failure.ts';

const unzip = promisify(gunzip);
const unzipping = new PQueue({ concurrency: 2 });

/** Answers up to this length are small whatever is in them. */
const DENSE_FROM_BYTES = 1024 * 1024;
/** What is parsed from one answer may take so much, as it is estimated beforehand; a page of a list is asked for in smaller ones. */
const MOST_PARSED_BYTES = 96 * 1024 * 1024;
/** An object or a list, a field with its name, and one more value may take so much beside their text, written in 2, 6 and 3 bytes. */
const [NESTED_BYTES, FIELD_BYTES, VALUE_BYTES] = [64, 104, 32];
const [OPEN_OBJECT, OPEN_LIST, COLON, COMMA, QUOTE, BACKSLASH] = [0x7b, 0x5b, 0x3a, 0x2c, 0x22, 0x5c];
export const TOO_DENSE = 'has more in it than may be read at once: parsed, it would take more than 96 MiB';

export interface Where {
  cluster: string;
  method: string;
  path: string;
}

type Headers = Record<string, string | string[] | undefined>;

/** The JSON of a successful answer, see KubeRequest.managedFields. Throws TransportError `malformed` when it is none. */
export function parseAnswer(where: Where, body: Buffer, managedFields: boolean): unknown {
  if (isDense(body)) {
    throw transportError(where, new TooLargeError(`the answer ${TOO_DENSE}`));
  }
  try {
    return parseJson(jsonText(body, managedFields));
  } catch (e) {
    throw malformed(where, body.length === 0 ? 'it is empty' : 'it is not valid JSON', e);
  }
}

/** Whether parsed JSON would take far more memory than its text. */
export function isDense(body: Buffer): boolean {
  if (body.length < DENSE_FROM_BYTES) return false;
  let bytes = 0;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (byte === QUOTE) {
      for (i++; i < body.length && body[i] !== QUOTE; i++) if (body[i] === BACKSLASH) i++;
    } else if (byte === COMMA) bytes += VALUE_BYTES;
    else if (byte === COLON) bytes += FIELD_BYTES;
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) bytes += NESTED_BYTES;
  }
  return bytes > MOST_PARSED_BYTES;
}

/** An answer that cannot be what was asked for. */
export function malformed(where: Where, why: string, cause?: unknown): TransportError {
  return new TransportError({ ...where, kind: 'malformed', detail: `the answer makes no sense: ${why}`, cause });
}

/** Undoes gzip off the main thread. Throws TransportError `malformed` for a broken body. */
export async function decompress(where: Where, headers: Headers, body: Buffer): Promise<Buffer> {
  if (headers['content-encoding'] !== 'gzip') {
    return body;
  }
  try {
    // One at a time: what comes out may be a thousand times as long as what went in.
    return await unzipping.add(async () => await unzip(body, { maxOutputLength: LONGEST_ANSWER_BYTES }));
  } catch (e) {
    if (e instanceof Error && 'code' in e && e.code === 'ERR_BUFFER_TOO_LARGE') {
      throw transportError(where, new TooLargeError('the answer is longer than 16 MiB'));
    }
    throw malformed(where, 'its gzip data is broken', e);
  }
}

/** The error for a status that is not 2xx. Redirects are never followed: they would carry credentials elsewhere. */
export function refusal(where: Where, code: number, headers: Headers, body: Buffer): ApiError | TransportError {
  if (code < 400) {
    return malformed(where, code < 300 ? `unexpected status ${code}` : `it redirects (${code}), which is not followed`);
  }
  const status = statusFrom(headers, body) ?? { kind: 'Status', code, message: plainMessage(code, headers, body) };
  const told = retryAfterMs(headers['retry-after'], status.details?.retryAfterSeconds, Date.now());
  return new ApiError({ ...where, code, status, retryAfterMs: told });
}

function statusFrom(headers: Headers, body: Buffer): Status | undefined {
  if (!String(headers['content-type'] ?? '').includes('json')) {
    return undefined;
  }
  try {
    return asStatus(parseJson(decodeText(body)));
  } catch {
    return undefined; // a proxy in between answered
  }
}

function plainMessage(code: number, headers: Headers, body: Buffer): string {
  const isText = String(headers['content-type'] ?? '').startsWith('text/plain');
  const text = isText ? decodeText(body.subarray(0, 300)).replaceAll(/\s+/g, ' ').trim() : '';
  return text === '' ? `HTTP status ${code} without an explanation` : text;
}
