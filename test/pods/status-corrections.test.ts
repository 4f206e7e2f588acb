import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import { podMetrics } from '../../src/pods/pod-metrics.ts';
import type { PodMemory } from '../../src/pods/pod-memory.ts';
import { StatusCorrections, statusKey } from '../../src/pods/status-corrections.ts';
import { hostPod } from '../fixtures/pods.ts';

describe('putting a status right that somebody else keeps changing', () => {
  let now: number;
  let told: string[];
  let registry: Registry;
  let memory: PodMemory;
  let corrections: StatusCorrections;
  beforeEach(() => {
    [now, told, registry, memory] = [1_000_000, [], new Registry(), { attempts: 0 }];
    corrections = new StatusCorrections({
      nodeName: 'east',
      events: { record: (_object, _type, reason) => told.push(reason) },
      metrics: podMetrics(registry),
      monotonic: () => now,
    });
  });
  const held = async (): Promise<number> =>
    (await registry.getSingleMetric('spillway_pod_status_corrections_held_total')?.get())?.values[0]?.value ?? 0;
  /** Somebody changes the status at once after each write; answers how long each of our writes waited, in s. */
  function fight(of: string, times: number): number[] {
    return Array.from({ length: times }, () => {
      const delay = corrections.delay(hostPod(), memory, of);
      // Woken up over and over meanwhile.
      if (delay > 0) {
        now += delay / 2;
        expect(corrections.delay(hostPod(), memory, of)).toBe(delay / 2);
        now += delay / 2;
        expect(corrections.delay(hostPod(), memory, of)).toBe(0);
      }
      corrections.written(memory, of);
      return delay / 1000;
    });
  }

  it('is prompt at first, then ever rarer', async () => {
    expect(fight('a', 14)).toEqual([0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]);
    expect(told).toEqual(['StatusOverwritten']);
    expect(await held()).toBe(8);
  });

  it('does not keep back news of the member, nor tells twice of one fight', () => {
    fight('a', 10);
    expect(fight('b', 8)).toEqual([0, 0, 0, 0, 0, 0, 1, 2]);
    expect(told).toEqual(['StatusOverwritten']);
  });

  it('is prompt again when the status was left alone for a while', () => {
    fight('a', 12);
    now += 90_000;
    expect(fight('a', 7)).toEqual([0, 0, 0, 0, 0, 0, 1]);
    expect(told).toHaveLength(2);
  });

  it('knows a status again whose conditions have other times', () => {
    const status = (lastTransitionTime: string, podIP = '10.0.0.1') =>
      statusKey({ podIP, conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] });
    expect(status('2026-01-01T00:00:00Z')).toBe(status('2026-01-01T00:00:01Z'));
    expect(status('2026-01-01T00:00:00Z')).not.toBe(status('2026-01-01T00:00:00Z', '10.0.0.2'));
  });
});
