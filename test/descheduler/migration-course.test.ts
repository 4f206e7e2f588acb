import { expect, test } from 'vitest';
import type { MigratedWorkload } from '../../src/api/workload-migration.ts';
import { type Course, givenUp, progressInWords } from '../../src/descheduler/migration-course.ts';

const entry = (name: string): MigratedWorkload => ({
  workload: { apiVersion: 'apps/v1', kind: 'Deployment', name },
  pods: 2,
  waiting: 2,
  moving: 0,
  moved: 0,
  reason: 'Moving',
});
const workloads = ['a', 'b', 'c', 'd', 'e'].map(entry);
const course: Course = {
  workloads,
  held: new Map(workloads.map((one) => [one, 'its budget'])),
  unplaced: 0,
  missing: 0,
  isComing: false,
  rests: false,
};

test('a condition names three workloads that are held, and counts the others', () => {
  expect(progressInWords(course, 'east', undefined)).toBe(
    'in member east: 10 pods still there, and 0 on the way; not moved now: deployment/a: its budget; deployment/b: its budget; deployment/c: its budget; and pods of 2 other workloads',
  );
});

test('which cluster does not answer says enough', () => {
  expect(progressInWords(course, 'east', 'member west: it does not answer')).toBe(
    'in member east: 10 pods still there, and 0 on the way; member west: it does not answer',
  );
});

test('what is given up says what held it last, where that is known', () => {
  const [a = entry('a'), b = entry('b')] = workloads;
  const of = { ...course, workloads: [a, b], held: new Map([[a, 'its budget']]) };
  expect(givenUp(of, 'too long').map(({ reason, message }) => [reason, message])).toEqual([
    ['PodsStay', 'too long; at last: its budget'],
    ['PodsStay', 'too long'],
  ]);
});
