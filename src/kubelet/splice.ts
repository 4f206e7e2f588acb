import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { childSignal } from '../kube/child-signal.ts';
import { describeError } from '../kube/errors.ts';
import type { Answer } from './http-answer.ts';
import { statusAnswer, writeAnswer } from './http-answer.ts';
import type { RelayEnd, Traffic } from './relay.ts';
import { relay } from './relay.ts';
import { refusalHeaders, switchingHeaders } from './upgrade-headers.ts';
import type { StreamDialer, UpgradeOutcome } from './upstream-upgrade.ts';
import { requestUpgrade, UpgradeFailed } from './upstream-upgrade.ts';

/** From the caller's request to the member's answer; what runs after a 101 has no limit. */
const OPENING_MS = 30_000;

export interface SpliceResult {
  /** What the caller was answered; 0 when he left before. */
  readonly code: number;
  readonly result: RelayEnd | 'refused' | 'unreachable' | 'caller left';
}

/**
 * Joins the caller's connection with a new one to the member's API server, after sending it the same upgrade request.
 * Whatever is spoken then (SPDY, any WebSocket subprotocol, any version) passes as bytes. Resolves when both
 * connections are closed; never rejects. `signal`: cut everything now.
 */
export async function splice(o: {
  request: IncomingMessage;
  socket: Socket;
  head: Buffer;
  member: StreamDialer;
  path: string;
  traffic: Traffic;
  signal: AbortSignal;
}): Promise<SpliceResult> {
  const { request, socket, member } = o;
  const opening = childSignal(o.signal);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    opening.abort();
  }, OPENING_MS);
  const onClose = (): void => opening.abort();
  // Makes the socket read ahead a little, and its end known: that is how a caller's leaving is noticed meanwhile.
  const onReadable = (): void => {
    if (socket.readableLength === 0) {
      socket.read(0);
    }
  };
  socket.once('close', onClose);
  socket.on('readable', onReadable);
  let outcome: UpgradeOutcome;
  try {
    outcome = await requestUpgrade({
      member,
      method: request.method ?? 'GET',
      path: o.path,
      rawHeaders: request.rawHeaders,
      signal: opening.signal,
    });
  } catch (error) {
    if (socket.destroyed) {
      return { code: 0, result: 'caller left' };
    }
    const answer = unreachable(member.cluster, error, isLate);
    writeAnswer(socket, answer);
    return { code: answer.code, result: 'unreachable' };
  } finally {
    clearTimeout(timer);
    opening.release();
    socket.off('close', onClose);
    socket.off('readable', onReadable);
  }
  if (outcome.kind === 'refused') {
    const answer = refusal(member.cluster, outcome);
    writeAnswer(socket, answer);
    return { code: answer.code, result: 'refused' };
  }
  return { code: 101, result: await join(o, outcome) };
}

async function join(
  o: { socket: Socket; head: Buffer; traffic: Traffic; signal: AbortSignal },
  switched: Extract<UpgradeOutcome, { kind: 'switched' }>,
): Promise<RelayEnd> {
  const { socket } = o;
  if (socket.destroyed) {
    // He left after the answer was read: nobody else would close the new connection.
    switched.socket.destroy();
    return 'caller reset';
  }
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 15_000);
  const ended = relay(socket, switched.socket, o.traffic, o.signal);
  socket.write(switchingHead(switchingHeaders(switched.rawHeaders)), 'latin1');
  if (switched.head.length > 0) {
    o.traffic.fromMember += switched.head.length;
    socket.write(switched.head);
  }
  if (o.head.length > 0) {
    o.traffic.toMember += o.head.length;
    switched.socket.write(o.head);
  }
  return ended;
}

function switchingHead(headers: readonly string[]): string {
  let text = 'HTTP/1.1 101 Switching Protocols\r\n';
  for (let at = 0; at + 1 < headers.length; at += 2) {
    text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  }
  return `${text}\r\n`;
}

function unreachable(cluster: string, error: unknown, timedOut: boolean): Answer {
  const words = timedOut
    ? `cluster ${cluster}: no answer within ${OPENING_MS / 1000} s`
    : error instanceof UpgradeFailed
      ? `cluster ${cluster}: ${error.message}`
      : describeError(error);
  return statusAnswer(
    timedOut ? 504 : 503,
    `the stream could not be opened in the member cluster (${words}); the pod is not touched, try again in a moment`,
  );
}

/**
 * The member's own refusals go back as they are. Two kinds do not: an answer that is neither a switch nor a refusal
 * (a redirect above all), and a 401, which is about our credentials and would tell the caller that his are wrong.
 */
function refusal(cluster: string, refused: Extract<UpgradeOutcome, { kind: 'refused' }>): Answer {
  if (refused.code < 400 || refused.code > 599) {
    return statusAnswer(
      502,
      `cluster ${cluster} answered a stream request with ${refused.code}, which is not permitted`,
    );
  }
  if (refused.code === 401) {
    return statusAnswer(
      502,
      `cluster ${cluster} refused the credentials of its MemberCluster (401); ` +
        'streams work again when the Secret that it refers to holds valid ones',
    );
  }
  return {
    code: refused.code,
    contentType: refused.contentType,
    body: refused.body,
    headers: refusalHeaders(refused.rawHeaders),
  };
}
