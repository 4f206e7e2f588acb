import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { parseAnswer, refusal } from '../../src/kube/response-body.ts';
import { ChunkScanner } from '../../src/kube/chunk-scanner.ts';
import {
  type ApiError,
  describeError,
  isAnotherObject,
  isNotFound,
  isPermanent,
  isTransient,
  TransportError,
} from '../../src/kube/errors.ts';
import { stringifyJson } from '../../src/kube/json.ts';
import { readListPage } from '../../src/kube/list-page.ts';
import { PODS } from '../../src/kube/resource.ts';
import { retryDelayMs } from '../../src/kube/retry-policy.ts';
import { WatchDecoder, type WatchEvent } from '../../src/kube/watch-decoder.ts';
import { checkIdentified, hasInitialEventsEnd, resourceVersionOf, watchError } from '../../src/kube/watch-event.ts';
import { refusalOf } from '../../src/pods/member-refusal.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed, json, pieces, text } from './inputs.ts';

const WHERE = { cluster: 'east', method: 'GET', path: '/api/v1/pods' };
const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '7' } };
const LIST = { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '7', continue: '' }, items: [POD, POD] };
const STATUS = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: 'pods "p" is forbidden: exceeded quota',
  reason: 'Forbidden',
  details: { name: 'p', kind: 'pods', causes: [{ reason: 'x', message: 'y', field: 'z' }], retryAfterSeconds: 1 },
  code: 403,
};

describe('what a member answers', () => {
  fuzz('a list is one, or is refused', changed(LIST), { share: 2_000 }, (input) => {
    const page = throwsOnly([TransportError], () => readListPage(WHERE, PODS, input));
    for (const item of page?.items ?? []) {
      expect(item.kind).toBe('Pod');
      expect(typeof item.metadata.name).toBe('string');
    }
  });

  const EVENTS = [
    { type: 'ADDED', object: POD },
    {
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: '8', annotations: { 'k8s.io/initial-events-end': 'true' } } },
    },
    { type: 'ERROR', object: STATUS },
  ];
  const line = fc.oneof(changed(...EVENTS).map(stringifyJson), text, json.map(stringifyJson));
  const watch = fc
    .array(line, { maxLength: 4 })
    .map((lines) => Buffer.from(lines.join('\n') + '\n'))
    .chain((body) => fc.tuple(fc.constant(body), pieces(body)));
  const eventsIn = (parts: readonly Buffer[]): WatchEvent[] => {
    const events: WatchEvent[] = [];
    const decoder = new WatchDecoder();
    throwsOnly([SyntaxError], () => parts.forEach((part) => decoder.push(part, (event) => events.push(event))));
    return events;
  };
  fuzz('a watch says the same in whatever pieces it comes', watch, { share: 3_000 }, ([body, parts]) => {
    const events = eventsIn([body]);
    expect(eventsIn(parts)).toEqual(events);
    for (const { type, object } of events) {
      resourceVersionOf(object);
      hasInitialEventsEnd(object);
      if (type === 'ERROR') judge(watchError(WHERE, object));
      else throwsOnly([TransportError], () => checkIdentified(WHERE, PODS, object));
    }
  });

  /** Everything that looks at an error. */
  function judge(error: ApiError | TransportError): void {
    expect(typeof describeError(error)).toBe('string');
    expect(describeError(error).length).toBeLessThan(1_100);
    for (const question of [isNotFound, isPermanent, isTransient, isAnotherObject]) question(error);
    const hold = refusalOf(error, 'east');
    expect(hold.message.length).toBeLessThan(2_000);
    expect(hold.message).not.toMatch(/\p{Cc}/u);
    const delay = retryDelayMs({ error, attempt: 0, safe: true, remainingMs: 10_000, random: 0.5 });
    expect(delay === undefined || (delay >= 0 && delay <= 10_000)).toBe(true);
  }

  const headers = fc.record(
    { 'content-type': fc.constantFrom('application/json', 'text/plain', 'text/html'), 'retry-after': text },
    { requiredKeys: ['content-type'] },
  );
  const body = fc.oneof(changed(STATUS).map(stringifyJson), text);
  const refused = fc.tuple(fc.integer({ min: 199, max: 600 }), headers, body);
  fuzz('a refusal is told in words', refused, { share: 2_500 }, ([code, headers, body]) => {
    judge(refusal(WHERE, code, headers, Buffer.from(body)));
  });

  fuzz('an answer is JSON or malformed', fc.oneof(text, json.map(stringifyJson)), { share: 500 }, (body) => {
    for (const managedFields of [true, false]) {
      throwsOnly([TransportError], () => parseAnswer(WHERE, Buffer.from(body), managedFields));
    }
  });

  const chunk = fc.oneof(
    text.map((data) => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`),
    fc.constantFrom('0\r\n\r\n', '0;x=y\r\na: b\r\n\r\n', '\r\n', 'ffffffffffff\r\n', '-1\r\n', '1\n', 'x'),
    text,
  );
  const chunked = fc
    .array(chunk, { maxLength: 5 })
    .map((chunks) => Buffer.from(chunks.join('')))
    .chain((body) => fc.tuple(fc.constant(body), pieces(body)));
  fuzz(
    'a log in chunks ends at the same place in whatever pieces it comes',
    chunked,
    { share: 2_000 },
    ([body, parts]) => {
      const read = (bodies: readonly Buffer[]): { done: boolean; data: string } => {
        let data = '';
        const scanner = new ChunkScanner((bytes) => (data += bytes.toString('latin1')));
        for (const one of bodies) scanner.feed(one);
        return { done: scanner.done, data };
      };
      expect(read(parts)).toEqual(read([body]));
    },
  );
});
