import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { childSignal } from '../kube/child-signal.ts';
import { cleanText } from '../kube/clean-text.ts';
import { ApiError, describeError } from '../kube/errors.ts';
import type { Framing } from '../kube/framed-stream.ts';
import { PODS, resourcePath } from '../kube/resource.ts';
import type { Answer } from './http-answer.ts';
import { sendAnswer, textAnswer } from './http-answer.ts';
import { relayFramed } from './framed-relay.ts';
import { logOptions } from './log-options.ts';

import type { LogsRoute } from './routes.ts';

/** What reading logs needs of a member's client. */
export interface LogSource {
  readonly cluster: string;
  stream(request: {
    path: string;
    query: Record<string, string>;
    accept: string;
    signal: AbortSignal;
    framed: boolean;
  }): Promise<{ body: Readable; framing?: Framing | undefined }>;
}

/**
 * Streams a container's log from the member, each piece as it comes, no faster than the caller reads. A caller who
 * leaves ends the member's stream; a member's stream that breaks breaks the answer too, so that a cut log never looks
 * like a whole one. Resolves when the answer is over; never rejects. `signal`: cut it now.
 */
export async function serveLogs(o: {
  response: ServerResponse;
  route: LogsRoute;
  member: LogSource;
  pod: { readonly namespace: string; readonly name: string };
  signal: AbortSignal;
}): Promise<void> {
  const { response, route, member, pod } = o;
  const options = logOptions(route.query);
  if (!('query' in options)) {
    sendAnswer(response, textAnswer(options.code, options.text));
    return;
  }
  const left = childSignal(o.signal);
  response.once('close', () => {
    left.abort();
    left.release();
  });
  const { signal } = left;
  let body: Readable;
  let framing: Framing | undefined;
  try {
    const answer = await member.stream({
      path: resourcePath(PODS, pod.namespace, pod.name, 'log'),
      query: { container: route.container, ...options.query },
      accept: '*/*',
      signal,
      framed: response.req.httpVersion === '1.1',
    });
    ({ body, framing } = answer);
  } catch (error) {
    if (!response.destroyed) {
      sendAnswer(response, logFailure(member.cluster, error));
    }
    return;
  }
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  if (framing !== undefined) {
    await relayFramed(response, body, framing);
    return;
  }
  // The kubelet starts the answer before the first line too, so that a quiet follow is seen to be open.
  response.flushHeaders();
  try {
    await pipeline(body, response, { signal });
  } catch {
    // pipeline has destroyed both sides; the caller sees a broken answer, which is what it is.
  }
}

const INTERNAL_PREFIX = 'Internal error occurred: ';

/** Of what a member says about a log, in bytes. */
const LONGEST_WORDS = 2_048;

/**
 * A member's refusal in the form that makes the host's API server say the same as the member's did: it builds the
 * user's message from our status and text, and for most codes drops the text (LocationStreamer's response checker).
 */
function logFailure(cluster: string, error: unknown): Answer {
  if (error instanceof ApiError && error.code !== 401) {
    const words = cleanText(error.status.message ?? describeError(error), LONGEST_WORDS);
    return textAnswer(error.code, words.startsWith(INTERNAL_PREFIX) ? words.slice(INTERNAL_PREFIX.length) : words);
  }
  const words =
    error instanceof ApiError
      ? `cluster ${cluster} refused the credentials of its MemberCluster (401); ` +
        'logs work again when the Secret that it refers to holds valid ones'
      : `the log could not be read in the member cluster (${describeError(error)}); ` +
        'the pod is not touched, try again in a moment';
  // 500 and not 503: of a 503 the API server passes on no text at all.
  return textAnswer(500, words);
}
