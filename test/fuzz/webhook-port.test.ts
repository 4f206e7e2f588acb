import fc from 'fast-check';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { parseReview } from '../../src/admission/admission-review.ts';
import { admissionMetrics } from '../../src/admission/metrics.ts';
import { WebhookServer } from '../../src/admission/webhook-server.ts';
import { VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import { isSystemNamespace } from '../../src/api/namespace-mapping.ts';
import { stringifyJson } from '../../src/kube/json.ts';
import { type Keys, makeKeys } from '../kubelet/harness.ts';
import { fuzz } from './fuzz.ts';
import { changed, text } from './inputs.ts';
import { method } from './kubelet-urls.ts';
import { sendRaw } from './raw-caller.ts';

/** The most that a review may have. */
const LARGEST_BYTES = 4 * 1024 * 1024;

const pod = { metadata: { name: 'web', labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'i' }] } };
const reviewOf = (request: object): object => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', namespace: 'shop', object: pod, ...request },
});
const reviews = [{}, {}, { namespace: 'kube-system' }, { operation: 'UPDATE' }].map(reviewOf);

interface Sent {
  readonly who: 'server' | 'stranger';
  readonly method: string;
  readonly path: string;
  /** How long the body is said to be: as long as it is, a number, nothing, or in chunks. */
  readonly said: 'exactly' | number | 'nothing' | 'chunked';
  readonly headers: readonly string[];
  readonly body: string;
}

const input: fc.Arbitrary<Sent> = fc.record({
  who: fc.constantFrom(...Array<'server'>(9).fill('server'), 'stranger' as const),
  method: fc.oneof({ weight: 9, arbitrary: fc.constant('POST') }, { weight: 1, arbitrary: method }),
  path: fc.constantFrom('/pods/bursting', '/pods/bursting', '/pods/asking', '/pods/asking', '/pods', '//pods/asking'),
  said: fc.constantFrom<Sent['said']>(
    ...Array<'exactly'>(24).fill('exactly'),
    'nothing',
    'chunked',
    1,
    LARGEST_BYTES - 1,
    LARGEST_BYTES + 1,
    9_999_999_999,
  ),
  headers: fc.array(
    fc.oneof(
      fc.constantFrom('Content-Encoding: gzip', 'Content-Type: text/html', 'Connection: close'),
      fc.string({ maxLength: 500 }).map((value) => `X-Any: ${value}`),
    ),
    { maxLength: 1 },
  ),
  body: fc.oneof(
    { weight: 9, arbitrary: changed(...reviews).map((review) => stringifyJson(review)) },
    { weight: 1, arbitrary: text },
  ),
});

/** More than fits at once, one after the other: each is over before the next. */
const halves = Array.from({ length: 10 }, (): Sent => ({
  who: 'server',
  method: 'POST',
  path: '/pods/asking',
  said: LARGEST_BYTES - 1,
  headers: [],
  body: '{',
}));

/** What came of what was sent. */
const seen = { unchanged: 0, changed: 0, refused: 0, unknown: 0 };

let keys: Keys;
let server: WebhookServer;
let port: number;
beforeAll(async () => {
  keys = await makeKeys();
  server = new WebhookServer({
    address: '127.0.0.1',
    port: 0,
    certificate: () => keys.serving,
    clientCa: () => keys.authority.cert,
    settings: {
      schedulerName: undefined,
      isVirtualNode: () => false,
      splitConstraints: false,
      outages: { toleration: 'Forever', admissionSeconds: 300 },
    },
    metrics: admissionMetrics(new Registry()),
    logger: pino({ level: 'silent' }),
  });
  ({ port } = await server.listen());
});
afterAll(() => server?.close(0));

function bytesOf({ method, path, said, headers, body }: Sent): Buffer {
  const bytes = Buffer.from(body);
  const length = said === 'exactly' ? bytes.length : said;
  const framing =
    length === 'nothing' ? [] : [length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`];
  const head = [`${method} ${path} HTTP/1.1`, 'Host: webhook', ...framing, ...headers].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), bytes]);
}

/** The changes that a review answers with. */
function patchIn(answer: string): { uid: unknown; patch: string } {
  const { response } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as {
    response: { uid: unknown; allowed: unknown; patch?: string };
  };
  expect(response.allowed).toBe(true);
  return { uid: response.uid, patch: Buffer.from(response.patch ?? '', 'base64').toString() };
}

describe('the port that API servers ask', () => {
  fuzz(
    'answers whole reviews of known servers, lets the pod through, and has pods run in members only where that was chosen',
    input,
    { share: 1_500, examples: halves },
    async (sent) => {
      const client = sent.who === 'server' ? keys.admin : undefined;
      // The rest of such a body never comes.
      const isHalf = typeof sent.said === 'number' && sent.said > Buffer.byteLength(sent.body);
      const hangsUp = isHalf && sent.said <= LARGEST_BYTES ? 'atOnce' : 'whenAnswered';
      const answer = await sendRaw({ port, keys, client, hangsUp }, [bytesOf(sent)]);
      if (sent.who === 'stranger') {
        expect(answer).toBeUndefined();
        seen.unknown += 1;
        return;
      }
      // One after the other they never come to what is too much, unless what is over goes on to count.
      expect(answer?.status).not.toBe(503);
      const isAsked = sent.method === 'POST' && ['/pods/bursting', '/pods/asking'].includes(sent.path);
      if (isAsked && (sent.said === 'nothing' || sent.said === 'chunked')) expect(answer?.status).toBe(411);
      if (isAsked && typeof sent.said === 'number' && sent.said > LARGEST_BYTES) expect(answer?.status).toBe(413);
      // Which methods there are is told everybody that is known.
      if (answer?.status !== 200 || sent.method === 'OPTIONS') {
        seen.refused += 1;
        return;
      }
      expect([isAsked, sent.said]).toEqual([true, 'exactly']);
      const review = parseReview(JSON.parse(sent.body));
      if ('problem' in review) throw new Error(`this was answered: ${review.problem}`);
      const { uid, operation, namespace = '', object } = review.request;
      const patched = patchIn(answer.text);
      expect(patched.uid).toBe(uid);
      seen[patched.patch === '' ? 'unchanged' : 'changed'] += 1;
      const wasChosen = sent.path === '/pods/bursting' || JSON.stringify(object).includes('spillway.dev');
      const mayLeave = wasChosen && operation === 'CREATE' && !isSystemNamespace(namespace);
      if (!mayLeave) expect(patched.patch).not.toContain(VIRTUAL_NODE_TAINT);
      if (operation !== 'CREATE') expect(patched.patch).toBe('');
    },
  );

  fuzz(
    'has changed some and let others be, so that the above says something',
    fc.constant(seen),
    { share: 1 },
    (all) => {
      const sent = all.changed + all.unchanged + all.refused + all.unknown;
      for (const times of Object.values(all)) expect(times).toBeGreaterThanOrEqual(Math.floor(sent / 40));
    },
  );

  fuzz('goes on as before', fc.constant(reviewOf({})), { share: 1 }, async (review) => {
    const body = JSON.stringify(review);
    const one: Sent = { who: 'server', method: 'POST', path: '/pods/bursting', said: 'exactly', headers: [], body };
    const answer = await sendRaw({ port, keys, client: keys.admin }, [bytesOf(one)]);
    expect(patchIn(answer?.text ?? '').patch).toContain(VIRTUAL_NODE_TAINT);
  });
});
