import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { requestHeaders } from './upgrade-headers.ts';
import type { RawHeaders } from './upgrade-headers.ts';

/** How to reach a member's API server for a protocol switch; `headers` hold the credentials for it. */
export interface StreamDialer {
  readonly cluster: string;
  dial(
    signal?: AbortSignal,
  ): Promise<{ socket: Socket; host: string; pathPrefix: string; headers: Record<string, string> }>;
}

export type UpgradeOutcome =
  /** `head`: bytes of the stream that came together with the answer. */
  | { readonly kind: 'switched'; readonly socket: Socket; readonly head: Buffer; readonly rawHeaders: RawHeaders }
  | {
      readonly kind: 'refused';
      readonly code: number;
      readonly contentType: string;
      readonly body: Buffer;
      readonly rawHeaders: RawHeaders;
    };

/** The member answered nothing that HTTP allows, or too much of it. */
export class UpgradeFailed extends Error {
  override readonly name = 'UpgradeFailed';
}

const LARGEST_HEAD = 65_536;
const LARGEST_REFUSAL = 65_536;

/**
 * Sends the caller's upgrade request to a member's API server, with our credentials in place of his, and reads the
 * answer's head. Redirects are answers like any other, never followed. The connection is ours alone: it is closed
 * unless the answer is a 101. Throws what `dial` throws, the signal's reason, or {@link UpgradeFailed}.
 */
export async function requestUpgrade(o: {
  member: StreamDialer;
  method: string;
  path: string;
  rawHeaders: RawHeaders;
  signal: AbortSignal;
}): Promise<UpgradeOutcome> {
  const { socket, host, pathPrefix, headers } = await o.member.dial(o.signal);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      socket.destroy();
      reject(o.signal.aborted ? abortReason(o.signal) : asFailure(error));
    };
    const onAbort = (): void => fail(undefined);
    if (o.signal.aborted) {
      onAbort();
      return;
    }
    o.signal.addEventListener('abort', onAbort, { once: true });
    const settled = (): void => o.signal.removeEventListener('abort', onAbort);

    const outgoing = httpRequest({
      createConnection: () => socket,
      method: o.method,
      path: `${pathPrefix}${o.path}`,
      headers: requestHeaders(o.rawHeaders, o.method, { Host: host, 'User-Agent': 'spillway', ...headers }),
      maxHeaderSize: LARGEST_HEAD,
    });
    outgoing.on('error', (error) => {
      settled();
      fail(error);
    });
    outgoing.on('upgrade', (answer: IncomingMessage, upgraded: Socket, head: Buffer) => {
      settled();
      resolve({ kind: 'switched', socket: upgraded, head, rawHeaders: answer.rawHeaders });
    });
    outgoing.on('response', (answer) => {
      readRefusal(answer)
        .then((body) => {
          settled();
          resolve({
            kind: 'refused',
            code: answer.statusCode ?? 0,
            contentType: answer.headers['content-type'] ?? 'text/plain; charset=utf-8',
            body,
            rawHeaders: answer.rawHeaders,
          });
          socket.destroy();
        })
        .catch((error: unknown) => {
          settled();
          fail(error);
        });
    });
    outgoing.end();
  });
}

async function readRefusal(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_REFUSAL) {
      throw new UpgradeFailed('its refusal is longer than 64 KiB');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function asFailure(error: unknown): Error {
  return error instanceof UpgradeFailed
    ? error
    : new UpgradeFailed(error instanceof Error ? error.message : String(error), { cause: error });
}

function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted');
}
