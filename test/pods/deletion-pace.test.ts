import { expect, it } from 'vitest';
import { type Deletion, type SentDeletion, waitOf, withAnswer } from '../../src/pods/deletion-pace.ts';

const DELETION: Deletion = { uid: 'member-uid', says: 'deleting', gracePeriodSeconds: 30 };

/** The waits, in seconds, after each of so many DELETEs that are sent as soon as they may be. */
function waits(times: number, accepted: boolean): number[] {
  let sent: SentDeletion | undefined;
  let at = 0;
  return Array.from({ length: times }, () => {
    sent = withAnswer(DELETION, sent, { accepted, at });
    const waitMs = waitOf(DELETION, sent, at);
    at += waitMs;
    return waitMs / 1000;
  });
}

it('repeats what was accepted and not carried out ever more seldom, from 30 s up to 10 min', () => {
  expect(waits(7, true)).toEqual([30, 60, 120, 240, 480, 600, 600]);
});

it('repeats what the member has no copy for ever more seldom, up to a minute', () => {
  expect(waits(8, false)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
});

it.each<[string, Partial<Deletion>]>([
  ['another copy', { uid: 'next' }],
  ['another grace', { gracePeriodSeconds: 0 }],
  ['another reason', { says: 'deletion-watched' }],
])('%s waits for nothing, and begins anew', (_, other) => {
  let sent: SentDeletion | undefined;
  for (let n = 0; n < 5; n++) sent = withAnswer(DELETION, sent, { accepted: true, at: 0 });
  const deletion = { ...DELETION, ...other };
  expect([waitOf(DELETION, sent, 0), waitOf(deletion, sent, 0)]).toEqual([480_000, 0]);
  expect(waitOf(deletion, withAnswer(deletion, sent, { accepted: true, at: 0 }), 0)).toBe(30_000);
});

it('an answer of the other kind does not make it forget what was accepted', () => {
  const accepted = withAnswer(DELETION, undefined, { accepted: true, at: 0 });
  const vain = withAnswer(DELETION, accepted, { accepted: false, at: 30_000 });
  expect([waitOf(DELETION, vain, 30_000), vain.accepted]).toEqual([1000, 1]);
  const again = withAnswer(DELETION, vain, { accepted: true, at: 31_000 });
  expect([waitOf(DELETION, again, 31_000), again.vain]).toEqual([60_000, 0]);
});
