import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { Fault, FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { describeWrite, newNamespace, writesOf } from '../fixtures/live-pods.ts';
import { isPodOf, Lab, numbered, report, seconds, wait } from './lab.ts';
import { SteadyPods } from './steady-pods.ts';

const asksForPods = ({ method, path }: ProxiedRequest): boolean => method === 'GET' && path.endsWith('/pods');

describe('API servers that lie', () => {
  let lab: Lab;
  let steady: SteadyPods;
  const both = (): FaultProxy[] => [lab.proxies.host, lab.proxies.member];

  beforeAll(async () => {
    // Here the manager does what virtual nodes do.
    lab = await Lab.start({ proxied: ['host', 'member'], hostIdentity: 'ServiceAccount' });
    steady = await SteadyPods.run(lab);
  });
  afterAll(() => lab?.close());

  afterEach(async () => {
    for (const proxy of both()) {
      proxy.clear();
      proxy.thaw();
    }
    await lab.works();
    await steady.expectUntouched();
    expect(lab.violations()).toEqual([]);
  });

  test('F12: watches answer 410, in the stream and as a status', async (context) => {
    const lists = await lab.metric('kube_informer_lists_total', 'pods');
    const began = Date.now();
    for (const proxy of both()) {
      proxy.inject(
        { kind: 'status', code: 410, reason: 'Expired' },
        ({ watch, query }) => watch && query.get('sendInitialEvents') === null,
        20,
      );
      proxy.inject(
        { kind: 'gone-event', afterLines: 0 },
        ({ watch, query }) => watch && query.get('sendInitialEvents') === null,
        20,
      );
      proxy.resetConnections();
    }
    await until(
      'pods were listed anew on both sides',
      async () => (await lab.metric('kube_informer_lists_total', 'pods')) >= lists + 2,
      {
        timeoutMs: 60_000,
      },
    );
    const listed = Date.now() - began;
    for (const proxy of both()) proxy.clear();
    const works = await lab.works();
    report(
      context,
      ['F12'],
      'listed anew, nothing written',
      `50 pods: 0 writes; listed after ${seconds(listed)}, next pod ran in ${seconds(works)}`,
    );
  });

  test('F13: lists answer 200 with {}, HTML, half of the bytes, or no items', async (context) => {
    const empty = JSON.stringify({
      kind: 'PodList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '99999999' },
      items: [],
    });
    const lies: [string, Fault][] = [
      ['{}', { kind: 'body', body: '{}' }],
      ['HTML', { kind: 'body', body: '<html><body>Sign in</body></html>', contentType: 'text/html' }],
      ['half of the bytes', { kind: 'truncate' }],
      ['no items', { kind: 'body', body: empty }],
    ];
    let refused = 0;
    for (const [, lie] of lies) {
      const seen = await lab.metric('kube_informer_lists_refused_total', 'pods');
      // Streamed lists are refused, so that plain ones have to be asked for.
      for (const proxy of both()) {
        proxy.inject(lie, (request) => asksForPods(request) && !request.watch);
        proxy.inject(
          { kind: 'status', code: 400, reason: 'BadRequest' },
          (request) => request.watch && request.query.get('sendInitialEvents') === 'true',
        );
        proxy.inject(
          { kind: 'status', code: 410, reason: 'Expired' },
          (request) => asksForPods(request) && request.watch && request.query.get('sendInitialEvents') === null,
        );
        proxy.resetConnections();
      }
      await until(
        'the answers were refused on both sides',
        async () => (await lab.metric('kube_informer_lists_refused_total', 'pods')) >= seen + 2,
        {
          timeoutMs: 60_000,
        },
      );
      await wait(5_000);
      refused += (await lab.metric('kube_informer_lists_refused_total', 'pods')) - seen;
      for (const proxy of both()) proxy.clear();
      await lab.works(90_000);
      await steady.expectAlive();
    }
    report(
      context,
      ['F13'],
      'refused, nothing deleted',
      `4 kinds of lies on both sides: ${refused} answers refused, 50 pods: 0 writes`,
    );
  });

  test('F14: a stale API server serves the past', async (context) => {
    const ns = await newNamespace(lab.host, 'past');
    const past = both().map((proxy) => [proxy, proxy.record()] as const);
    for (const proxy of both()) {
      proxy.inject(
        { kind: 'status', code: 410, reason: 'Expired' },
        ({ watch, path, query }) => watch && path.endsWith('/pods') && query.get('sendInitialEvents') === null,
        1,
      );
      proxy.inject(
        { kind: 'status', code: 400, reason: 'BadRequest' },
        ({ watch, query }) => watch && query.get('sendInitialEvents') === 'true',
      );
      proxy.resetConnections();
    }
    await until(
      'the past is recorded',
      () =>
        past.every(([, recording]) =>
          [...recording.keys()].some((url) => /\/pods\?/.test(url) && !url.includes('watch=')),
        ),
      {
        timeoutMs: 60_000,
      },
    );
    await lab.works();
    await lab.runPods(ns, numbered(10, 'new'));
    const now = await lab.lives(ns);
    const backward = await lab.metric('kube_informer_lists_refused_total', 'backward');
    const from = Date.now();
    for (const [proxy, recording] of past) {
      proxy.inject({ kind: 'replay', recording }, (request) => asksForPods(request) && !request.watch);
      proxy.inject(
        { kind: 'status', code: 410, reason: 'Expired' },
        (request) => asksForPods(request) && request.watch,
      );
      proxy.resetConnections();
    }
    await until(
      'the past was refused on both sides',
      async () => (await lab.metric('kube_informer_lists_refused_total', 'backward')) >= backward + 2,
      {
        timeoutMs: 60_000,
      },
    );
    await wait(5_000);
    for (const proxy of both()) proxy.clear();
    await lab.works(90_000);
    expect(await lab.lives(ns)).toEqual(now);
    expect([...writesOf(lab.host, from), ...writesOf(lab.member, from)].filter(isPodOf(ns)).map(describeWrite)).toEqual(
      [],
    );

    // And the other way round: true lists that claim to be of the far future, once on each side.
    const turned = await lab.metric('kube_informer_turned_back_total', 'pods');
    const edit = (line: string): string =>
      line.replaceAll(
        /("metadata":\{(?:"annotations":\{"k8s\.io\/initial-events-end":"true"\},)?"resourceVersion":)"\d+"/g,
        '$1"99999999"',
      );
    const lies = both().map((proxy) => {
      const lists = ({ watch, query }: ProxiedRequest): boolean => !watch || query.get('sendInitialEvents') === 'true';
      proxy.inject(
        { kind: 'status', code: 410, reason: 'Expired' },
        ({ watch, path, query }) => watch && path.endsWith('/pods') && query.get('sendInitialEvents') === null,
        1,
      );
      const lie = proxy.inject({ kind: 'edit', edit }, (request) => asksForPods(request) && lists(request), 1);
      proxy.resetConnections();
      return lie;
    });
    await Promise.all(lies.map((lie) => lie.hit()));
    const told = Date.now();
    const after = await lab.works(240_000);
    await until(
      'both caches have come back',
      async () => (await lab.metric('kube_informer_turned_back_total', 'pods')) >= turned + 2,
      { timeoutMs: 240_000, intervalMs: 1_000 },
    );
    const back = Date.now() - told;
    expect(await lab.lives(ns)).toEqual(now);
    expect([...writesOf(lab.host, from), ...writesOf(lab.member, from)].filter(isPodOf(ns)).map(describeWrite)).toEqual(
      [],
    );
    report(
      context,
      ['F14'],
      'refused, nothing done',
      'lists from before 10 pods existed, on both sides: 0 writes about 60 pods; ' +
        `after lists of version 99999999 a new pod ran in ${seconds(after)}, both caches were at the truth in ${seconds(back)}`,
    );
  }, 600_000);
});
