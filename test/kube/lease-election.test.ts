import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KubeClient, KubeRequest } from '../../src/kube/client.ts';
import { LeaseElection } from '../../src/kube/lease-election.ts';
import type { Lease } from '../../src/kube/lease.ts';
import { microTime } from '../../src/kube/timestamps.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/spillway/leases/east';
const START = Date.parse('2026-11-21T08:00:00.000Z');

/** One competitor with the history of what it was told. */
class Competitor {
  readonly election: LeaseElection;
  readonly log: string[] = [];
  /** What the Lease said each time it was seen. */
  readonly seen: (string | undefined)[] = [];
  readonly #controller = new AbortController();
  readonly #ended: Promise<void>;
  /** Ends the current term's work by itself. */
  finish: (error?: Error) => void = () => {};
  /** How long its work takes to end after it was told to. */
  windDownMs = 0;

  constructor(api: Pick<MemoryApi, 'client'>, identity: string, incarnation?: string) {
    this.election = new LeaseElection({
      client: api.client(),
      namespace: 'spillway',
      name: 'east',
      identity,
      ...(incarnation === undefined ? {} : { incarnation: { annotation: 'example.com/process', value: incarnation } }),
      random: () => 0,
      onSeen: ({ metadata }) => this.seen.push(metadata.annotations?.['example.com/said']),
    });
    this.#ended = this.election.run({
      signal: this.#controller.signal,
      onAcquired: async (signal) => {
        this.log.push('acquired');
        await new Promise<void>((resolve, reject) => {
          this.finish = (error) => (error === undefined ? resolve() : reject(error));
          signal.addEventListener('abort', () => setTimeout(resolve, this.windDownMs));
        });
        this.log.push(signal.aborted ? 'ended' : 'done');
      },
    });
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    await vi.advanceTimersByTimeAsync(20_000);
    await this.#ended;
  }

  abort(): void {
    this.#controller.abort();
  }
}

