import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cleanText } from '../../src/kube/clean-text.ts';
import { EventCorrelator } from '../../src/kube/event-correlator.ts';
import { EventRecorder, type EventOutcome, type EventSubject } from '../../src/kube/event-recorder.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const START = Date.parse('2026-11-21T08:00:00.250Z');
const pod: EventSubject = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u1' };
const node: EventSubject = { apiVersion: 'v1', kind: 'Node', name: 'east', uid: 'u2' };

describe('EventRecorder', () => {
  let api: MemoryApi;
  let outcomes: EventOutcome[];
  const stops: (() => Promise<void>)[] = [];
  beforeEach(() => {
    vi.useFakeTimers({ now: START });
    api = new MemoryApi();
    outcomes = [];
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    vi.useRealTimers();
  });
  const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

  function start(options: { capacity?: number; run?: boolean } = {}) {
    const { run = true, ...rest } = options;
    const recorder = new EventRecorder({
      client: api.client(),
      component: 'spillway',
      onOutcome: (outcome) => outcomes.push(outcome),
      ...rest,
    });
    const controller = new AbortController();
    const ended = run ? recorder.run(controller.signal) : Promise.resolve();
    const stop = async (): Promise<void> => {
      controller.abort();
      await tick(5_000);
      await ended;
    };
    stops.push(stop);
    return { recorder, stop };
  }
  const events = () => [...api.objects.values()] as unknown as { count: number; message: string; metadata: object }[];

  it('writes a core/v1 Event in the namespace of its object', async () => {
    const { recorder } = start();
    recorder.record(
      { ...pod, fieldPath: 'spec.containers{web}' },
      'Warning',
      'Refused',
      'member east: quota is used up',
    );
    await tick();
    expect(events()).toHaveLength(1);
    expect(events()[0]).toMatchObject({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'shop', name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: 'shop',
        name: 'web-0',
        uid: 'u1',
        fieldPath: 'spec.containers{web}',
      },
      type: 'Warning',
      reason: 'Refused',
      message: 'member east: quota is used up',
      source: { component: 'spillway' },
      reportingComponent: 'spillway',
      count: 1,
      firstTimestamp: '2026-11-21T08:00:00Z',
      lastTimestamp: '2026-11-21T08:00:00Z',
    });
  });

  it('writes also when nobody asks for outcomes', async () => {
    const recorder = new EventRecorder({ client: api.client(), component: 'spillway' });
    const controller = new AbortController();
    const ended = recorder.run(controller.signal);
    recorder.record(pod, 'Warning', 'Refused', 'no');
    await tick();
    expect(events()).toHaveLength(1);
    controller.abort();
    await tick(5_000);
    await ended;
  });

  it('puts Events about cluster-scoped objects into namespace default', async () => {
    const { recorder } = start();
    recorder.record(node, 'Normal', 'Registered', 'ready');
    await tick();
    expect([...api.objects.keys()][0]).toMatch(/^\/api\/v1\/namespaces\/default\/events\/east\./);
  });

  it('counts repetitions in one Event, and several that wait in one call', async () => {
    const { recorder } = start();
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(60_000);
    for (let count = 0; count < 3; count += 1) recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick();
    expect(events()).toHaveLength(1);
    expect(events()[0]).toMatchObject({
      count: 4,
      firstTimestamp: '2026-11-21T08:00:00Z',
      lastTimestamp: '2026-11-21T08:01:00Z',
    });
    expect(api.seen.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'PATCH']);
    expect(outcomes).toEqual(['created', 'patched', 'patched']);
  });

  it('goes on counting in the same Event after a restart', async () => {
    const first = start();
    first.recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick();
    await first.stop();
    const second = start();
    second.recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick();
    expect(events()).toHaveLength(1);
    expect(events()[0]).toMatchObject({ count: 2, firstTimestamp: '2026-11-21T08:00:00Z' });
  });

  it('makes an Event anew that the API server has forgotten', async () => {
    const { recorder } = start();
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick();
    const [key = ''] = api.objects.keys();
    api.delete(key);
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick();
    expect([...api.objects.keys()]).toEqual([key]);
    expect(events()[0]).toMatchObject({ count: 2 });
  });

  it('combines many different messages of one reason', async () => {
    const { recorder } = start();
    for (let count = 1; count <= 15; count += 1) {
      recorder.record(pod, 'Warning', 'Failed', `try ${count}`);
      await tick(1_000);
    }
    expect(events()).toHaveLength(10);
    expect(events().at(-1)).toMatchObject({ count: 6, message: '(combined from similar events): try 15' });
  });

  it('allows an object 25 Events at once and one every five minutes then; others are not affected', async () => {
    const { recorder } = start();
    for (let count = 0; count < 40; count += 1) recorder.record(pod, 'Normal', `Reason${count}`, 'x');
    recorder.record({ ...pod, name: 'web-1' }, 'Normal', 'Reason', 'x');
    await tick();
    expect(events()).toHaveLength(26);
    expect(outcomes.filter((outcome) => outcome === 'rate-limited')).toHaveLength(15);
    await tick(300_000);
    recorder.record(pod, 'Normal', 'Later1', 'x');
    recorder.record(pod, 'Normal', 'Later2', 'x');
    await tick();
    expect(events()).toHaveLength(27);
  });

  it('drops what does not fit its queue', async () => {
    const { recorder } = start({ capacity: 2, run: false });
    for (const name of ['a', 'b', 'c', 'd']) recorder.record({ ...pod, name }, 'Normal', 'R', 'x');
    recorder.record({ ...pod, name: 'a' }, 'Normal', 'R', 'x');
    expect(outcomes).toEqual(['overflow', 'overflow']);
  });

  it('tries again while the API server is away, and counts what happened meanwhile', async () => {
    const { recorder } = start();
    api.fault = () => 'reset';
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(10);
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(5_000);
    expect(events()).toEqual([]);
    api.fault = undefined;
    await tick(30_000);
    expect(events()[0]).toMatchObject({ count: 2 });
    expect(outcomes).toEqual(['created']);
  });

  it('gives up on what is refused, and after many tries', async () => {
    const { recorder } = start();
    api.fault = () => ({ code: 403, reason: 'Forbidden', message: 'the namespace is being terminated' });
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(60_000);
    expect(api.seen).toHaveLength(1);
    api.fault = () => ({ code: 500 });
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(3_600_000);
    expect(api.seen).toHaveLength(13);
    expect(outcomes).toEqual(['refused', 'lost']);
  });

  it('writes what still waits when it is stopped', async () => {
    const { recorder, stop } = start();
    api.fault = () => 'reset';
    recorder.record(pod, 'Normal', 'Held', 'waiting');
    await tick(10);
    api.fault = undefined;
    await stop();
    expect(events()).toHaveLength(1);
  });

  it('never throws, whatever it is given', () => {
    const { recorder } = start({ run: false });
    expect(() => recorder.record(undefined as unknown as EventSubject, 'Normal', 'R', 'x')).not.toThrow();
    expect(() => recorder.record({ ...pod, name: 5 as unknown as string }, 'Normal', 'R', 'x')).not.toThrow();
  });
});

