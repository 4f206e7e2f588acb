import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { FaultProxy, type Fault, type ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { eventually, follow, type Followed } from '../fixtures/followed-collection.ts';
import { startHttpServer } from '../fixtures/http-server.ts';

let server: CollectionServer;
let proxy: FaultProxy;
const followers: Followed[] = [];

beforeEach(async () => {
  server = await CollectionServer.start();
  proxy = await FaultProxy.start({ server: server.http.url });
  for (const name of ['a', 'b', 'c']) {
    server.put(name);
  }
});
afterEach(async () => {
  try {
    await Promise.all(followers.splice(0).map((one) => one.stop()));
  } finally {
    await proxy.close();
    await server.close();
  }
});

function start(options: Parameters<typeof follow>[1] = {}): Followed {
  const followed = follow(staticAccess({ endpoint: { server: proxy.url } }), options);
  followers.push(followed);
  return followed;
}

async function synced(options: Parameters<typeof follow>[1] = {}): Promise<Followed> {
  const followed = start(options);
  await followed.informer.whenSynced(AbortSignal.timeout(5_000));
  expect(followed.state()).toEqual(server.state());
  return followed;
}

async function converged(followed: Followed, deadlineMs?: number): Promise<void> {
  const same = (): boolean => JSON.stringify(followed.state()) === JSON.stringify(server.state());
  await eventually(same, () => ({ cache: followed.state(), api: server.state(), log: followed.log }), deadlineMs);
}

const isWatch = (request: ProxiedRequest): boolean => request.watch && !request.query.has('sendInitialEvents');
/** Asks only how far the collection has come. */
const isCheck = (request: ProxiedRequest): boolean => request.query.get('limit') === '1';
const isListing = (request: ProxiedRequest): boolean =>
  (!request.watch && !isCheck(request)) || request.query.has('sendInitialEvents');
const lists = (): number => proxy.seen.filter(isListing).length;

/** Creates, changes, deletes and recreates; returns the UIDs that are really gone. */
function disturb(round: number): Set<string> {
  const gone = new Set<string>();
  const remove = (name: string): void => {
    const uid = server.objects.get(name)?.metadata.uid;
    if (uid !== undefined) {
      gone.add(uid);
    }
    server.delete(name);
  };
  server.put('a', `round ${round}`);
  server.put(`new-${round}`);
  remove('b');
  server.put('b', 'recreated');
  server.put('c', `round ${round}`);
  remove(`new-${round - 1}`);
  return gone;
}

/** Changes that the informer can only learn from a list: while cut off, and forgotten by the watch. */
function changeUnseen(change: () => void): void {
  proxy.freeze();
  change();
  server.compacted = server.version;
  proxy.resetConnections();
  proxy.thaw();
}

describe.each([
  ['streamed', true],
  ['paged', false],
])('with %s lists', (_name, watchList) => {
  beforeEach(() => {
    server.watchList = watchList;
  });

  const faults: [string, Fault, ((request: ProxiedRequest) => boolean)?][] = [
    ['a reset before the answer', { kind: 'reset', when: 'before' }],
    ['a reset within the answer', { kind: 'reset', when: 'after' }],
    ['latency', { kind: 'slow', ms: 100 }],
    ['429 with Retry-After', { kind: 'status', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 }],
    ['500', { kind: 'status', code: 500, reason: 'InternalError' }],
    ['503', { kind: 'status', code: 503, reason: 'ServiceUnavailable' }],
    ['401', { kind: 'status', code: 401, reason: 'Unauthorized' }],
    ['403', { kind: 'status', code: 403, reason: 'Forbidden' }],
    ['404', { kind: 'status', code: 404, reason: 'NotFound' }],
    ['a request that hangs', { kind: 'hang' }],
    ['a watch that goes silent at once', { kind: 'silence', afterLines: 0 }, isWatch],
    ['a watch that goes silent after two events', { kind: 'silence', afterLines: 2 }, isWatch],
    ['a truncated body', { kind: 'truncate' }, isListing],
    ['200 with {}', { kind: 'body', body: '{}' }],
    ['200 with {} and a newline', { kind: 'body', body: '{}\n' }],
    ['200 with HTML', { kind: 'body', body: '<html><body>Sign in</body></html>\n', contentType: 'text/html' }],
    ['200 with nothing', { kind: 'body', body: '' }],
    ['410 as HTTP', { kind: 'status', code: 410, reason: 'Expired' }],
    ['410 as an event at once', { kind: 'gone-event', afterLines: 0 }, isWatch],
    ['410 as an event after one event', { kind: 'gone-event', afterLines: 1 }, isWatch],
    ['events twice in a row', { kind: 'duplicate' }, isWatch],
    ['events again later', { kind: 'duplicate', late: true }, isWatch],
    ['events in another order', { kind: 'reorder' }, isWatch],
  ];

  it.each(faults)('survives %s: nothing is missed, nothing invented', async (_fault, fault, match) => {
    const followed = await synced();
    const rule = proxy.inject(fault, match, 2);
    const gone = new Set<string>();
    for (let round = 1; rule.hits < 2 && round < 300; round++) {
      for (const uid of disturb(round)) {
        gone.add(uid);
      }
      if (fault.kind === 'truncate') {
        server.compacted = server.version; // lists are what it breaks, so make it list
      }
      if (round % 4 === 1) {
        proxy.resetConnections();
      }
      const next = rule.hit(rule.hits + 1);
      await Promise.race([next, new Promise((resolve) => setTimeout(resolve, 20))]);
    }
    expect(rule.hits).toBe(2);
    proxy.clear();
    server.put('last');
    await converged(followed);
    for (const uid of followed.deletedUids) {
      expect(gone).toContain(uid);
    }
    expect(await followed.metric('kube_informer_handler_errors_total')).toBe(0);
  });

  it('follows through a black hole, and shows how old the cache is', async () => {
    const followed = await synced();
    proxy.freeze();
    const gone = disturb(1);
    await eventually(
      () => followed.informer.staleMs() > 2_500 && followed.informer.problem !== undefined,
      () => ({
        stale: followed.informer.staleMs(),
        problem: followed.informer.problem,
      }),
    );
    expect(followed.deletedUids.size).toBe(0);
    proxy.thaw();
    await converged(followed);
    await eventually(
      () => followed.informer.problem === undefined,
      () => followed.informer.problem,
    );
    expect(followed.informer.staleMs()).toBeLessThan(2_500);
    expect(followed.deletedUids).toEqual(gone);
  });

  it('keeps the cache when a list is older than what is known', async () => {
    const followed = await synced();
    const before = followed.state();
    server.objects.clear();
    server.rewind(50);
    server.put('z');
    server.compacted = 1_000;
    proxy.resetConnections();
    // Longer than an older state that goes on would take to be believed.
    const began = performance.now();
    const refused = async (): Promise<number> =>
      followed.metric('kube_informer_lists_refused_total', { reason: 'backward' });
    let count = 0;
    await eventually(
      () => {
        void refused().then((value) => (count = value));
        return count >= 4 && performance.now() - began > 1_500;
      },
      () => ({ count }),
    );
    expect(followed.state()).toEqual(before);
    expect(followed.deletedUids.size).toBe(0);
    expect(followed.informer.problem).toContain('51');
    expect(await followed.metric('kube_informer_turned_back_total')).toBe(0);
  });

  it('believes an older state that goes on for a while, and every object of it', async () => {
    const followed = await synced({ mayTurnBack: true });
    server.objects.delete('a');
    server.rewind(50);
    server.put('b', 'as it was');
    server.compacted = 1_000;
    proxy.resetConnections();
    for (let round = 0; ; round++) {
      expect(round).toBeLessThan(500);
      const { size } = followed.deletedUids;
      if ((await followed.metric('kube_informer_turned_back_total')) > 0) break;
      expect(size).toBe(0);
      server.put('elsewhere', `round ${round}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    server.compacted = 0;
    await converged(followed);
    server.put('b', 'and on');
    await converged(followed);
    expect(followed.deletedUids.size).toBe(1);
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'backward' })).toBeGreaterThan(0);
  });

  it('comes back to the truth after a list that claimed to be of the far future', async () => {
    const followed = await synced({ mayTurnBack: true });
    // Of a streamed list the end and what comes before it, not what comes after.
    const edit = (line: string): string =>
      line.includes('"type":"MODIFIED"')
        ? line
        : line.replaceAll(/"resourceVersion":"\d+"/g, '"resourceVersion":"99999999"');
    const lie = proxy.inject({ kind: 'edit', edit }, isListing, 1);
    changeUnseen(() => server.put('d'));
    await lie.hit();
    await eventually(
      () => followed.informer.resourceVersion === '99999999',
      () => followed.informer.resourceVersion,
    );
    // From there the server sends nothing, and is not wrong in that.
    const same = (): boolean => JSON.stringify(followed.state()) === JSON.stringify(server.state());
    for (let round = 0; !same(); round++) {
      expect(round).toBeLessThan(500);
      server.put('b', `round ${round}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (round % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 200));
    }
    server.delete('c');
    await converged(followed);
    expect(await followed.metric('kube_informer_turned_back_total')).toBe(1);
  });

  it('keeps what is found by name, however often the list is empty', async () => {
    const followed = await synced();
    const metadata = { resourceVersion: '900' };
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const end = { type: 'BOOKMARK', object: { kind: 'ConfigMap', metadata: { ...metadata, annotations } } };
    const list = JSON.stringify({ kind: 'ConfigMapList', apiVersion: 'v1', metadata, items: [] });
    const isListOfAll = (request: ProxiedRequest): boolean =>
      isListing(request) && request.path.endsWith('/configmaps');
    const rules = [
      proxy.inject({ kind: 'body', body: list }, (request) => isListOfAll(request) && !request.watch),
      proxy.inject(
        { kind: 'body', body: `${JSON.stringify(end)}\n` },
        (request) => isListOfAll(request) && request.watch,
      ),
    ];
    changeUnseen(() => server.put('d'));
    await rules[0]?.hit(4);
    expect(followed.deletedUids.size).toBe(0);
    proxy.clear();
    await converged(followed);
    expect(followed.deletedUids.size).toBe(0);
  });

  it('does not believe one empty list, however well-formed', async () => {
    const followed = await synced();
    const emptyList = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '900' }, items: [] };
    const end = {
      kind: 'ConfigMap',
      metadata: { resourceVersion: '900', annotations: { 'k8s.io/initial-events-end': 'true' } },
    };
    const body = watchList ? `${JSON.stringify({ type: 'BOOKMARK', object: end })}\n` : JSON.stringify(emptyList);
    const rule = proxy.inject({ kind: 'body', body }, isListing, 1);
    server.rewind(1_000);
    server.compacted = 1_000;
    proxy.resetConnections();
    await rule.hit();
    server.put('d');
    await converged(followed);
    expect(followed.deletedUids.size).toBe(0);
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'empty' })).toBe(1);
  });

  it('believes an empty list that a second read confirms', async () => {
    const followed = await synced();
    changeUnseen(() => {
      for (const name of ['a', 'b', 'c']) {
        server.delete(name);
      }
    });
    await converged(followed);
    expect(followed.log.slice(3).toSorted()).toEqual([
      'deleted a@101 relisted',
      'deleted b@102 relisted',
      'deleted c@103 relisted',
    ]);
  });

  interface FakeList {
    kind: string;
    metadata: Record<string, unknown>;
    items: unknown[];
  }
  it.each<[string, (list: FakeList) => void]>([
    ['of another kind', (fake) => (fake.kind = 'Secret')],
    ['without a resourceVersion', (fake) => delete fake.metadata['resourceVersion']],
    ['of things without a UID', (fake) => (fake.items[0] = { metadata: { name: 'x', resourceVersion: '5' } })],
    ['of things without a name', (fake) => (fake.items[0] = { metadata: { uid: 'u', resourceVersion: '5' } })],
    ['of something else', (fake) => (fake.items[0] = 'x')],
  ])('keeps the cache after a list %s', async (_what, spoil) => {
    const followed = await synced();
    const metadata = { resourceVersion: '900', annotations: { 'k8s.io/initial-events-end': 'true' } };
    const item = { metadata: { name: 'x', uid: 'u', resourceVersion: '5' } };
    const fake: FakeList = { kind: 'ConfigMap', metadata, items: [item] };
    spoil(fake);
    const { kind, items } = fake;
    const events = items.map((one) => ({ type: 'ADDED', object: typeof one === 'object' ? { kind, ...one } : one }));
    const lines = [...events, { type: 'BOOKMARK', object: { kind, metadata } }];
    const body = watchList
      ? lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      : JSON.stringify({ kind: `${kind}List`, metadata, items });
    const rule = proxy.inject({ kind: 'body', body }, isListing, 2);
    changeUnseen(() => server.put('d'));
    await rule.hit(2);
    await converged(followed);
    expect(followed.deletedUids.size).toBe(0);
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'malformed' })).toBeGreaterThan(0);
  });

  it('never takes a replayed older state for the present', async () => {
    const recording = proxy.record();
    const followed = await synced();
    proxy.record();
    server.delete('a');
    server.put('d');
    await converged(followed);
    const rule = proxy.inject({ kind: 'replay', recording }, isListing, 2);
    changeUnseen(() => server.put('e'));
    await rule.hit(2);
    proxy.clear();
    await converged(followed);
    expect(followed.log.filter((line) => line.startsWith('added a@'))).toHaveLength(1);
  });

  it('lists again when events come out of order, because others may be missing', async () => {
    const followed = await synced();
    proxy.freeze();
    for (const name of ['a', 'b', 'c']) {
      server.put(name, 'changed');
    }
    // The last change first, then the first; the one of b never comes.
    const body = ['c', 'a']
      .map((name) => `${JSON.stringify({ type: 'MODIFIED', object: server.objects.get(name) })}\n`)
      .join('');
    const rule = proxy.inject({ kind: 'body', body }, isWatch, 1);
    proxy.resetConnections();
    proxy.thaw();
    await rule.hit();
    await converged(followed);
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'disorder' })).toBe(1);
    expect(await followed.metric('kube_informer_missed_changes_total')).toBeGreaterThan(0);
  });

  it('lists from time to time where watches deliver nothing, ever', async () => {
    const followed = await synced();
    proxy.inject({ kind: 'silence', afterLines: 0 }, isWatch);
    proxy.resetConnections();
    server.put('d');
    await converged(followed);
    expect(followed.deletedUids.size).toBe(0);
  });

  it('watches quiet collections in short turns and lists only once', async () => {
    const followed = await synced();
    await eventually(
      () => proxy.seen.filter(isWatch).length >= 4,
      () => proxy.seen.length,
    );
    expect(lists()).toBe(watchList ? 1 : 2); // the refused attempt to stream counts too
    expect(followed.informer.staleMs()).toBeLessThan(2_000);
  });

  it('lists at once when the place was forgotten during an outage, however often it failed before', async () => {
    const followed = await synced({ timings: { backoffBaseMs: 400, backoffMaxMs: 10_000 } });
    const outage = proxy.inject({ kind: 'reset', when: 'before' });
    proxy.resetConnections();
    await outage.hit(3);
    proxy.clear();
    server.put('unseen');
    server.compacted = server.version;
    const forgotten = proxy.inject({ kind: 'status', code: 410, reason: 'Expired' }, isWatch, 1);
    await forgotten.hit();
    // The next wait would be 1.6 seconds at least.
    await converged(followed, 1_000);
  });

  it('goes on soon after a long outage, also where the server refuses at first, as one that still starts does', async () => {
    const followed = await synced({ timings: { backoffMaxMs: 60_000 } });
    const outage = proxy.inject({ kind: 'reset', when: 'before' });
    proxy.resetConnections();
    await outage.hit(9);
    const starting = proxy.inject({ kind: 'status', code: 403, reason: 'Forbidden' }, isWatch, 1);
    outage.remove();
    server.put('unseen');
    // By the count of failures alone the next wait would be 2.5 seconds at least, and the one after it twice that.
    await converged(followed, 2_000);
    expect(starting.hits).toBe(1);
  });

  it('starts when the API server comes late', async () => {
    const rule = proxy.inject({ kind: 'reset', when: 'before' });
    const followed = start();
    await rule.hit(6);
    expect(followed.informer.hasSynced).toBe(false);
    proxy.clear();
    await followed.informer.whenSynced(AbortSignal.timeout(5_000));
    await converged(followed);
  });
});

