import { expect, test } from 'vitest';
import { isActive, isFinished } from '../../src/api/pod-phase.ts';

const metadata = { name: 'web-0' };
const leaving = { name: 'web-0', deletionTimestamp: '2026-01-01T00:00:00Z' };

test('a pod is active while it is neither finished nor being deleted', () => {
  expect(isActive({ metadata })).toBe(true);
  expect(isActive({ metadata, status: { phase: 'Running' } })).toBe(true);
  expect(isActive({ metadata: leaving, status: { phase: 'Running' } })).toBe(false);
  for (const phase of ['Succeeded', 'Failed'] as const) {
    expect([isFinished({ status: { phase } }), isActive({ metadata, status: { phase } })]).toEqual([true, false]);
  }
});
