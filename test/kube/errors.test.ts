import { describe, expect, it } from 'vitest';
import {
  ApiError,
  CredentialsError,
  describeError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isNotFound,
  isPermanent,
  isTransient,
  isUnauthorized,
  isUnknownPath,
  TransportError,
} from '../../src/kube/errors.ts';
import { retryAfterMs, retryDelayMs } from '../../src/kube/retry-policy.ts';
import { asStatus } from '../../src/kube/status.ts';
import { transportError } from '../../src/kube/transport-failure.ts';

const where = { cluster: 'west', method: 'GET', path: '/api/v1/pods' };

function apiError(code: number, reason: string, message = 'no', retryAfterMs?: number): ApiError {
  return new ApiError({ ...where, code, status: { kind: 'Status', reason, message }, retryAfterMs });
}

function broken(kind: TransportError['kind']): TransportError {
  return new TransportError({ ...where, kind, detail: 'broken' });
}

describe('errors', () => {
  it('are told apart by code and reason', () => {
    const checks = { isNotFound, isAlreadyExists, isConflict, isGone, isForbidden, isUnauthorized, isUnknownPath };
    const names = (error: unknown): string[] =>
      Object.entries(checks)
        .filter(([, check]) => check(error))
        .map(([name]) => name);
    expect(names(apiError(404, 'NotFound'))).toEqual(['isNotFound']);
    // Neither of a proxy in between, nor about a path that the API server does not know.
    expect(names(apiError(404, '', '404 page not found'))).toEqual(['isUnknownPath']);
    const unknownPath = apiError(404, 'NotFound', 'the server could not find the requested resource');
    expect(names(unknownPath)).toEqual(['isUnknownPath']);
    expect(names(apiError(409, 'AlreadyExists'))).toEqual(['isAlreadyExists']);
    expect(names(apiError(409, 'Conflict'))).toEqual(['isConflict']);
    expect(names(apiError(410, 'Expired'))).toEqual(['isGone']);
    expect(names(apiError(403, 'Forbidden'))).toEqual(['isForbidden']);
    expect(names(apiError(401, 'Unauthorized'))).toEqual(['isUnauthorized']);
    expect(names(new Error('404'))).toEqual([]);
  });

  it('may pass by themselves or not', () => {
    for (const error of [apiError(429, 'TooManyRequests'), apiError(500, 'InternalError'), apiError(504, 'Timeout')]) {
      expect(isTransient(error)).toBe(true);
    }
    for (const kind of ['timeout', 'refused', 'reset', 'dns', 'tls', 'malformed'] as const) {
      expect(isTransient(broken(kind))).toBe(true);
    }
    for (const error of [broken('aborted'), apiError(403, 'Forbidden'), apiError(422, 'Invalid'), new Error('bug')]) {
      expect(isTransient(error)).toBe(false);
    }
  });

  it('need somebody to change the object or not', () => {
    const permanent = [
      apiError(400, 'BadRequest'),
      apiError(413, 'RequestEntityTooLarge'),
      apiError(422, 'Invalid'),
      apiError(500, '', 'etcdserver: request is too large'),
      apiError(500, '', 'rpc error: trying to send message larger than max (2429142 vs. 2097152)'),
    ];
    for (const error of permanent) expect([isPermanent(error), isTransient(error)]).toEqual([true, false]);
    for (const error of [apiError(403, 'Forbidden'), apiError(500, 'InternalError'), broken('reset'), new Error('x')]) {
      expect(isPermanent(error)).toBe(false);
    }
  });

  it('are described in one line with the cluster and its own words', () => {
    expect(describeError(apiError(403, 'Forbidden', 'exceeded quota:\n  pods=5'))).toBe(
      'cluster west: exceeded quota: pods=5 (403 Forbidden)',
    );
    expect(describeError(apiError(503, ''))).toBe('cluster west: no (503, transient)');
    expect(describeError(broken('reset'))).toBe('cluster west: broken (transient)');
    expect(describeError(broken('aborted'))).toBe('cluster west: broken');
    expect(describeError(new CredentialsError('Reason', 'the words'))).toBe('the words');
    expect(describeError('x'.repeat(5_000)).length).toBeLessThan(1_100);
  });

  it('are described without what is hidden, however long it is and over however many lines', () => {
    const value = `${'x'.repeat(600)}\n\n${'y'.repeat(600)}`;
    const hide = (text: string): string => text.replaceAll(value, '(hidden)');
    expect(describeError(apiError(403, 'Forbidden', `not  "${value}"`), hide)).toBe(
      'cluster west: not "(hidden)" (403 Forbidden)',
    );
  });

  it('name what broke in a connection', () => {
    const coded = (code: string): TransportError => transportError(where, Object.assign(new Error('words'), { code }));
    expect(coded('ECONNREFUSED').kind).toBe('refused');
    expect(coded('EHOSTUNREACH').kind).toBe('refused');
    expect(coded('ECONNRESET').kind).toBe('reset');
    expect(coded('UND_ERR_SOCKET').kind).toBe('reset');
    expect(coded('ENOTFOUND').kind).toBe('dns');
    expect(coded('UND_ERR_CONNECT_TIMEOUT').kind).toBe('timeout');
    expect(coded('CERT_HAS_EXPIRED').kind).toBe('tls');
    expect(coded('DEPTH_ZERO_SELF_SIGNED_CERT').kind).toBe('tls');
    expect(coded('ERR_TLS_CERT_ALTNAME_INVALID').kind).toBe('tls');
    expect(coded('HPE_INVALID_CONSTANT').kind).toBe('malformed');
    expect(coded('ECONNREFUSED').detail).toBe('the API server cannot be reached: words (ECONNREFUSED)');
    const aggregate = new AggregateError([Object.assign(new Error('first'), { code: 'ECONNREFUSED' })]);
    expect(transportError(where, aggregate)).toMatchObject({ kind: 'refused' });
    expect(transportError(where, broken('dns')).kind).toBe('dns');
  });
});

