import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReportPace } from '../../src/nodes/report-pace.ts';

/** Least time between two reports of one node, in ms. */
const COALESCE_MS = 2_000;
/** The steps of the model, in ms. */
const STEP_MS = 50;

interface Busy {
  readonly changesEveryMs: number;
  readonly from: number;
}

/** When each node was reported, in ms; `waited`: the longest that one that had something to tell was kept from it. */
function reports(nodes: readonly Busy[], forMs: number): { at: number[]; waited: number; each: number[] } {
  let now = 0;
  const pace = new ReportPace(() => now);
  const states = nodes.map(() => ({
    dueAt: 0,
    restsUntil: 0,
    since: undefined as number | undefined,
    changedAt: -Infinity,
  }));
  const at: number[] = [];
  const each = nodes.map(() => 0);
  let waited = 0;
  for (; now < forMs; now += STEP_MS) {
    for (const [index, { changesEveryMs, from }] of nodes.entries()) {
      const state = states[index];
      if (state === undefined || now < from) continue;
      if (now - state.changedAt >= changesEveryMs) {
        state.changedAt = now;
        state.since ??= now;
      }
      if (state.since === undefined) continue;
      waited = Math.max(waited, now - state.since);
      if (now < state.dueAt || now < state.restsUntil) continue;
      state.dueAt = now + COALESCE_MS;
      state.restsUntil = pace.wrote();
      state.since = undefined;
      at.push(now);
      each[index] = (each[index] ?? 0) + 1;
    }
  }
  return { at, waited, each };
}

const busy = fc.record({
  changesEveryMs: fc.constantFrom(STEP_MS, STEP_MS, 1_000, 10_000, 60_000),
  from: fc.constantFrom(0, 0, 10_000, 30_000),
});

test('however many nodes change however often, in any time they report no more than the rate says, and each comes to it', () => {
  fc.assert(
    fc.property(fc.array(busy, { minLength: 1, maxLength: 150, size: 'max' }), (nodes) => {
      const { at, waited, each } = reports(nodes, 60_000);
      for (const [first, from] of at.entries()) {
        for (const seconds of [1, 5, 20, 60]) {
          const within = at.slice(first).filter((time) => time < from + seconds * 1_000).length;
          expect(within).toBeLessThanOrEqual(nodes.length + 20 + 10 * seconds);
        }
      }
      expect(waited).toBeLessThanOrEqual(Math.max(COALESCE_MS, nodes.length * 100) + COALESCE_MS);
      expect(Math.min(...each)).toBeGreaterThan(0);
    }),
    { numRuns: 30, endOnFailure: true },
  );
});

test('a hundred small members that are busy all the time cost ten writes a second, and each is reported every ten seconds', () => {
  const nodes = Array.from({ length: 100 }, (): Busy => ({ changesEveryMs: STEP_MS, from: 0 }));
  const { at, each } = reports(nodes, 600_000);
  expect(at.length).toBeLessThanOrEqual(100 + 20 + 10 * 600);
  expect(Math.min(...each)).toBeGreaterThanOrEqual(55);
});

test('twenty that are busy do not wait, nor does one that was quiet beside a hundred', () => {
  const many = (count: number): Busy[] => Array.from({ length: count }, () => ({ changesEveryMs: STEP_MS, from: 0 }));
  expect(reports(many(20), 600_000).waited).toBeLessThanOrEqual(COALESCE_MS);
  const quiet = { changesEveryMs: 60_000, from: 30_000 };
  const alone = reports([quiet], 600_000).at;
  const { each } = reports([...many(100), quiet], 600_000);
  expect(each.at(-1)).toBe(alone.length);
});
