import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { WaitingPods } from '../../src/scheduler/waiting-pods.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { monotonic } from '../../src/kube/clock.ts';

const LOOK_AGAIN = 'spillway.dev/look-again';

let api: MemoryApi;
let waiting: WaitingPods;
let stop: AbortController;
let running: Promise<void>;
let setBackMs: number;
const clock = (): number => Date.now() - setBackMs;

const pod: Pod = { metadata: { name: 'p', namespace: 'shop', uid: 'u' }, spec: { containers: [] } };
const looks = (): number => api.requests('PATCH', '/nodes/east').length;

beforeEach(() => {
  setBackMs = 0;
  api = new MemoryApi();
  const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'east' } };
  api.handle({ method: 'POST', path: '/api/v1/nodes', query: {}, body, contentType: 'application/json' });
  const logger = pino({ level: 'silent' });
  waiting = new WaitingPods({ host: api.client(), virtualNode: () => 'east', logger, clock, monotonic });
  stop = new AbortController();
  running = waiting.run(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await running;
});

test('while a pod waits, schedulers are told to look again when its time has come, and not before', async () => {
  waiting.answered(pod, false);
  const due = monotonic() + 400;
  waiting.resyncIn(400);
  // Later than what is asked for already: nothing changes.
  waiting.resyncIn(5_000);
  await until('they are told', () => looks() === 1, { intervalMs: 5, timeoutMs: 10_000 });
  expect(monotonic()).toBeGreaterThanOrEqual(due);
  expect(api.objects.get('/api/v1/nodes/east')?.metadata['annotations']).toHaveProperty([LOOK_AGAIN]);
});

test('a wall clock that is set back puts nothing off', async () => {
  waiting.resyncIn(300);
  waiting.answered(pod, false);
  setBackMs = 1_800_000;
  await until('they are told', () => looks() === 1, { intervalMs: 5, timeoutMs: 10_000 });
});

test('nobody is told anything for pods that have a place by then', async () => {
  waiting.answered(pod, false);
  waiting.resyncIn(300);
  waiting.answered(pod, true);
  const other: Pod = { ...pod, metadata: { ...pod.metadata, uid: 'other' } };
  waiting.answered(other, false);
  waiting.settled(other);
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(looks()).toBe(0);
  expect(waiting.size).toBe(0);
});

test('pods that a former process refused are worth one look', async () => {
  waiting.takeOver();
  await until('they are told', () => looks() === 1, { intervalMs: 5, timeoutMs: 10_000 });
  // Whoever is asked about again is known by then.
  waiting.resyncIn(0);
  await new Promise((resolve) => setTimeout(resolve, 2_300));
  expect(looks()).toBe(1);
});
