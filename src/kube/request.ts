import type { Readable } from 'node:stream';
import type { Framing } from './framed-stream.ts';

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>;

export interface KubeRequest {
  /** Default GET. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path with every segment already encoded (see resourcePath); the server's own prefix is added. */
  path: string;
  query?: Query;
  /** Sent as JSON; a string or Buffer goes as it is. */
  body?: unknown;
  /** Default application/json. */
  contentType?: string;
  /** Default application/json. */
  accept?: string;
  /** Milliseconds for everything, tries and waits included; default 30,000. Streams: until the answer starts. */
  deadlineMs?: number;
  signal?: AbortSignal | undefined;
  /**
   * `true`: the request is safe to repeat (default for GET): failures that may pass are tried again. Default for other
   * methods: only after 429 with Retry-After, which means nothing was done. `false`: never.
   */
  retry?: boolean | undefined;
  /** Whether `metadata.managedFields` of the objects in the answer is read; default true. See body-text.ts. */
  managedFields?: boolean;
  /** Ask for a compressed answer: worth it for lists. */
  gzip?: boolean;
  /** Streams only: leave the body in its HTTP/1.1 framing, for a relay that passes it on as it is. GET only. */
  framed?: boolean;
}

/** An answer whose body is still coming; the reader must consume or destroy it. */
export interface StreamResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
  /** What the body still is in; undefined: in nothing. */
  framing?: Framing | undefined;
}

export function withQuery(path: string, query: Query | undefined): string {
  if (query === undefined) {
    return path;
  }
  let text = '';
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) {
      continue;
    }
    for (const one of Array.isArray(value) ? value : [value]) {
      text += `${text === '' ? '?' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(String(one))}`;
    }
  }
  return path + text;
}
