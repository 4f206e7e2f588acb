import type { ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** A whole answer, small enough to be held. */
export interface Answer {
  readonly code: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: readonly (readonly [string, string])[];
}

/** What a kubelet says in plain text; the API server shows it to the user word for word. */
export function textAnswer(code: number, text: string): Answer {
  return { code, contentType: 'text/plain; charset=utf-8', body: text };
}

const REASONS: ReadonlyMap<number, string> = new Map([
  [400, 'BadRequest'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [405, 'MethodNotAllowed'],
  [429, 'TooManyRequests'],
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
]);

/** A meta/v1 Status failure: clients that ask for a stream print its message. */
export function statusAnswer(code: number, message: string): Answer {
  const reason = REASONS.get(code);
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    ...(reason === undefined ? {} : { reason }),
    code,
  };
  return { code, contentType: 'application/json', body: JSON.stringify(status) };
}

/** Answers an ordinary request. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.code;
  for (const [name, value] of answer.headers ?? []) {
    response.setHeader(name, value);
  }
  response.setHeader('Content-Type', answer.contentType);
  response.setHeader('Content-Length', Buffer.byteLength(answer.body));
  response.setHeader('X-Content-Type-Options', 'nosniff');
  if (answer.code === 401) {
    response.setHeader('Connection', 'close');
  }
  response.end(answer.body);
}

/** How long a caller may take to read a refusal before the connection is dropped. */
const REFUSAL_MS = 10_000;

/** Answers a request whose connection has left HTTP parsing (it asked for an upgrade), and ends that connection. */
export function writeAnswer(socket: Socket, answer: Answer): void {
  const lines = [
    `HTTP/1.1 ${answer.code} ${STATUS_CODES[answer.code] ?? 'Unknown'}`,
    ...(answer.headers ?? []).map(([name, value]) => `${name}: ${value}`),
    `Content-Type: ${answer.contentType}`,
    `Content-Length: ${Buffer.byteLength(answer.body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  // HTTP's own timeouts no longer watch this connection, and its end is only seen by reading.
  const timer = setTimeout(() => socket.destroy(), REFUSAL_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  socket.end(answer.body);
}
