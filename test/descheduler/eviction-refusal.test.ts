import { describe, expect, test } from 'vitest';
import {
  evictionRefusal,
  heldByHost,
  isOfOnePod,
  mayBeDone,
  whyNotLetGo,
} from '../../src/descheduler/eviction-refusal.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import { asStatus } from '../../src/kube/status.ts';
import {
  AGAINST_BUDGET,
  DENIED_BY_POLICY,
  DENIED_BY_WEBHOOK,
  MANY_BUDGETS,
  MAY_NOT_READ,
  NO_RIGHT,
  TOO_BUSY,
  WEBHOOK_DOWN,
} from '../fixtures/eviction-refusals.ts';
import type { Fault } from '../fixtures/memory-api.ts';

const where = { cluster: 'host', method: 'POST', path: '/api/v1/namespaces/shop/pods/web-1/eviction' };

/** As it is read from the answer. */
function refusal(fault: Fault): ApiError {
  if (typeof fault === 'string') throw new Error('no answer');
  const status = asStatus({ kind: 'Status', ...fault }) ?? { kind: 'Status' };
  return new ApiError({ ...where, code: fault.code, status });
}

function answer(code: number, message: string, reason = ''): ApiError {
  return refusal({ code, reason, message });
}

const silence = new TransportError({ ...where, kind: 'timeout', detail: 'no answer in time' });
const conflicts = `couldn't update PodDisruptionBudget "web" due to conflicts`;
const otherUid = 'Pod "web-1" is invalid: metadata.uid: Invalid value: "b": field is immutable';

describe('what the host means that does not let a pod go', () => {
  test.each([
    ['its budget', refusal(AGAINST_BUDGET), 'budget', false],
    ['several budgets', refusal(MANY_BUDGETS), 'manyBudgets', false],
    ['a server with too much to do', refusal(TOO_BUSY), 'fails', false],
    ['no right to evict', refusal(NO_RIGHT), 'noRight', false],
    ['no right to read', refusal(MAY_NOT_READ), 'noRight', false],
    ['an admission policy', refusal(DENIED_BY_POLICY), 'denied', false],
    ['a webhook', refusal(DENIED_BY_WEBHOOK), 'denied', false],
    ['a webhook, by a code of its own', answer(500, 'admission webhook "a" denied the request: no'), 'denied', false],
    ['a webhook, by the code of budgets', answer(429, 'admission webhook "a" denied the request: no'), 'denied', false],
    ['too many evictions in work', answer(403, 'DisruptedPods map too big', 'Forbidden'), 'denied', false],
    ['a proxy', answer(403, ''), 'denied', false],
    ['a webhook that makes no sense', answer(400, 'malformed response'), 'denied', false],
    ['a webhook that is down', refusal(WEBHOOK_DOWN), 'fails', false],
    ['a server that failed meanwhile', answer(500, 'etcdserver: request timed out'), 'fails', true],
    ['a budget that is written all the time', answer(504, conflicts, 'Timeout'), 'fails', true],
    ['another version', answer(409, 'the object has been modified', 'Conflict'), 'changed', false],
    ['another pod', answer(422, otherUid, 'Invalid'), 'changed', false],
    ['gone', answer(404, 'pods "web-1" not found', 'NotFound'), 'changed', false],
    ['it does not know us', answer(401, 'Unauthorized', 'Unauthorized'), 'unheard', false],
    [
      'a webhook, by the code of who is not known',
      answer(401, 'admission webhook "a" denied the request'),
      'denied',
      false,
    ],
    [
      'a webhook, by the code of another version',
      answer(409, 'admission webhook "a" denied the request: no'),
      'denied',
      false,
    ],
    [
      'a webhook, by the code of one that is gone',
      answer(404, 'admission webhook "a" denied the request: no', 'NotFound'),
      'denied',
      false,
    ],
    ['no answer in time', silence, 'fails', true],
    ['a connection that broke', new TransportError({ ...where, kind: 'reset', detail: 'it broke' }), 'fails', true],
    [
      'an answer that makes no sense',
      new TransportError({ ...where, kind: 'malformed', detail: 'HTML' }),
      'fails',
      true,
    ],
    ['nobody there', new TransportError({ ...where, kind: 'refused', detail: 'ECONNREFUSED' }), 'unheard', true],
    ['something else', new Error('a bug'), 'unheard', true],
  ])('%s', (_, error, means, done) => {
    expect([evictionRefusal(error), mayBeDone(error)]).toEqual([means, done]);
  });
});

test('a pod that cannot be read speaks for itself, unless the host does not serve at all', () => {
  const codes = [400, 403, 404, 408, 413, 422, 500];
  expect(codes.map((code) => isOfOnePod(answer(code, '')))).toEqual(codes.map(() => true));
  const all = [401, 429, 502, 503, 504];
  expect(all.map((code) => isOfOnePod(answer(code, '')))).toEqual(all.map(() => false));
  const nobody = new TransportError({ ...where, kind: 'refused', detail: 'ECONNREFUSED' });
  expect([silence, nobody, new Error('a bug')].map(isOfOnePod)).toEqual([true, false, false]);
});

test('the words of the host stand in parentheses, where they may change, and those of a budget say what helps', () => {
  const pod = { metadata: { name: 'web-1' }, spec: { containers: [] } };
  const ready: Pod = { ...pod, status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  expect(heldByHost('denied', refusal(DENIED_BY_WEBHOOK), ready)).toEqual({
    why: 'the host does not let it go (cluster host: admission webhook "guard.example.com" denied the request: it is kept (403 Forbidden))',
    forMs: 15_000,
    ofWorkload: 'perhaps',
  });
  expect(whyNotLetGo('fails', refusal(TOO_BUSY))).toBe(
    'the host fails to let it go (cluster host: Too many requests, please try again later. (429 TooManyRequests, transient))',
  );
  // It may be done: not again before the caches must show that.
  expect(heldByHost('fails', silence, ready)).toMatchObject({ forMs: 60_000, ofWorkload: 'perhaps' });
  expect(heldByHost('budget', refusal(AGAINST_BUDGET), ready)).toMatchObject({
    why: 'its disruption budget allows no eviction now',
    forMs: 5_000,
  });
  expect(heldByHost('budget', refusal(AGAINST_BUDGET), pod).why).toMatch(
    / now \(the pod is not Ready, so .*AlwaysAllow/,
  );
  expect(heldByHost('manyBudgets', refusal(MANY_BUDGETS), pod)).toMatchObject({ forMs: 60_000, ofWorkload: true });
});