describe('the end of an outage', () => {
  it('is that of a watch which was asked for in it, too, though nothing had failed', async () => {
    const followed = await synced({ timings: { busySeconds: [2, 2], quietSeconds: [2, 2], startMs: 60_000 } });
    // One that ends when its time is over is no failure.
    const hang = proxy.inject({ kind: 'hang' }, isWatch, 1);
    await hang.hit();
    server.put('unseen');
    await sleep(1_100);
    expect(followed.informer.problem).toBeUndefined();
    followed.informer.retryNow();
    await converged(followed, 10_000);
  });

  it.each([
    ['it rests', false],
    ['it waits for an answer that never comes', true],
  ])('goes on at once when somebody sees that the server answers again, while %s', async (_, hangs) => {
    const followed = await synced({ timings: { backoffBaseMs: 60_000, backoffMaxMs: 60_000, startMs: 60_000 } });
    const watched = proxy.seen.filter(isWatch).length;
    // Where something was heard just now it is no news.
    followed.informer.retryNow();
    await sleep(100);
    expect(proxy.seen.filter(isWatch)).toHaveLength(watched);
    proxy.resetConnections();
    await eventually(
      () => followed.informer.problem !== undefined && followed.informer.staleMs() > 1_000,
      () => followed.log,
      5_000,
    );
    if (hangs) {
      const hang = proxy.inject({ kind: 'hang' }, isWatch, 1);
      followed.informer.retryNow();
      await hang.hit();
    }
    server.put('unseen');
    const watches = (): ProxiedRequest[] => proxy.seen.filter(isWatch);
    const before = watches().length;
    followed.informer.retryNow();
    await converged(followed, 10_000);
    expect(watches()[before]?.query.get('timeoutSeconds')).toBe('1');
    await eventually(
      () => watches().length > before + 1,
      () => watches(),
      10_000,
    );
    expect(watches()[before + 1]?.query.get('timeoutSeconds')).not.toBe('1');
  });
});

