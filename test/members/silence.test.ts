import { expect, it } from 'vitest';
import { Silence } from '../../src/members/silence.ts';

const MOST_MS = 15_000;

it('a member is silent from the first probe that it does not answer to the last one, and one answer ends that', () => {
  const silence = new Silence();
  const after = (answered: boolean, atMs: number): number => {
    silence.probed(answered, atMs, MOST_MS);
    return silence.ms;
  };
  expect(silence.ms).toBe(0);
  expect([after(true, 1_000), after(false, 11_000), after(false, 21_000), after(false, 31_000)]).toEqual([
    0, 0, 10_000, 20_000,
  ]);
  expect([after(true, 41_000), after(false, 51_000), after(false, 61_000)]).toEqual([0, 0, 10_000]);
});

it('time in which this process stood still says nothing of the member', () => {
  const silence = new Silence();
  for (const atMs of [0, 10_000, 1_000_000, 1_010_000]) silence.probed(false, atMs, MOST_MS);
  expect(silence.ms).toBe(35_000);
});
