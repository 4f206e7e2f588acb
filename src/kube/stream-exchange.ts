import { request, type IncomingMessage } from 'node:http';
import type { Outgoing } from './exchange.ts';
import { askOrDestroy, dialServer, type Route } from './dial.ts';

/**
 * One request on a connection of its own, through Node's own HTTP client, up to the start of the answer: its body is a
 * stream that the reader's pace holds back. undici's parser is not used for this: it re-reads everything that waits
 * each time a slow reader resumes, which makes a large log slower and larger in memory the more of it waits. Rejects with
 * the socket's own error, or the signal's reason. The signal also cuts the body.
 * `beforeSend` is called when the connection is there; what it throws keeps the request back.
 */
export async function openStream(
  route: Route,
  outgoing: Outgoing,
  signal: AbortSignal,
  beforeSend?: () => void,
): Promise<IncomingMessage> {
  const socket = await dialServer(route, signal);
  askOrDestroy(socket, beforeSend);
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({
      createConnection: () => socket,
      method: outgoing.method,
      path: outgoing.path,
      headers: [
        'host',
        new URL(route.origin).host,
        'connection',
        'close',
        ...outgoing.headers,
        ...lengthOf(outgoing.body),
      ],
    });
    const onAbort = (): void => {
      sent.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    sent.once('close', () => signal.removeEventListener('abort', onAbort));
    // Stays: errors after the answer has begun also reach the body, where they belong.
    sent.on('error', reject);
    sent.once('response', resolve);
    sent.end(outgoing.body ?? undefined);
    if (signal.aborted) onAbort();
  });
}

function lengthOf(body: Outgoing['body']): string[] {
  return body === null ? [] : ['content-length', String(Buffer.byteLength(body))];
}
