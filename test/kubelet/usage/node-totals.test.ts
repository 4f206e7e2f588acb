import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { NodeCounter, type PodTotals } from '../../../src/kubelet/usage/node-totals.ts';

const pod = (uid: string, cpuSeconds: number, more: Partial<PodTotals> = {}): PodTotals => ({
  uid,
  source: 'kubelet',
  startedAt: 4000,
  containers: [{ container: 'app', cpuSeconds }],
  memoryBytes: 1000,
  at: 5000,
  ...more,
});

describe('what a virtual node uses', () => {
  it('is the sum of its pods, at the newest of their times', () => {
    const totals = new NodeCounter().observe(
      [pod('a', 1.5), pod('b', 2, { memoryBytes: 500, at: 6000 })],
      new Set(['a', 'b']),
      9999,
    );
    expect(totals).toEqual({ cpuSeconds: 3.5, memoryBytes: 1500, at: 6000 });
  });

  it('is never nothing', () => {
    expect(new NodeCounter().observe([], new Set(), 9999)).toEqual({ cpuSeconds: 1e-9, memoryBytes: 1, at: 9999 });
  });

  it('keeps the last counter of pods that are gone', () => {
    const counter = new NodeCounter();
    counter.observe([pod('a', 10), pod('b', 5)], new Set(['a', 'b']), 0);
    expect(counter.observe([pod('b', 6)], new Set(['b']), 0)).toMatchObject({ cpuSeconds: 16, memoryBytes: 1000 });
    expect(counter.observe([pod('b', 7)], new Set(['b']), 0).cpuSeconds).toBe(17);
  });

  it('keeps the last counter of pods that cannot be read now', () => {
    const counter = new NodeCounter();
    counter.observe([pod('a', 10)], new Set(['a']), 0);
    expect(counter.observe([], new Set(['a']), 0).cpuSeconds).toBe(10);
    expect(counter.observe([pod('a', 12)], new Set(['a']), 0).cpuSeconds).toBe(12);
  });

  it('adds what a counter that starts anew counts', () => {
    const counter = new NodeCounter();
    counter.observe([pod('a', 10)], new Set(['a']), 0);
    expect(counter.observe([pod('a', 1)], new Set(['a']), 0).cpuSeconds).toBe(11);
    expect(counter.observe([pod('a', 3)], new Set(['a']), 0).cpuSeconds).toBe(13);
  });

  it('is the sum of containers, each with a counter of its own', () => {
    const counter = new NodeCounter();
    const two = (a: number, b: number): PodTotals =>
      pod('p', 0, {
        containers: [
          { container: 'a', cpuSeconds: a },
          { container: 'b', cpuSeconds: b },
        ],
      });
    expect(counter.observe([two(10, 5)], new Set(['p']), 0).cpuSeconds).toBe(15);
    // One restarted: what it used before stays.
    expect(counter.observe([two(1, 6)], new Set(['p']), 0).cpuSeconds).toBe(17);
  });

  it('grows by what is used, not by what a pod that is first seen late had used before', () => {
    const counter = new NodeCounter();
    counter.observe([pod('a', 10)], new Set(['a', 'late', 'new']), 5000);
    const late = (cpu: number): PodTotals => pod('late', cpu, { startedAt: 1000 });
    const young = pod('new', 2, { startedAt: 6000 });
    expect(counter.observe([pod('a', 10), late(90_000), young], new Set(['a', 'late', 'new']), 0).cpuSeconds).toBe(12);
    expect(counter.observe([pod('a', 10), late(90_003), young], new Set(['a', 'late', 'new']), 0).cpuSeconds).toBe(15);
    expect(counter.observe([pod('a', 10)], new Set(['a']), 0).cpuSeconds).toBe(15);
  });

  it('does not take the step from one source to another for usage', () => {
    const counter = new NodeCounter();
    counter.observe([pod('a', 5, { source: 'metrics-api' })], new Set(['a']), 0);
    expect(counter.observe([pod('a', 9000)], new Set(['a']), 0).cpuSeconds).toBe(5);
    expect(counter.observe([pod('a', 9001)], new Set(['a']), 0).cpuSeconds).toBe(6);
    expect(counter.observe([pod('a', 7, { source: 'metrics-api' })], new Set(['a']), 0).cpuSeconds).toBe(6);
  });

  test('never goes back, whatever its pods do', () => {
    const round = fc.dictionary(
      fc.constantFrom('a', 'b', 'c', 'd'),
      fc.option(fc.double({ min: 0, max: 1e7, noNaN: true })),
    );
    fc.assert(
      fc.property(fc.array(round), fc.array(fc.nat({ max: 10_000 })), (rounds, times) => {
        const counter = new NodeCounter();
        let last = { cpuSeconds: 0, at: 0 };
        for (const [index, pods] of rounds.entries()) {
          const known = Object.entries(pods).flatMap(([uid, cpu]) =>
            cpu === null ? [] : [pod(uid, cpu, { source: cpu > 5e6 ? 'x' : 'y', at: times[index] ?? 0 })],
          );
          const next = counter.observe(known, new Set(Object.keys(pods)), times[index] ?? 0);
          expect(next.cpuSeconds).toBeGreaterThanOrEqual(last.cpuSeconds);
          expect(next.at).toBeGreaterThanOrEqual(last.at);
          expect(next.cpuSeconds).toBeGreaterThan(0);
          expect(next.memoryBytes).toBeGreaterThan(0);
          last = next;
        }
      }),
    );
  });
});
