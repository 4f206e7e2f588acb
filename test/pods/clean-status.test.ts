import { expect, it } from 'vitest';
import { cleanStatus } from '../../src/pods/clean-status.ts';
import { hostStatus } from '../../src/pods/host-status.ts';
import { hostPod, memberPod, running } from '../fixtures/pods.ts';

const EVIL = `\u001b[2J\u001b[31mall is well\u0007\r\u202e`;
const WORDS = '[2J[31mall is well';
const LONG = 'é'.repeat(100_000);

it('what people read of a member’s status is cut and cleaned, wherever it stands, and nothing else is changed', () => {
  const dead = { exitCode: 1, reason: EVIL, message: `${EVIL}\n\tat line 2`, containerID: EVIL };
  const status = {
    phase: 'Running',
    reason: EVIL,
    message: LONG,
    conditions: [{ type: 'Ready', status: 'False', reason: LONG, message: EVIL, lastTransitionTime: 'now' }],
    containerStatuses: [
      { ...running('app'), state: { terminated: dead } },
      { ...running('b'), lastState: { waiting: { reason: 'CrashLoopBackOff', message: EVIL } } },
    ],
    future: { deep: [{ message: EVIL, other: EVIL }] },
  };
  const before = structuredClone(status);
  const cleaned = cleanStatus(status as never) as unknown as typeof status;
  expect(cleaned).toMatchObject({ phase: 'Running', reason: WORDS });
  expect(Buffer.byteLength(cleaned.message)).toBeLessThanOrEqual(4_096);
  expect(cleaned.message).toMatch(/^é+…$/);
  expect(Buffer.byteLength(cleaned.conditions[0]?.reason ?? '')).toBeLessThanOrEqual(256);
  expect(cleaned.conditions[0]?.message).toBe(WORDS);
  // The last words of a container may have several lines.
  const terminated = { ...dead, reason: WORDS, message: `${WORDS}\n\tat line 2` };
  expect(cleaned.containerStatuses[0]?.state).toEqual({ terminated });
  expect(cleaned.future).toEqual({ deep: [{ message: WORDS, other: EVIL }] });
  expect(status).toEqual(before);
});

it('an ordinary status stays the very same object, and so does one of any depth', () => {
  const ended = { state: { terminated: { exitCode: 0, message: 'line 1\n\tline 2\n', reason: 'Completed' } } };
  const status = { phase: 'Running', containerStatuses: [{ ...running('app'), ...ended }] };
  expect(cleanStatus(status as never)).toBe(status);
  let deep: object = { message: EVIL };
  for (let depth = 0; depth < 50_000; depth += 1) deep = { deep };
  expect(cleanStatus(deep as never)).toBe(deep);
});

it('host pods are shown the cleaned words', () => {
  const status = { phase: 'Failed', reason: EVIL, message: EVIL, containerStatuses: [running('app')] };
  const shown = hostStatus(
    hostPod(),
    memberPod({ status: status as never }),
    { member: 'east', network: 'Flat', inSync: true },
    '2026-01-01T00:00:00Z',
  );
  expect(shown).toMatchObject({ reason: WORDS, message: WORDS });
});
