import { expect, it } from 'vitest';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import { ReadTrouble } from '../../src/kube/read-trouble.ts';

const where = { cluster: 'east', method: 'GET', path: '/api/v1/services' };
const answer = (code: number, message: string): ApiError =>
  new ApiError({ ...where, code, status: { kind: 'Status', message } });
const refused = answer(403, 'services is forbidden: User "spillway" cannot list');
const malformed = new TransportError({ ...where, kind: 'malformed', detail: 'no list' });

function troubled(): { trouble: ReadTrouble; pass: (seconds: number) => void } {
  let now = 0;
  return { trouble: new ReadTrouble(() => now), pass: (seconds) => (now += seconds * 1000) };
}

it.each([refused, malformed])(
  'a refusal is told at once, and lasts when nothing was read for two minutes: %s',
  (error) => {
    const { trouble, pass } = troubled();
    trouble.note(error, false);
    expect([trouble.problem, trouble.lastingRefusal]).toEqual([expect.any(String), undefined]);
    pass(119);
    trouble.note(error, false);
    expect(trouble.lastingRefusal).toBeUndefined();
    pass(1);
    expect(trouble.lastingRefusal).toBe(trouble.problem);
    trouble.over();
    trouble.note(error, false);
    expect(trouble.lastingRefusal).toBeUndefined();
  },
);

it.each([answer(503, 'no leader'), new TransportError({ ...where, kind: 'timeout', detail: 'no answer' })])(
  'an outage is no refusal, however long, and one that came before it begins anew: %s',
  (error) => {
    const { trouble, pass } = troubled();
    trouble.note(refused, false);
    pass(100);
    trouble.note(error, false);
    pass(600);
    expect([trouble.problem, trouble.lastingRefusal]).toEqual([expect.any(String), undefined]);
    trouble.note(refused, false);
    expect(trouble.lastingRefusal).toBeUndefined();
    pass(120);
    expect(trouble.lastingRefusal).toContain('is forbidden');
  },
);

it('what passes by itself is told nowhere', () => {
  const { trouble, pass } = troubled();
  expect(trouble.note(refused, true)).toContain('is forbidden');
  pass(600);
  expect([trouble.problem, trouble.lastingRefusal]).toEqual([undefined, undefined]);
});