describe('event names', () => {
  it('stay valid and short for long object names, and differ by what is said', () => {
    const correlator = new EventCorrelator('spillway', () => 0);
    const long: EventSubject = { ...pod, name: `${'a'.repeat(235)}.${'b'.repeat(17)}` };
    const one = correlator.correlate(long, 'Normal', 'R', 'x')?.name ?? '';
    expect(one.length).toBeLessThanOrEqual(253);
    expect(one).toMatch(/^a{235}\.[0-9a-f]{16}$/);
    expect(correlator.correlate(long, 'Normal', 'R', 'y')?.name).not.toBe(one);
    expect(correlator.correlate({ ...long, uid: 'other' }, 'Normal', 'R', 'x')?.name).not.toBe(one);
    expect(new EventCorrelator('spillway', () => 0).correlate(long, 'Normal', 'R', 'x')?.name).toBe(one);
  });
});

describe('cleanText', () => {
  it('makes one line without control or direction characters', () => {
    expect(cleanText('  a\r\n\tb\u0000\u001b[31mc\u202e\u2066d\u2028e ', 100)).toBe('a b[31mcd e');
  });

  it('cuts whole characters and shows it', () => {
    expect(cleanText('é'.repeat(10), 20)).toBe('é'.repeat(10));
    const cut = cleanText('é'.repeat(11), 20);
    expect(cut).toBe(`${'é'.repeat(8)}…`);
    expect(Buffer.byteLength(cleanText('😀'.repeat(1_000), 1_024))).toBeLessThanOrEqual(1_024);
    expect(cleanText('\ud800x', 10)).toBe('\ufffdx');
  });

  it('looks at no more of a text than can matter', () => {
    expect(cleanText(`${' '.repeat(1e6)}late`, 20)).toBe('…');
    expect(cleanText('x'.repeat(1e6), 20)).toBe(`${'x'.repeat(17)}…`);
  });
});
