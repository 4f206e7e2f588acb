import { expect, test } from 'vitest';
import { ExportPace } from '../../src/multi-cluster/export-pace.ts';

const MIB = 1024 * 1024;

function paced() {
  const clock = { now: 1_000_000 };
  return { clock, pace: new ExportPace(() => clock.now) };
}

test('what changes for once is told at once, however much it is', () => {
  const { pace } = paced();
  for (let i = 0; i < 1_000; i++) {
    expect(pace.restMs(`shop/${i}`, true)).toBe(0);
    for (const bytes of [300, 8_000]) pace.wrote(`shop/${i}`, bytes);
  }
  for (let i = 0; i < 1_000; i++) expect(pace.restMs(`shop/${i}`, false)).toBe(0);
});

test('however many names change for ever, no more is told than the rate says, and each of them has its turn', () => {
  const { clock, pace } = paced();
  const told = new Map<string, number>();
  const minutes = 10;
  for (let second = 0; second < minutes * 60; second++) {
    for (let i = 0; i < 20; i++) {
      const key = `shop/${i}`;
      if (pace.restMs(key, false) > 0) continue;
      pace.wrote(key, MIB / 4);
      told.set(key, (told.get(key) ?? 0) + 1);
    }
    clock.now += 1_000;
  }
  const all = [...told.values()].reduce((sum, one) => sum + one, 0);
  expect((all * MIB) / 4).toBeLessThan(((minutes + 1) * 60 + 20) * (MIB / 2));
  const lately = [...told.values()];
  expect(Math.min(...lately)).toBeGreaterThan(0.9 * Math.max(...lately));
  expect(pace.restMs('shop/quiet', false)).toBe(0);
  const rest = pace.restMs('shop/new', true);
  expect(rest).toBeGreaterThan(0);
  expect(rest).toBeLessThan(20_000);
  for (let i = 0; i < 20; i++) pace.wrote(`shop/${i}`, MIB / 4);
  clock.now += rest;
  expect(pace.restMs('shop/new', true)).toBe(0);
});

test('a Service of many EndpointSlices rests after they were told, so that changes are gathered', () => {
  const { clock, pace } = paced();
  pace.gather('shop/web', 1);
  expect(pace.restMs('shop/web', false)).toBe(0);
  pace.gather('shop/web', 3);
  expect(pace.restMs('shop/web', false)).toBe(600);
  pace.gather('shop/web', 100);
  expect(pace.restMs('shop/web', false)).toBe(2_000);
  clock.now += 2_000;
  expect(pace.restMs('shop/web', false)).toBe(0);
});