describe('retries', () => {
  const decide = (error: unknown, o: Partial<Parameters<typeof retryDelayMs>[0]> = {}): number | undefined =>
    retryDelayMs({ error, attempt: 0, safe: true, remainingMs: 30_000, random: 0.5, ...o });

  it('wait longer each time and give up after three', () => {
    const error = broken('reset');
    expect([0, 1, 2, 3].map((attempt) => decide(error, { attempt }))).toEqual([100, 200, 400, undefined]);
    expect(decide(error, { random: 0 })).toBe(50);
  });

  it('happen for what may pass, only where repeating is safe', () => {
    expect(decide(apiError(503, ''))).toBeDefined();
    expect(decide(apiError(503, ''), { safe: false })).toBeUndefined();
    expect(decide(broken('reset'), { safe: false })).toBeUndefined();
    for (const error of [broken('aborted'), broken('tls'), apiError(404, ''), apiError(409, ''), new Error('bug')]) {
      expect(decide(error)).toBeUndefined();
    }
  });

  it('wait as long as the server says, for any request, inside the deadline', () => {
    const told = apiError(429, '', '', 2_000);
    expect(decide(told, { safe: false })).toBe(2_050);
    expect(decide(told, { safe: false, attempt: 9 })).toBe(2_050);
    expect(decide(told, { safe: false, attempt: 10 })).toBeUndefined();
    expect(decide(told, { remainingMs: 2_000 })).toBeUndefined();
    expect(decide(apiError(429, ''), { safe: false })).toBeUndefined();
    expect(decide(apiError(503, '', '', 5_000))).toBe(5_000);
  });

  it('read Retry-After as seconds or as a date', () => {
    const now = Date.parse('2026-11-20T10:00:00Z');
    expect(retryAfterMs('7', undefined, now)).toBe(7_000);
    expect(retryAfterMs('7', 3, now)).toBe(7_000);
    expect(retryAfterMs('Fri, 20 Nov 2026 10:00:05 GMT', undefined, now)).toBe(5_000);
    expect(retryAfterMs('Fri, 20 Nov 2026 09:00:00 GMT', undefined, now)).toBe(0);
    expect(retryAfterMs(undefined, 3, now)).toBe(3_000);
    for (const nothing of [undefined, '', 'soon']) {
      expect(retryAfterMs(nothing, undefined, now)).toBeUndefined();
    }
  });

  it('never make anybody wait for more than half a minute', () => {
    const now = Date.parse('2026-11-20T10:00:00Z');
    for (const header of ['3600', '99999999', '9'.repeat(400), 'Fri, 20 Nov 2099 10:00:00 GMT']) {
      expect(retryAfterMs(header, undefined, now)).toBe(30_000);
    }
    expect(retryAfterMs(undefined, 1e300, now)).toBe(30_000);
  });

  it('are described even when they are no errors and have no words', () => {
    for (const thrown of [{ toString: null }, Object.create(null), Symbol('x'), undefined]) {
      expect(describeError(thrown)).toMatch(/^something was thrown that is no error \(/);
    }
  });

  it('carry only what has its type, and show it in one clean line', () => {
    const hostile = asStatus({
      kind: 'Status',
      reason: { toString: null },
      message: `one\n\u001b[31mtwo\u202e${'x'.repeat(1e6)}`,
      code: '500',
      details: { retryAfterSeconds: 'soon' },
    });
    expect(hostile).toEqual({ kind: 'Status', message: expect.any(String) });
    const error = new ApiError({ ...where, code: 500, status: hostile ?? { kind: 'Status' } });
    expect([error.reason, error.status.message?.length]).toEqual(['', 16_384]);
    for (const text of [error.message, describeError(error)]) {
      expect(text).toContain('one [31mtwoxx');
      expect(text.length).toBeLessThan(1_100);
    }
    expect(asStatus({ kind: 'Status', reason: 'Not\u001bFound' })?.reason).toBeUndefined();
    expect(asStatus({ kind: 'Pod' })).toBeUndefined();
    expect(asStatus([{ kind: 'Status' }])).toBeUndefined();
  });
});