describe('lists', () => {
  it('come in pages of 500 at one version, and start again when that is forgotten', async () => {
    server.watchList = false;
    for (let i = 0; i < 1_100; i++) {
      server.put(`many-${i}`);
    }
    const rule = proxy.inject({ kind: 'status', code: 410, reason: 'Expired' }, (r) => r.query.has('continue'), 1);
    await synced();
    expect(rule.hits).toBe(1);
    const pages = proxy.seen.filter((request) => !request.watch);
    expect(pages.map((page) => page.query.get('limit'))).toEqual(Array.from({ length: 5 }, () => '500'));
  });

  it('are not asked for as a stream again by anyone once the server refused', async () => {
    server.watchList = false;
    const first = await synced();
    await synced({ client: first.client });
    expect(proxy.seen.filter((request) => request.query.has('sendInitialEvents'))).toHaveLength(1);
  });

  it('fall back to pages when a server ignores the wish for a stream', async () => {
    const plain = proxy.inject({ kind: 'silence', afterLines: 0 }, (r) => r.query.has('sendInitialEvents'));
    await synced();
    expect(plain.hits).toBe(1);
  });
});

it('believes no list, and follows no watch after a failure, while another cluster answers', async () => {
  let another = false;
  const access = staticAccess({ endpoint: { server: proxy.url } });
  const client = new KubeClient({
    cluster: 'test',
    ...access,
    confirmCluster: () => (another ? Promise.reject(new Error('another cluster answers')) : Promise.resolve()),
  });
  const followed = await synced({ client });
  const before = followed.state();
  another = true;
  changeUnseen(() => server.delete('b'));
  await eventually(
    () => followed.informer.problem === 'another cluster answers',
    () => followed.informer.problem,
  );
  const listed = lists();
  server.put('d');
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(followed.state()).toEqual(before);
  expect(lists()).toBe(listed);
  another = false;
  await converged(followed);
});

it('waits a bounded time, and never none, where a server names one beyond all timers', async () => {
  let asked = 0;
  const maintenance = await startHttpServer((_req, res) => {
    asked++;
    res.writeHead(503, { 'retry-after': '99999999', 'content-type': 'text/html' }).end('<html>maintenance</html>');
  });
  const followed = follow(staticAccess({ endpoint: { server: maintenance.url } }));
  await eventually(
    () => asked > 0,
    () => asked,
  );
  await sleep(500);
  await followed.stop();
  await maintenance.close();
  expect(asked).toBeLessThan(3);
});
