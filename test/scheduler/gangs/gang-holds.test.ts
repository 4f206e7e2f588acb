import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Pod } from '../../../src/kube/core-v1.ts';
import { GangHolds } from '../../../src/scheduler/gangs/gang-holds.ts';

const START = Date.parse('2026-01-01T00:00:00Z');

function given(name: string): Pod {
  return {
    metadata: {
      name,
      uid: name,
      labels: { 'spillway.dev/gang': 'g' },
      annotations: {
        'spillway.dev/gang-placed-at': new Date(START).toISOString(),
        'spillway.dev/gang-timeout-seconds': '86400',
      },
    },
    spec: { containers: [], nodeSelector: { 'spillway.dev/member': 'east' } },
  };
}

describe('room of pods whose gang has its place', () => {
  let seconds: number;
  /** When it was asked about each pod, in seconds. */
  let asked: Map<string, number[]>;
  let mayHave: (name: string) => boolean;
  const unknown = new Set<string>();
  let holds: GangHolds;
  let see: (pod: Pod) => void;
  const stop = { now: new AbortController() };
  let running: Promise<void>;
  const after = async (more: number): Promise<void> => {
    for (let passed = 0; passed < more; passed += 1) {
      seconds += 1;
      await vi.advanceTimersByTimeAsync(1_000);
    }
  };

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    seconds = 0;
    asked = new Map();
    unknown.clear();
    mayHave = () => false;
    const held = new Set<string>();
    holds = new GangHolds({
      view: {
        hasSynced: true,
        whenSynced: async () => await Promise.resolve(),
        onPod: ({ changed }) => {
          see = changed;
          return () => undefined;
        },
      },
      places: {
        keeps: ({ metadata }) => held.has(metadata.name),
        holdAsGiven: ({ metadata: { name } }) => {
          asked.set(name, [...(asked.get(name) ?? []), seconds]);
          if (mayHave(name)) held.add(name);
          return held.has(name);
        },
        release: () => undefined,
        unknownNodes: () => [...unknown],
      },
      opened: () => undefined,
      logger: { error: () => undefined },
      clock: () => START + seconds * 1_000,
    });
    stop.now = new AbortController();
    running = holds.run(stop.now.signal);
  });
  afterEach(async () => {
    stop.now.abort();
    await running;
    vi.useRealTimers();
  });

  test('is looked for ever more seldom while there is none, and no more once it is held', async () => {
    see(given('a'));
    see(given('b'));
    await after(300);
    const times = asked.get('a') ?? [];
    expect(times.length).toBeLessThan(12);
    expect(300 - (times.at(-1) ?? 0)).toBeLessThanOrEqual(63);
    mayHave = (name) => name === 'a';
    await after(63);
    const tries = asked.get('a')?.length;
    await after(130);
    expect(asked.get('a')).toHaveLength(tries ?? 0);
    expect(asked.get('b')?.at(-1)).toBeGreaterThan(400);
  });

  test('is looked at once a round only while all rooms are known, and sooner when one is not', async () => {
    see(given('a'));
    await after(3);
    const timers = vi.spyOn(globalThis, 'setTimeout');
    await after(30);
    expect(timers.mock.calls.length).toBeLessThanOrEqual(11);
    unknown.add('east-1');
    see(given('late'));
    expect(holds.isPending('east-1')).toBe(true);
    unknown.clear();
    await vi.advanceTimersByTimeAsync(200);
    expect(holds.isPending('east-1')).toBe(false);
  });

  test('is looked for at once where room has become known, however seldom it was before', async () => {
    see(given('a'));
    await after(300);
    unknown.add('east-1');
    await after(4);
    expect(holds.isPending('east-1')).toBe(true);
    asked.clear();
    unknown.clear();
    await after(1);
    expect(asked.get('a')).toHaveLength(1);
    expect(holds.isPending('east-1')).toBe(false);
  });
});