describe('LeaseElection', () => {
  const competitors: Competitor[] = [];
  let api: MemoryApi;
  beforeEach(() => {
    vi.useFakeTimers({ now: START });
    api = new MemoryApi();
  });
  afterEach(async () => {
    await Promise.all(competitors.splice(0).map((competitor) => competitor.stop()));
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
  const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const compete = (identity: string, on: Pick<MemoryApi, 'client'> = api, incarnation?: string): Competitor => {
    const competitor = new Competitor(on, identity, incarnation);
    competitors.push(competitor);
    return competitor;
  };
  const lease = () => api.objects.get(PATH) as Lease | undefined;

  it('writes the record as client-go does and renews it every five seconds', async () => {
    const a = compete('a');
    expect(a.election.held).toBe(false);
    await tick();
    expect(a.election.held).toBe(true);
    expect(a.election.holder).toBe('a');
    expect(lease()?.spec).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-11-21T08:00:00.000000Z',
      renewTime: '2026-11-21T08:00:00.000000Z',
      leaseTransitions: 0,
    });
    await tick(20_000);
    expect(lease()?.spec).toMatchObject({
      acquireTime: '2026-11-21T08:00:00.000000Z',
      renewTime: '2026-11-21T08:00:20.000000Z',
      leaseTransitions: 0,
    });
    expect(api.requests('PUT')).toHaveLength(4);
    expect(api.requests('GET')).toHaveLength(1);
    expect(a.log).toEqual(['acquired']);
  });

  it('gives the lease back when it stops, so the next holder need not wait', async () => {
    const a = compete('a');
    await tick();
    const b = compete('b');
    await tick(5_000);
    expect(b.log).toEqual([]);
    a.abort();
    await tick();
    expect(a.election.held).toBe(false);
    expect(lease()?.spec).toEqual({
      leaseDurationSeconds: 1,
      acquireTime: '2026-11-21T08:00:05.000000Z',
      renewTime: '2026-11-21T08:00:05.000000Z',
      leaseTransitions: 0,
    });
    await tick(2_000);
    expect(b.log).toEqual(['acquired']);
    expect(lease()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('keeps what others write on it, over renewals and takeovers, and tells of it whoever holds it or waits for it', async () => {
    const a = compete('a');
    await tick();
    const b = compete('b');
    await tick();
    expect([a.seen.at(-1), b.seen.at(-1)]).toEqual([undefined, undefined]);
    api.edit(PATH, { metadata: { annotations: { 'example.com/said': 'stop' } } });
    await tick(5_000);
    expect([a.seen.at(-1), b.seen.at(-1)]).toEqual(['stop', 'stop']);
    expect([lease()?.metadata.annotations, a.log]).toEqual([{ 'example.com/said': 'stop' }, ['acquired']]);
    a.abort();
    await tick(2_000);
    expect([b.log, lease()?.metadata.annotations]).toEqual([['acquired'], { 'example.com/said': 'stop' }]);
  });

  it('keeps the lease while the work winds down after the stop', async () => {
    const a = compete('a');
    a.windDownMs = 8_000;
    await tick();
    const b = compete('b');
    await tick();
    a.abort();
    await tick(7_000);
    expect(a.log).toEqual(['acquired']);
    expect(a.election.held).toBe(true);
    expect(lease()?.spec?.holderIdentity).toBe('a');
    await tick(4_000);
    expect(a.log).toEqual(['acquired', 'ended']);
    expect(b.log).toEqual(['acquired']);
  });

  it('takes over from a silent holder only after watching it for the whole duration, whatever its clock says', async () => {
    api.handle({
      method: 'POST',
      path: PATH.slice(0, PATH.lastIndexOf('/')),
      query: {},
      contentType: 'application/json',
      body: {
        kind: 'Lease',
        apiVersion: 'coordination.k8s.io/v1',
        metadata: { namespace: 'spillway', name: 'east', labels: { keep: 'me' } },
        spec: {
          holderIdentity: 'gone',
          leaseDurationSeconds: 15,
          renewTime: '1999-01-01T00:00:00.000000Z',
          acquireTime: '1999-01-01T00:00:00.000000Z',
          leaseTransitions: 4,
          strategy: 'OldestEmulationVersion',
        },
      },
    });
    const b = compete('b');
    await tick(15_000);
    expect(b.log).toEqual([]);
    expect(b.election.holder).toBe('gone');
    await tick(2_000);
    expect(b.log).toEqual(['acquired']);
    expect(lease()).toMatchObject({
      metadata: { labels: { keep: 'me' } },
      spec: { holderIdentity: 'b', leaseTransitions: 5, strategy: 'OldestEmulationVersion' },
    });
  });

  it('takes over at once from a dead process of its own identity, and stops when that one lives after all', async () => {
    const elder = compete('a', api, 'elder');
    await tick(3_000);
    const younger = compete('a', api, 'younger');
    await tick();
    expect(younger.election.held).toBe(true);
    expect(lease()?.metadata.annotations).toEqual({ 'example.com/process': 'younger' });
    await tick(3_000);
    expect([elder.election.held, elder.log]).toEqual([false, ['acquired', 'ended']]);
    // It does not take the lease back, nor away, as long as the other one renews it.
    await tick(60_000);
    expect([elder.log, younger.log]).toEqual([['acquired', 'ended'], ['acquired']]);
    expect(lease()?.metadata.annotations).toEqual({ 'example.com/process': 'younger' });
    younger.abort();
    await tick(10_000);
    expect(elder.election.held).toBe(true);
  });

  it('never takes a lease that keeps changing', async () => {
    const a = compete('a');
    await tick();
    const b = compete('b');
    await tick(120_000);
    expect(a.log).toEqual(['acquired']);
    expect(b.log).toEqual([]);
  });

  it('fences itself before anyone else may take over when it cannot renew', async () => {
    const a = compete('a');
    await tick();
    const b = compete('b');
    await tick(1_000);
    // From now on only b reaches the API server.
    api.fault = (request) => {
      const holder = (request.body as Lease | undefined)?.spec?.holderIdentity;
      return holder === 'a' ? 'hang' : undefined;
    };
    await tick(8_999);
    expect(a.election.held).toBe(true);
    await tick(1);
    expect(a.election.held).toBe(false);
    await tick(1);
    expect(a.log).toEqual(['acquired', 'ended']);
    // One that is not answered leaves time for others.
    const tries = api.requests('PUT').filter(({ body }) => (body as Lease).spec?.holderIdentity === 'a');
    expect(tries.length).toBeGreaterThanOrEqual(3);
    let overlap = false;
    for (let second = 0; second < 20; second += 1) {
      await tick(1_000);
      overlap ||= a.election.held && b.election.held;
    }
    expect(overlap).toBe(false);
    expect(b.log).toEqual(['acquired']);
  });

  it('lives through failures that are shorter than the deadline', async () => {
    const a = compete('a');
    await tick();
    let failures = 0;
    api.fault = () => {
      failures += 1;
      return failures <= 3 ? { code: 500 } : undefined;
    };
    await tick(30_000);
    expect(failures).toBeGreaterThan(3);
    expect(a.log).toEqual(['acquired']);
    expect(a.election.held).toBe(true);
  });

  it('notices that a write of its own, whose answer was lost, did happen', async () => {
    const a = compete('a');
    await tick();
    let once = true;
    api.fault = (request) => {
      if (request.method !== 'PUT' || !once) return undefined;
      once = false;
      return 'reset-after';
    };
    await tick(10_000);
    expect(once).toBe(false);
    expect(a.log).toEqual(['acquired']);
    expect(a.election.held).toBe(true);
  });

  it('ends its term at once when it sees another holder, and competes again', async () => {
    const a = compete('a');
    await tick();
    api.edit(PATH, { spec: { holderIdentity: 'thief', leaseDurationSeconds: 3 } });
    await tick(5_001);
    expect(a.log).toEqual(['acquired', 'ended']);
    expect(a.election.held).toBe(false);
    expect(lease()?.spec?.holderIdentity).toBe('thief');
    await tick(8_000);
    expect(a.log).toEqual(['acquired', 'ended', 'acquired']);
    expect(lease()?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 1 });
  });

  it('makes the lease anew when someone deletes it', async () => {
    const a = compete('a');
    await tick();
    api.delete(PATH);
    await tick(5_000);
    expect(a.log).toEqual(['acquired']);
    expect(lease()?.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 });
  });

  describe('where another cluster answers under the address for a while', () => {
    /** The first look after a write finds out which cluster it is. */
    const led = () => {
      const other = new MemoryApi({ uid: () => 'of-the-other' });
      const address = { leadsTo: api, kept: undefined as MemoryApi | undefined, other, client: () => client };
      const client = {
        request: async (request: KubeRequest) => await (address.kept ?? address.leadsTo).client().request(request),
        confirmCluster: async () => {
          await Promise.resolve();
          if (address.leadsTo !== api) throw new Error('another cluster');
        },
        reconnect: async () => {
          await Promise.resolve();
          address.kept = undefined;
        },
      } as unknown as KubeClient;
      return address;
    };

    it('does not take a lease for its own that it won there', async () => {
      const a = compete('a');
      await tick();
      const address = led();
      const b = compete('b', address);
      await tick(1_000);
      address.leadsTo = address.other;
      await tick(3_000);
      expect((address.other.objects.get(PATH) as Lease | undefined)?.spec?.holderIdentity).toBe('b');
      expect([a.election.held, b.election.held, b.log]).toEqual([true, false, []]);
      address.leadsTo = api;
      await tick(20_000);
      expect([a.election.held, b.election.held, b.log]).toEqual([true, false, []]);
      await a.stop();
      await tick(5_000);
      expect(b.log).toEqual(['acquired']);
    });

    it('does not take one for its own that it won there over connections that were kept', async () => {
      const a = compete('a');
      await tick();
      const address = led();
      const b = compete('b', address);
      await tick(1_000);
      expect(b.election.holder).toBe('a');
      address.kept = address.other;
      await tick(10_000);
      expect([a.election.held, b.election.held, b.log, address.kept]).toEqual([true, false, [], undefined]);
    });

    it('tells nothing of what people say there', async () => {
      const address = led();
      const a = compete('a', address);
      await tick(1_000);
      api.edit(PATH, { metadata: { annotations: { 'example.com/said': 'stop' } } });
      await tick(5_000);
      expect([a.election.held, a.seen.at(-1)]).toEqual([true, 'stop']);
      address.leadsTo = address.other;
      await tick(6_000);
      expect([address.other.objects.has(PATH), a.seen.at(-1)]).toEqual([true, 'stop']);
    });

    it('takes one that was deleted and made anew', async () => {
      const a = compete('a');
      const b = compete('b', led());
      await tick(1_000);
      await a.stop();
      await tick(5_000);
      expect(b.log).toEqual(['acquired']);
      api.delete(PATH);
      await tick(20_000);
      expect([b.election.held, b.log, lease()?.spec?.holderIdentity]).toEqual([true, ['acquired'], 'b']);
    });

    it('holds its own no longer than since it was last renewed here', async () => {
      const address = led();
      const a = compete('a', address);
      await tick(6_000);
      expect(a.election.held).toBe(true);
      address.leadsTo = address.other;
      // Renewed last after 5 s.
      await tick(8_900);
      expect([a.election.held, address.other.objects.has(PATH)]).toEqual([true, true]);
      await tick(200);
      expect([a.election.held, a.log]).toEqual([false, ['acquired', 'ended']]);
      address.leadsTo = api;
      await tick(5_000);
      expect(a.log).toEqual(['acquired', 'ended', 'acquired']);
    });
  });

  it('lets only one of two win who create it at the same time', async () => {
    const a = compete('a');
    const b = compete('b');
    await tick();
    expect([...a.log, ...b.log]).toEqual(['acquired']);
    expect(Number(a.election.held) + Number(b.election.held)).toBe(1);
  });

  it('gives the lease back when the work ends or fails by itself, and competes again', async () => {
    const a = compete('a');
    await tick();
    a.finish();
    await tick();
    expect(a.log).toEqual(['acquired', 'done']);
    expect(lease()?.spec?.holderIdentity).toBeUndefined();
    await tick(2_000);
    expect(a.log).toEqual(['acquired', 'done', 'acquired']);
    a.finish(new Error('broken'));
    await tick(2_000);
    expect(a.log).toEqual(['acquired', 'done', 'acquired', 'acquired']);
  });

  it('counts a wall clock that jumped ahead (a machine that slept) against itself', async () => {
    const a = compete('a');
    await tick();
    expect(a.election.held).toBe(true);
    vi.setSystemTime(Date.now() + 11_000);
    expect(a.election.held).toBe(false);
  });

  it('refuses times that cannot work', () => {
    const make = (times: object) =>
      new LeaseElection({ client: api.client(), namespace: 'n', name: 'l', identity: 'i', ...times });
    expect(() => make({ leaseMs: 10_000 })).toThrow(RangeError);
    expect(() => make({ retryMs: 10_000 })).toThrow(RangeError);
    expect(() => make({ leaseMs: 500, renewMs: 300, retryMs: 100 })).toThrow(RangeError);
  });
});

describe('microTime', () => {
  it('has six digits', () => {
    expect(microTime(START)).toBe('2026-11-21T08:00:00.000000Z');
    expect(microTime(START + 1.25)).toBe('2026-11-21T08:00:00.001250Z');
  });
});
