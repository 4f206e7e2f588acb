import fc from 'fast-check';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FencingState, MOST_FENCED_PODS, SILENT_MS } from '../../src/api/fencing.ts';
import { HOST_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { JsonObject } from '../../src/kube/json-equal.ts';
import { mayBeLost } from '../../src/api/unreachable.ts';
import { type Heard, heardOf, isFenced, nextFencing } from '../../src/members/fencing.ts';
import { FencingRecord } from '../../src/members/fencing-record.ts';
import { MemberFencing } from '../../src/members/member-fencing.ts';
import { afterProbe, NOT_PROBED, type Reachability } from '../../src/members/reachability.ts';
import { Silence } from '../../src/members/silence.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { HOST_ID, memberPod } from '../fixtures/pods.ts';

const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const EAST = `${MEMBERS}/east`;
const PODS = '/api/v1/namespaces/shop/pods';
const SIGNAL = new AbortController().signal;

const up: Reachability = { reachable: true, against: 0, failingSince: undefined, failure: undefined };
const down = (reason = 'Timeout'): Reachability => ({
  reachable: false,
  against: 0,
  failingSince: { wall: 0, monotonic: 0 },
  failure: { reason, message: 'No answer.' },
});

type Probe = 'ok' | 'ServerError' | 'Timeout' | 'CredentialPluginFailed';

/** What is known of a member after these probes, one in ten seconds. */
function probed(probes: readonly Probe[], successThreshold = 1) {
  const silence = new Silence();
  let reachability: Reachability = NOT_PROBED;
  for (const [index, probe] of probes.entries()) {
    const failure = probe === 'ok' ? undefined : { reason: probe, message: 'No answer.' };
    const atMs = index * 10_000;
    const thresholds = { failureThreshold: 1, successThreshold };
    reachability = afterProbe(reachability, failure, thresholds, { wall: atMs, monotonic: atMs });
    silence.probed(failure === undefined || !mayBeLost(failure.reason), atMs, 15_000);
  }
  return { reachability, identityOk: () => true, unansweredMs: silence.ms };
}

describe('what a member shows of itself', () => {
  it.each<[string, Reachability, boolean, Heard]>([
    ['it answers', up, true, 'answers'],
    ['it answers, but not to the last probe', { ...down(), reachable: true, against: 1 }, true, undefined],
    ['another cluster answers', up, false, undefined],
    ['it has not been asked', { ...up, reachable: undefined }, false, undefined],
    ['nothing comes from it', down(), false, 'silent'],
    ['it refuses our credentials', down('Unauthorized'), true, 'silent'],
  ])('%s', (_, reachability, identityOk, heard) => {
    expect(heardOf({ reachability, identityOk: () => identityOk, unansweredMs: SILENT_MS })).toBe(heard);
  });

  const probes: [string, number, Probe[], Heard][] = [
    [
      'not one that answered with errors until a moment ago',
      1,
      [...Array<Probe>(6).fill('ServerError'), 'Timeout'],
      undefined,
    ],
    [
      'not one that has answered once, though it is not shown as reachable yet',
      2,
      [...Array<Probe>(6).fill('Timeout'), 'ok'],
      undefined,
    ],
    [
      'not one that answered once, less than 30 s ago',
      2,
      [...Array<Probe>(6).fill('Timeout'), 'ok', 'Timeout', 'Timeout'],
      undefined,
    ],
    [
      'one that answered once, 30 s ago',
      2,
      [...Array<Probe>(6).fill('Timeout'), 'ok', ...Array<Probe>(4).fill('Timeout')],
      'silent',
    ],
    ['not one that cannot be asked', 1, [...Array<Probe>(6).fill('Timeout'), 'CredentialPluginFailed'], undefined],
    [
      'not one that could not be asked until a moment ago',
      1,
      [...Array<Probe>(6).fill('CredentialPluginFailed'), 'Timeout'],
      undefined,
    ],
    ['one that has not answered three probes', 1, Array<Probe>(3).fill('Timeout'), undefined],
    ['one that has not answered four', 1, Array<Probe>(4).fill('Timeout'), 'silent'],
  ];
  it.each(probes)(
    'of those that do not answer every ten seconds is silent: %s',
    (_, successThreshold, answers, heard) => {
      expect(heardOf(probed(answers, successThreshold))).toBe(heard);
    },
  );
});

describe('the word that nothing runs on a virtual node', () => {
  it.each<[string, FencingState | undefined, boolean | undefined, Heard, FencingState | undefined]>([
    ['counts while nothing comes from the member', undefined, true, 'silent', 'Fenced'],
    ['goes on to count', 'Fenced', true, 'silent', 'Fenced'],
    ['and when the member answers with errors in between', 'Fenced', true, undefined, 'Fenced'],
    ['is not given while nobody knows whether the member answers', undefined, true, undefined, undefined],
    ['is refused while it answers', undefined, true, 'answers', 'Refused'],
    ['and stays so when it falls silent later', 'Refused', true, 'silent', 'Refused'],
    ['is used up once it answers', 'Fenced', true, 'answers', 'Refused'],
    ['is what it was while the Node is not seen', 'Fenced', undefined, 'answers', 'Fenced'],
    ['ends with the taint', 'Fenced', false, 'silent', undefined],
    ['also when it was refused', 'Refused', false, 'silent', undefined],
  ])('%s', (_, before, isTainted, member, after) => {
    expect(nextFencing(before, isTainted, member)).toBe(after);
  });

  it('counts only where it was given after the member fell silent, and in that very moment', () => {
    const step = fc.record({
      isTainted: fc.constantFrom(true, true, false, undefined),
      member: fc.constantFrom<Heard>('answers', 'silent', 'silent', undefined),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let state: FencingState | undefined;
        let hasAnswered = false;
        for (const { isTainted, member } of steps) {
          state = nextFencing(state, isTainted, member);
          // Since the taint was put there, as far as that was seen.
          if (isTainted === false) hasAnswered = false;
          else if (isTainted === true && member === 'answers') hasAnswered = true;
          const counts = isFenced(state, isTainted, member);
          if (counts) expect([hasAnswered, isTainted, member]).toEqual([false, true, 'silent']);
          if (!hasAnswered && isTainted === true && member === 'silent') expect(counts).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

function hostWith(status: JsonObject = {}): MemoryApi {
  const host = new MemoryApi();
  const body = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east' },
    spec: { kubeconfigSecretRef: { namespace: 'fleet', name: 'east' } },
  };
  host.handle({ method: 'POST', path: MEMBERS, query: {}, body, contentType: '' });
  host.edit(EAST, { status });
  host.seen.length = 0;
  return host;
}

function recordOn(host: MemoryApi): FencingRecord {
  const uid = host.objects.get(EAST)?.metadata.uid;
  return new FencingRecord({ host: host.client('host'), member: { name: 'east', uid } });
}

function fencingIn(host: MemoryApi): unknown {
  return (host.objects.get(EAST) as { status?: { fencing?: unknown } } | undefined)?.status?.fencing;
}

describe('the record of it', () => {
  it('is what the host has stored, and leaves all else of the status alone', async () => {
    const host = hostWith({ version: 'v1', fencing: { nodes: { east: 'Fenced' }, pods: { a: 'east/shop/a' } } });
    const record = recordOn(host);
    expect(record.isRead).toBe(false);
    await record.read(SIGNAL);
    expect([record.isRead, [...record.nodes], [...record.pods]]).toEqual([
      true,
      [['east', 'Fenced']],
      [['a', 'east/shop/a']],
    ]);
    expect(await record.tell('b', 'east/shop/b', SIGNAL)).toBe(true);
    await record.setNode('east', undefined, SIGNAL);
    await record.forget(['a'], SIGNAL);
    expect(host.objects.get(EAST)).toMatchObject({ status: { version: 'v1' } });
    expect(fencingIn(host)).toEqual({ nodes: {}, pods: { b: 'east/shop/b' } });
  });

  it('of a MemberCluster that is not there any more says nothing, and stores nothing', async () => {
    const record = recordOn(new MemoryApi());
    await record.read(SIGNAL);
    expect([record.isRead, record.pods.size]).toEqual([true, 0]);
    await expect(record.tell('a', 'east/shop/a', SIGNAL)).rejects.toMatchObject({ code: 404 });
    expect(record.pods.size).toBe(0);
  });

  it('writes what comes together as one, and answers each once its own is stored', async () => {
    const host = hostWith();
    const record = recordOn(host);
    await record.read(SIGNAL);
    const uids = Array.from({ length: 200 }, (_, index) => `uid-${index}`);
    const answers = await Promise.all(
      uids.map(async (uid) => {
        const isStored = await record.tell(uid, 'east/shop/x', SIGNAL);
        return isStored && Object.keys((fencingIn(host) as { pods: object }).pods).includes(uid);
      }),
    );
    expect(answers).toEqual(uids.map(() => true));
    expect(host.requests('PATCH').length).toBeLessThanOrEqual(3);
    expect(await record.tell('uid-1', 'east/shop/x', SIGNAL)).toBe(true);
    expect(host.requests('PATCH').length).toBeLessThanOrEqual(3);
  });

  it('has an end, also for those that come together', async () => {
    const pods = Object.fromEntries(Array.from({ length: MOST_FENCED_PODS - 2 }, (_, index) => [`u${index}`, 'x']));
    const record = recordOn(hostWith({ fencing: { pods } }));
    await record.read(SIGNAL);
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((uid) => record.tell(uid, 'east/shop/x', SIGNAL)));
    expect(answers).toEqual([true, true, false, false]);
    expect(record.pods.size).toBe(MOST_FENCED_PODS);
  });

  it('says that nothing is stored where an older definition of the kind drops it', async () => {
    const host = hostWith();
    const record = recordOn(host);
    await record.read(SIGNAL);
    const client = host.client('host');
    const pruning = new FencingRecord({
      host: {
        cluster: client.cluster,
        server: client.server,
        request: async (r: Parameters<typeof client.request>[0]) => {
          const { fencing: _, ...status } = (r.body as { status: { fencing: unknown } } | undefined)?.status ?? {};
          return await client.request(r.body === undefined ? r : { ...r, body: { status } });
        },
      } as never,
      member: { name: 'east', uid: undefined },
    });
    await pruning.read(SIGNAL);
    expect(await pruning.tell('a', 'east/shop/a', SIGNAL)).toBe(false);
  });

  it('takes no word about a node that was overtaken, and keeps the newest answer', async () => {
    const host = hostWith();
    const record = recordOn(host);
    await record.read(SIGNAL);
    const patch = host.requests('PATCH').length;
    await record.setNode('east', 'Fenced', SIGNAL);
    const [first] = host.requests('PATCH').slice(patch);
    await record.setNode('east', 'Refused', SIGNAL);
    // The first one is carried out once more, late.
    const again = host.client('host').request({
      method: 'PATCH',
      path: `${EAST}/status`,
      body: first?.body,
      headers: { 'content-type': 'application/merge-patch+json' },
    } as never);
    await expect(again).rejects.toMatchObject({ code: 409 });
    expect(fencingIn(host)).toEqual({ nodes: { east: 'Refused' } });
  });

  it('answers that come in another order than they were given change nothing', async () => {
    const host = hostWith();
    const client = host.client('host');
    const late: (() => void)[] = [];
    const slow = {
      cluster: client.cluster,
      server: client.server,
      request: async (r: Parameters<typeof client.request>[0]) => {
        const answer = await client.request(r);
        if (JSON.stringify(r.body ?? '').includes('"pods"')) await new Promise<void>((resolve) => late.push(resolve));
        return answer;
      },
    };
    const uid = host.objects.get(EAST)?.metadata.uid;
    const record = new FencingRecord({ host: slow as never, member: { name: 'east', uid } });
    await record.read(SIGNAL);
    const told = record.tell('a', 'east/shop/a', SIGNAL);
    await new Promise((resolve) => setImmediate(resolve));
    await record.setNode('east', 'Fenced', SIGNAL);
    for (const release of late) release();
    expect(await told).toBe(true);
    expect([...record.nodes]).toEqual([['east', 'Fenced']]);
  });

  it('a write that fails fails for all that it was for, and the next one is tried', async () => {
    const host = hostWith();
    const record = recordOn(host);
    await record.read(SIGNAL);
    host.fault = ({ method }) => (method === 'PATCH' ? { code: 409, reason: 'Conflict' } : undefined);
    const failed = await Promise.allSettled(['a', 'b', 'c'].map((uid) => record.tell(uid, 'east/shop/x', SIGNAL)));
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    host.fault = undefined;
    expect(await record.tell('a', 'east/shop/a', SIGNAL)).toBe(true);
  });
});

describe('virtual nodes that an administrator has taken out of service', () => {
  let host: MemoryApi;
  let member: MemoryApi;
  let tainted: Map<string, boolean | undefined>;
  let reachability: Reachability;
  let identityOk: boolean;
  let unansweredMs: () => number;
  let mayWriteHost: boolean;
  let told: string[];
  let changed: string[];
  let fencing: MemberFencing;
  let stop: AbortController;
  let running: Promise<void>;
  beforeEach(() => {
    vi.useFakeTimers();
    host = hostWith();
    member = new MemoryApi();
    tainted = new Map([['east', true]]);
    [reachability, identityOk, mayWriteHost] = [down(), true, true];
    unansweredMs = () => (reachability.reachable === true ? 0 : SILENT_MS);
    [told, changed] = [[], []];
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await running;
    vi.useRealTimers();
  });

  async function start(): Promise<void> {
    stop = new AbortController();
    fencing = new MemberFencing({
      record: recordOn(host),
      hostId: HOST_ID,
      connection: {
        name: 'east',
        client: member.client('east'),
        get reachability() {
          return reachability;
        },
        identityOk: () => identityOk,
        get unansweredMs() {
          return unansweredMs();
        },
      },
      tainted: () => tainted,
      mayWriteHost: () => mayWriteHost,
      notEnded: () => [],
      changed: (node) => void changed.push(node),
      event: (node, type, reason) => void told.push(`${node} ${type} ${reason}`),
      logger: pino({ level: 'silent' }),
      monotonic: () => Date.now(),
    });
    running = fencing.run(stop.signal);
    await vi.advanceTimersByTimeAsync(10);
  }
  async function look(): Promise<void> {
    fencing.touch();
    await vi.advanceTimersByTimeAsync(10);
  }
  const states = () => (fencingIn(host) as { nodes?: object } | undefined)?.nodes;

  it('count, and are told once', async () => {
    await start();
    expect(fencing.isFenced('east')).toBe(true);
    expect([states(), told, fencing.finding()]).toEqual([
      { east: 'Fenced' },
      ['east Normal OutOfService'],
      { fenced: ['east'], refused: [], pods: 0, notEnded: [] },
    ]);
    changed.length = 0;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([host.requests('PATCH').length, told.length, changed]).toEqual([1, 1, []]);
  });

  it('do not count for a process that has just begun, until the member has been silent for a while', async () => {
    const began = Date.now();
    unansweredMs = () => Date.now() - began;
    await start();
    await vi.advanceTimersByTimeAsync(SILENT_MS - 100);
    expect([fencing.isFenced('east'), states(), told]).toEqual([false, undefined, []]);
    await vi.advanceTimersByTimeAsync(10_100);
    expect([fencing.isFenced('east'), states()]).toEqual([true, { east: 'Fenced' }]);
  });

  it('do not count before that is stored', async () => {
    host.fault = ({ method }) => (method === 'PATCH' ? { code: 409 } : undefined);
    await start();
    expect([fencing.isFenced('east'), told]).toEqual([false, []]);
    host.fault = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(fencing.isFenced('east')).toBe(true);
  });

  it('count for the next process, too', async () => {
    await start();
    stop.abort();
    await running;
    told.length = 0;
    await start();
    expect([fencing.isFenced('east'), told]).toEqual([true, []]);
  });

  it.each<[string, () => void]>([
    ['the taint is taken away', () => tainted.set('east', false)],
    ['the Node is not there', () => tainted.set('east', undefined)],
    ['the member answers', () => (reachability = up)],
    ['it answers with errors', () => (unansweredMs = () => 0)],
    ['this process may not act', () => (mayWriteHost = false)],
  ])('count no more from the moment on that %s', async (_, ends) => {
    await start();
    ends();
    expect(fencing.isFenced('east')).toBe(false);
  });

  it('have pods looked at again when they count anew, after a restart or an answer in between, though nothing is stored', async () => {
    await start();
    stop.abort();
    await running;
    unansweredMs = () => 0;
    await start();
    changed.length = 0;
    unansweredMs = () => SILENT_MS;
    await vi.advanceTimersByTimeAsync(10_000);
    expect([fencing.isFenced('east'), changed]).toEqual([true, ['east']]);
    unansweredMs = () => 0;
    await vi.advanceTimersByTimeAsync(10_000);
    unansweredMs = () => SILENT_MS;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([fencing.isFenced('east'), changed]).toEqual([true, ['east', 'east', 'east']]);
    expect(host.requests('PATCH').length).toBe(1);
  });

  it('are refused while the member answers, also by the next process and in the next outage, until they are said anew', async () => {
    reachability = up;
    await start();
    expect([fencing.isFenced('east'), told]).toEqual([false, ['east Warning OutOfServiceRefused']]);
    expect(fencing.finding()).toEqual({ fenced: [], refused: ['east'], pods: 0, notEnded: [] });
    reachability = down();
    stop.abort();
    await running;
    await start();
    await look();
    expect([fencing.isFenced('east'), states()]).toEqual([false, { east: 'Refused' }]);
    tainted.set('east', false);
    await look();
    tainted.set('east', true);
    await look();
    expect([fencing.isFenced('east'), states()]).toEqual([true, { east: 'Fenced' }]);
    expect(told.slice(1)).toEqual(['east Normal BackInService', 'east Normal OutOfService']);
  });

  it('are not refused while probes fail that do not make the member unreachable yet, and count in that outage', async () => {
    const failing: Reachability = { ...down(), reachable: true, against: 1 };
    reachability = failing;
    await start();
    expect([fencing.isFenced('east'), states(), told]).toEqual([false, undefined, []]);
    reachability = down();
    await look();
    expect([fencing.isFenced('east'), states(), told]).toEqual([
      true,
      { east: 'Fenced' },
      ['east Normal OutOfService'],
    ]);
  });

  it('are refused by the next good probe when only one was lost', async () => {
    reachability = { ...down(), reachable: true, against: 1 };
    await start();
    reachability = up;
    await look();
    expect([states(), told]).toEqual([{ east: 'Refused' }, ['east Warning OutOfServiceRefused']]);
  });

  it('that are none of the member’s any more are not spoken of once it answers', async () => {
    await start();
    tainted.clear();
    await look();
    expect(states()).toEqual({ east: 'Fenced' });
    reachability = up;
    await look();
    expect(states()).toEqual({});
  });

  describe('what was ended on them', () => {
    async function copy(name: string, uid: string): Promise<void> {
      const labels = { ...memberPod().metadata.labels, [HOST_LABEL]: HOST_ID, [UID_LABEL]: uid };
      const { uid: _, resourceVersion: __, ...metadata } = memberPod().metadata;
      const body = { ...memberPod(), metadata: { ...metadata, name, labels } };
      await member.client().request({ method: 'POST', path: PODS, body });
    }
    const pods = () => Object.keys((fencingIn(host) as { pods?: object }).pods ?? {});
    async function ended(): Promise<void> {
      await start();
      for (const uid of ['a', 'b']) await fencing.tell(uid, `east/shop/${uid}`, SIGNAL);
      await copy('web-a', 'a');
    }

    it('is forgotten once the member has answered for two minutes and has none of it', async () => {
      await ended();
      reachability = up;
      await look();
      await vi.advanceTimersByTimeAsync(115_000);
      expect(pods()).toEqual(['a', 'b']);
      await vi.advanceTimersByTimeAsync(15_000);
      expect([pods(), fencing.isTold('a'), fencing.isTold('b')]).toEqual([['a'], true, false]);
      member.delete(`${PODS}/web-a`);
      await vi.advanceTimersByTimeAsync(15_000);
      expect([pods(), fencing.told.size]).toEqual([[], 0]);
    });

    it.each<[string, () => void]>([
      ['while the member does not answer', () => undefined],
      ['while another cluster answers', () => ([reachability, identityOk] = [up, false])],
      ['while it cannot be read', () => ([reachability, member.fault] = [up, () => ({ code: 503 })])],
    ])('is not forgotten %s', async (_, so) => {
      await ended();
      so();
      await look();
      await vi.advanceTimersByTimeAsync(300_000);
      expect(pods()).toEqual(['a', 'b']);
    });

    it('is not forgotten by the list of another cluster, which took its place in that moment', async () => {
      await ended();
      member.delete(`${PODS}/web-a`);
      reachability = up;
      await look();
      member.fault = () => {
        identityOk = false;
        return undefined;
      };
      await vi.advanceTimersByTimeAsync(300_000);
      expect(pods()).toEqual(['a', 'b']);
    });

    it('begins its two minutes anew when the member falls silent again', async () => {
      await ended();
      reachability = up;
      await look();
      await vi.advanceTimersByTimeAsync(100_000);
      reachability = down();
      await look();
      reachability = up;
      await look();
      await vi.advanceTimersByTimeAsync(100_000);
      expect(pods()).toEqual(['a', 'b']);
    });
  });
});
