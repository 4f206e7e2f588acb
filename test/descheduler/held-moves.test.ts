import { beforeEach, expect, test } from 'vitest';
import { Registry } from 'prom-client';
import { HeldMoves } from '../../src/descheduler/held-moves.ts';
import { migrationMove } from '../../src/descheduler/migration.ts';
import { movesMetrics } from '../../src/descheduler/moves-metrics.ts';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import { hostPod } from '../fixtures/pods.ts';

const pod = hostPod({ metadata: { name: 'a', namespace: 'shop', uid: 'u' } });
const migrated = migrationMove(pod, { from: 'east', to: 'west', by: 'shop/now' }, { recheck: () => undefined });
const tainted: WantedMove = { ...migrated, strategy: 'TaintNoExecute' };
let now: number;
let told: string[];
let held: HeldMoves;

beforeEach(() => {
  [now, told] = [0, []];
  held = new HeldMoves({
    events: { record: (_about, _type, _reason, message) => void told.push(message) },
    metrics: movesMetrics(new Registry()),
    monotonic: () => now,
  });
});

test('of the same cause the details are those of a minute ago at most, and no newer, so that a status does not change with each look', () => {
  held.record(migrated, 'moved too often (5 times)');
  held.record(migrated, 'moved too often (6 times)');
  expect([held.why(pod, 'Migrate'), told.length]).toEqual(['moved too often (5 times)', 1]);
  now += 60_000;
  held.record(migrated, 'moved too often (7 times)');
  expect([held.why(pod, 'Migrate'), told.length]).toEqual(['moved too often (7 times)', 1]);
  held.record(migrated, 'its budget');
  expect([held.why(pod, 'Migrate'), told.length]).toEqual(['its budget', 2]);
});

test('each strategy has its own reason; what held the pod last, for whichever of them, is known, too', () => {
  held.record(migrated, 'its budget');
  held.record(tainted, 'moved too often');
  expect([held.why(pod, 'Migrate'), held.why(pod, 'TaintNoExecute')]).toEqual(['its budget', 'moved too often']);
  expect([held.why(pod, 'Drain'), held.lastOf(pod)]).toEqual([undefined, 'moved too often']);
  held.forget(tainted);
  expect([held.why(pod, 'Migrate'), held.lastOf(pod)]).toEqual(['its budget', undefined]);
});

test('what is only kept for a status is told nobody', () => {
  held.keep(migrated, 'it waits for its turn');
  expect([held.why(pod, 'Migrate'), told]).toEqual(['it waits for its turn', []]);
  held.record(migrated, 'its budget');
  held.keep(migrated, 'it waits for its turn');
  held.record(migrated, 'its budget');
  expect([held.why(pod, 'Migrate'), told.length]).toEqual(['its budget', 1]);
});

test('a dry run is what holds a pod, and is told once in a while', () => {
  const why = 'descheduler.dryRun is set';
  expect([held.isRehearsalToBeTold(migrated, why), held.isRehearsalToBeTold(migrated, why)]).toEqual([true, false]);
  expect(held.why(pod, 'Migrate')).toBe(why);
});

test('whatever a member has to do with it, it is one line, and short', () => {
  held.record(migrated, `member b: \u001b[31m${'x'.repeat(10_000)}\n`);
  const why = held.why(pod, 'Migrate') ?? '';
  expect([Buffer.byteLength(why) <= 500, why.includes('\u001b')]).toEqual([true, false]);
});
