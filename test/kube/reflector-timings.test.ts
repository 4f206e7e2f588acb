import { expect, it } from 'vitest';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import { countFailure, DEFAULT_TIMINGS, retryMs } from '../../src/kube/reflector-timings.ts';

const where = { cluster: 'east', method: 'GET', path: '/api/v1/pods' };
const answer = (code: number, retryAfterMs?: number): ApiError =>
  new ApiError({ ...where, code, status: { kind: 'Status', reason: 'Reason' }, retryAfterMs });
const broken = (kind: 'refused' | 'malformed'): TransportError => new TransportError({ ...where, kind, detail: kind });
const timings = { ...DEFAULT_TIMINGS, backoffMaxMs: 60_000 };

/** Shortest and longest wait after all of these errors in a row, in ms. */
function waitAfter(errors: readonly unknown[]): number[] {
  const failures = errors.reduce<number>(countFailure, 0);
  const state = { error: errors.at(-1), failures, isForgotten: false, isInDoubt: false };
  return [0, 1].map((random) => retryMs(timings, state, () => random));
}

const often = <T>(error: T): T[] => Array<T>(50).fill(error);

it.each([broken('refused'), answer(503), answer(429)])(
  'waits some seconds, never all alike, in an outage: %s',
  (error) => {
    expect(waitAfter(often(error))).toEqual([2_000, 6_000]);
  },
);

it.each([answer(403), answer(404), answer(401), broken('malformed')])(
  'tries rarely where that may last: %s',
  (error) => {
    expect(waitAfter(often(error))).toEqual([30_000, 90_000]);
  },
);

it('counts a refusal after an outage as one of the first', () => {
  expect(waitAfter([...often(broken('refused')), answer(403)])).toEqual([4_000, 12_000]);
});

it('waits as long as a server asks in an outage, and a little longer, so that not all come at once', () => {
  expect(waitAfter(often(answer(429, 20_000)))).toEqual([20_000, 22_000]);
});
