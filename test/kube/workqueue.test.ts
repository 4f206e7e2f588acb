import * as fc from 'fast-check';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DelayHeap } from '../../src/kube/delay-heap.ts';
import { systemTimers } from '../../src/kube/timers.ts';
import { createWorkQueueMetrics } from '../../src/kube/workqueue-metrics.ts';
import { WorkQueue } from '../../src/kube/workqueue.ts';
import type { HandlerResult, WorkQueueOptions } from '../../src/kube/workqueue.ts';

/** A handler whose calls end when the test says so. */
class Gate {
  readonly started: string[] = [];
  readonly #open = new Map<string, (result: HandlerResult | Error) => void>();
  readonly signals = new Map<string, AbortSignal>();

  readonly handler = (key: string, signal: AbortSignal): Promise<HandlerResult> => {
    this.started.push(key);
    this.signals.set(key, signal);
    return new Promise((resolve, reject) => {
      this.#open.set(key, (result) => (result instanceof Error ? reject(result) : resolve(result)));
      signal.addEventListener('abort', () => reject(new Error('aborted')));
    });
  };

  async end(key: string, result?: HandlerResult | Error): Promise<void> {
    this.#open.get(key)?.(result);
    await vi.advanceTimersByTimeAsync(0);
  }
}

describe('WorkQueue', () => {
  const stop = new Set<() => Promise<void>>();
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(async () => {
    for (const end of stop) await end();
    stop.clear();
    vi.useRealTimers();
  });

  function start(options: Partial<WorkQueueOptions> & Pick<WorkQueueOptions, 'handler'>) {
    const queue = new WorkQueue({ name: 'test', concurrency: 1, random: () => 1, ...options });
    const controller = new AbortController();
    const ended = queue.run(controller.signal);
    const halt = async (): Promise<void> => {
      stop.delete(halt);
      controller.abort();
      await vi.advanceTimersByTimeAsync(options.graceMs ?? 5_000);
      await ended;
    };
    stop.add(halt);
    return { queue, controller, ended };
  }
  const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

  it('begins few normal keys at a time, and what is urgent all the same', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler, concurrency: 6, normal: { fresh: 3, most: 5 } });
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
    for (const key of ['x', 'y', 'z']) queue.add(key, 'high');
    await tick();
    expect(gate.started).toEqual(['a', 'b', 'c', 'x', 'y', 'z']);
    await gate.end('a');
    expect(gate.started.slice(6)).toEqual([]);
    // Two are begun however much is urgent.
    await gate.end('b');
    expect(gate.started.slice(6)).toEqual(['d']);
    for (const key of ['c', 'x', 'y']) await gate.end(key);
    expect(gate.started.slice(6)).toEqual(['d', 'e']);
  });

  it('does not wait for normal keys that hang, unless there are many', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler, concurrency: 5, normal: { fresh: 2, most: 3 } });
    for (const key of ['a', 'b']) queue.add(key);
    await tick();
    expect(gate.started).toEqual(['a', 'b']);
    // While none waits, nobody looks.
    expect(vi.getTimerCount()).toBe(0);
    for (const key of ['c', 'd']) queue.add(key);
    await tick(900);
    expect(gate.started).toEqual(['a', 'b']);
    await tick(200);
    expect(gate.started).toEqual(['a', 'b', 'c']);
    await tick(5_000);
    expect(gate.started).toEqual(['a', 'b', 'c']);
    await gate.end('a');
    expect(gate.started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('holds a key once while it waits and runs it once more when it changed during work', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler });
    queue.add('a');
    queue.add('b');
    queue.add('b');
    expect(gate.started).toEqual(['a']);
    expect(queue.depth).toBe(1);
    queue.add('a');
    queue.add('a');
    await gate.end('a');
    expect(gate.started).toEqual(['a', 'b']);
    await gate.end('b');
    expect(gate.started).toEqual(['a', 'b', 'a']);
    await gate.end('a');
    expect(queue.depth).toBe(0);
    expect(gate.started).toEqual(['a', 'b', 'a']);
  });

  it('never works on one key twice at a time and never on more than `concurrency` keys', async () => {
    const active = new Map<string, number>();
    let most = 0;
    const { queue } = start({
      concurrency: 3,
      handler: async (key) => {
        active.set(key, (active.get(key) ?? 0) + 1);
        expect(active.get(key)).toBe(1);
        most = Math.max(most, active.size);
        await new Promise((resolve) => setTimeout(resolve, 10));
        active.delete(key);
      },
    });
    for (let round = 0; round < 5; round += 1) {
      for (let key = 0; key < 10; key += 1) queue.add(`k${key}`);
      await tick(15);
    }
    await tick(1_000);
    expect(most).toBe(3);
    expect(queue.depth).toBe(0);
  });

  it('retries for ever with doubling waits up to the cap, and starts over after a success', async () => {
    const times: number[] = [];
    let fail = true;
    const { queue } = start({
      backoff: { baseMs: 10, maxMs: 50 },
      handler: async () => {
        times.push(performance.now());
        if (fail) throw new Error('no');
      },
    });
    const begin = performance.now();
    queue.add('a');
    await tick(10 + 20 + 40 + 50 + 50);
    expect(times.map((time) => time - begin)).toEqual([0, 10, 30, 70, 120, 170]);
    fail = false;
    await tick(50);
    expect(times).toHaveLength(7);
    await tick(1_000);
    expect(times).toHaveLength(7);
    fail = true;
    queue.add('a');
    await tick(10);
    expect(times).toHaveLength(9);
  });

  it('spreads retries over half of the wait', async () => {
    const times: number[] = [];
    const { queue } = start({
      backoff: { baseMs: 100, maxMs: 100 },
      random: () => 0,
      handler: async () => {
        times.push(performance.now());
        throw new Error('no');
      },
    });
    queue.add('a');
    await tick(100);
    expect(times.slice(1).map((time, index) => time - (times[index] ?? 0))).toEqual([50, 50]);
  });

  it('runs at once when a failed key is added, and not again for the retry that this overtook', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler, backoff: { baseMs: 1_000, maxMs: 1_000 } });
    queue.add('a');
    await gate.end('a', new Error('no'));
    await tick(500);
    queue.add('a');
    expect(gate.started).toHaveLength(2);
    await gate.end('a');
    await tick(5_000);
    expect(gate.started).toHaveLength(2);
  });

  it('forgets failures and the pending retry on request', async () => {
    const times: number[] = [];
    const { queue } = start({
      backoff: { baseMs: 10, maxMs: 1_000 },
      handler: async () => {
        times.push(performance.now());
        throw new Error('no');
      },
    });
    queue.add('a');
    await tick(30);
    expect(times).toHaveLength(3);
    queue.forget('a');
    await tick(10_000);
    expect(times).toHaveLength(3);
    queue.add('a');
    await tick(10);
    expect(times).toHaveLength(5);
  });

  it('delays keys, keeps the earliest time, and honours requeueAfterMs without counting a failure', async () => {
    const times: number[] = [];
    const begin = performance.now();
    const { queue } = start({
      handler: async () => {
        times.push(performance.now() - begin);
        return times.length < 3 ? { requeueAfterMs: 100 } : undefined;
      },
    });
    queue.addAfter('a', 500);
    queue.addAfter('a', 200);
    queue.addAfter('a', 900);
    await tick(5_000);
    expect(times).toEqual([200, 300, 400]);
  });

  it('keeps a delayed run that was asked for although the key ran earlier', async () => {
    const times: number[] = [];
    const begin = performance.now();
    const { queue } = start({
      handler: async () => {
        times.push(performance.now() - begin);
      },
    });
    queue.addAfter('a', 300);
    queue.add('a');
    await tick(1_000);
    expect(times).toEqual([0, 300]);
  });

  it('uses one timer for any number of delayed keys', async () => {
    let timers = 0;
    const { queue } = start({
      handler: async () => {},
      timers: {
        start(callback, ms) {
          timers += 1;
          const cancel = systemTimers.start(() => {
            timers -= 1;
            callback();
          }, ms);
          return () => {
            timers -= 1;
            cancel();
          };
        },
      },
    });
    for (let key = 0; key < 1_000; key += 1) queue.addAfter(`k${key}`, 1_000 + (key % 7));
    expect(timers).toBe(1);
    await tick(2_000);
    expect(timers).toBe(0);
  });

  it('prefers high keys without starving normal ones', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler });
    queue.add('first');
    for (const key of ['n1', 'n2']) queue.add(key);
    for (let key = 0; key < 20; key += 1) queue.add(`h${key}`, 'high');
    queue.add('n2', 'high');
    for (let count = 0; count < 23; count += 1) await gate.end(gate.started.at(-1) ?? '');
    expect(gate.started.slice(0, 3)).toEqual(['first', 'h0', 'h1']);
    expect(gate.started.indexOf('n1')).toBe(9);
    expect(gate.started.filter((key) => key === 'n2')).toHaveLength(1);
    expect(gate.started).toHaveLength(23);
  });

  it('re-runs a dirtied key with the highest priority asked for', async () => {
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler });
    queue.add('a');
    queue.add('b');
    queue.add('a', 'high');
    queue.add('a');
    await gate.end('a');
    expect(gate.started).toEqual(['a', 'a']);
  });

  it('lets the event loop breathe during a long run of quick keys', async () => {
    vi.useRealTimers();
    let handled = 0;
    const queue = new WorkQueue({
      name: 'test',
      concurrency: 1,
      handler: async () => {
        handled += 1;
      },
    });
    const controller = new AbortController();
    const ended = queue.run(controller.signal);
    for (let key = 0; key < 10_000; key += 1) queue.add(`k${key}`);
    await new Promise((resolve) => setImmediate(resolve));
    expect(handled).toBeLessThan(1_000);
    await vi.waitFor(() => expect(handled).toBe(10_000), { timeout: 10_000, interval: 5 });
    controller.abort();
    await ended;
  });

  it('keeps keys added before it runs, and ignores all after the stop', async () => {
    const gate = new Gate();
    const queue = new WorkQueue({ name: 'test', concurrency: 1, handler: gate.handler });
    queue.add('early');
    await tick(10);
    expect(gate.started).toEqual([]);
    const controller = new AbortController();
    const ended = queue.run(controller.signal);
    expect(gate.started).toEqual(['early']);
    queue.add('waiting');
    queue.addAfter('later', 5);
    controller.abort();
    await gate.end('early');
    await ended;
    queue.add('late');
    await tick(100);
    expect(gate.started).toEqual(['early']);
    expect(vi.getTimerCount()).toBe(0);
    await expect(queue.run(new AbortController().signal)).rejects.toThrow('already run');
  });

  it('waits for handlers in flight at the stop, and aborts them only after the grace time', async () => {
    const gate = new Gate();
    const { queue, controller, ended } = start({ handler: gate.handler, concurrency: 2, graceMs: 1_000 });
    queue.add('quick');
    queue.add('slow');
    let done = false;
    const watched = ended.then(() => {
      done = true;
    });
    controller.abort();
    await gate.end('quick');
    await tick(999);
    expect(gate.signals.get('slow')?.aborted).toBe(false);
    expect(done).toBe(false);
    await tick(1);
    expect(gate.signals.get('slow')?.aborted).toBe(true);
    await watched;
    expect(done).toBe(true);
  });

  it('ends at once when it is told to run with an aborted signal', async () => {
    const gate = new Gate();
    const queue = new WorkQueue({ name: 'test', concurrency: 1, handler: gate.handler });
    queue.add('a');
    await queue.run(AbortSignal.abort());
    expect(gate.started).toEqual([]);
  });

  it('logs failures ever more rarely, and with what went wrong', async () => {
    const warnings: unknown[] = [];
    const logger = { warn: (...line: unknown[]) => warnings.push(line), debug: () => {} } as unknown as Logger;
    const { queue } = start({
      logger,
      backoff: { baseMs: 1, maxMs: 1 },
      handler: () => {
        throw new Error('thrown before any promise');
      },
    });
    queue.add('ns/a');
    await tick(99);
    expect(warnings).toHaveLength(7);
    expect(warnings[0]).toEqual([
      { queue: 'test', key: 'ns/a', failures: 1, retryInMs: 1 },
      'thrown before any promise',
    ]);
  });

  it('counts what it does', async () => {
    const registry = new Registry();
    const metrics = createWorkQueueMetrics(registry);
    const gate = new Gate();
    const { queue } = start({ handler: gate.handler, metrics });
    queue.add('a');
    queue.add('b');
    queue.add('b');
    await tick(2_000);
    const value = async (name: string, suffix = '') => {
      const text = await registry.getSingleMetricAsString(name);
      return Number(new RegExp(`^${name}${suffix}\\{name="test"\\} (.*)$`, 'm').exec(text)?.[1]);
    };
    expect(await value('workqueue_depth')).toBe(1);
    expect(await value('workqueue_longest_running_processor_seconds')).toBe(2);
    expect(await value('workqueue_unfinished_work_seconds')).toBe(2);
    await gate.end('a', new Error('no'));
    await gate.end('b');
    expect(await value('workqueue_adds_total')).toBe(2);
    expect(await value('workqueue_retries_total')).toBe(1);
    expect(await value('workqueue_work_duration_seconds', '_sum')).toBe(2);
    expect(await value('workqueue_queue_duration_seconds', '_sum')).toBe(2);
    expect(await value('workqueue_depth')).toBe(0);
    for (const end of stop) await end();
    expect(await registry.getSingleMetricAsString('workqueue_depth')).not.toContain('name="test"');
  });
});

describe('DelayHeap', () => {
  it('gives back each key once, in the order of the earliest time asked for', () => {
    const step = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      at: fc.integer({ min: 1, max: 100 }),
      remove: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let now = 0;
        let fire: (() => void) | undefined;
        let due = Infinity;
        const fired: [string, number][] = [];
        const heap = new DelayHeap(
          () => now,
          {
            start(callback, ms) {
              fire = callback;
              due = now + ms;
              return () => {
                fire = undefined;
              };
            },
          },
          (key) => fired.push([key, now]),
        );
        const model = new Map<string, number>();
        for (const { key, at, remove } of steps) {
          if (remove) {
            heap.delete(key);
            model.delete(key);
          } else {
            heap.set(key, at);
            model.set(key, Math.min(at, model.get(key) ?? Infinity));
          }
          expect(heap.size).toBe(model.size);
        }
        while (fire !== undefined) {
          const callback = fire;
          fire = undefined;
          now = due;
          callback();
        }
        expect(fired.map(([, at]) => at)).toEqual([...model.values()].sort((x, y) => x - y));
        for (const [key, at] of fired) expect(model.get(key)).toBe(at);
        expect(heap.size).toBe(0);
      }),
    );
  });
});
