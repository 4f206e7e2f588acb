import { isAscii } from 'node:buffer';
import { gunzip } from 'node:zlib';
import { promisify } from 'node:util';
import { ApiError, TransportError, type Status } from './errors.ts';
import { MAX_BODY_BYTES } from './exchange.ts';
import { parseJson } from './json.ts';
import { parseRetryAfter } from './retry-policy.ts';

const unzip = promisify(gunzip);

export interface Where {
  cluster: string;
  method: string;
  path: string;
}

type Headers = Record<string, string | string[] | undefined>;

/** Text of a body. Most are plain ASCII, which needs no decoding. */
export function decodeText(body: Buffer): string {
  return body.toString(isAscii(body) ? 'latin1' : 'utf8');
}

/** The JSON of a successful answer. Throws TransportError `malformed` when it is none. */
export function parseAnswer(where: Where, body: Buffer): unknown {
  try {
    return parseJson(decodeText(body));
  } catch (e) {
    throw malformed(where, body.length === 0 ? 'it is empty' : 'it is not valid JSON', e);
  }
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
    return await unzip(body, { maxOutputLength: MAX_BODY_BYTES });
  } catch (e) {
    throw malformed(where, 'its gzip data is broken', e);
  }
}

/** The error for a status that is not 2xx. Redirects are never followed: they would carry credentials elsewhere. */
export function refusal(where: Where, code: number, headers: Headers, body: Buffer): ApiError | TransportError {
  if (code < 400) {
    return malformed(where, code < 300 ? `unexpected status ${code}` : `it redirects (${code}), which is not followed`);
  }
  const status = statusFrom(headers, body) ?? { kind: 'Status', code, message: plainMessage(code, headers, body) };
  const seconds = status.details?.retryAfterSeconds;
  const told = parseRetryAfter(headers['retry-after'], Date.now());
  return new ApiError({
    ...where,
    code,
    status,
    retryAfterMs: told ?? (typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined),
  });
}

/** The Status inside an answer, if it is one. */
export function asStatus(value: unknown): Status | undefined {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Status'
    ? (value as Status)
    : undefined;
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
