import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { customKindKey } from '../../src/api/custom-kinds.ts';
import { OwnerDirectory } from '../../src/scheduler/owner-directory.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

const ROLLOUT = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };
const POD_SET = { apiVersion: 'core.strimzi.io/v1', kind: 'StrimziPodSet' };
const KAFKA = { apiVersion: 'kafka.strimzi.io/v1', kind: 'Kafka' };
const ROLLOUTS = '/apis/argoproj.io/v1alpha1/rollouts';
const REVIEWS = '/selfsubjectaccessreviews';

let api: MemoryApi;
let server: MemoryApiServer;
let owners: OwnerDirectory;
let now: number;
let confirmHost: () => Promise<void>;
/** Pods there are, by name; only what they name as their controllers counts. */
const pods = new Map<string, Pod>();
const chosen = new Set<string>();
/** Of these the ones that policies of the whole cluster choose by. */
const chosenForAll = new Set<string>();
let running: Promise<void>;
let ended: AbortController;

interface Kind {
  apiVersion: string;
  kind: string;
}

const byController = ({ apiVersion, kind }: Kind, name: string): object => ({
  ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }],
});

function pod(name: string, of: Kind, owner: string): Pod {
  const metadata = { name, namespace: 'shop', uid: `uid-${name}`, ...byController(of, owner) };
  const made = { metadata, spec: { containers: [] } };
  pods.set(name, made);
  return made;
}

function put(path: string, { apiVersion, kind }: Kind, name: string, more: object = {}): void {
  const group = apiVersion.replace(/^/, '/apis/');
  const metadata = { name, uid: `uid-${name}`, namespace: 'shop', ...more };
  api.put(`${group}/namespaces/shop/${path}/${name}`, { apiVersion, kind, metadata, spec: { replicas: 3 } });
}

const rollout = (name: string, labels: Record<string, string>): void => put('rollouts', ROLLOUT, name, { labels });
const set = (name: string, of: Kind, owner: string): void =>
  put('replicasets', { apiVersion: 'apps/v1', kind: 'ReplicaSet' }, name, byController(of, owner));
const SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };

function directory(): OwnerDirectory {
  return new OwnerDirectory({
    host: server.client('host', undefined, async () => await confirmHost()),
    logger: pino({ level: 'silent' }),
    monotonic: () => now,
    *namedByPods() {
      for (const { metadata } of pods.values()) {
        const key = customKindKey(metadata.ownerReferences?.[0] ?? { apiVersion: 'v1', kind: 'Pod' });
        if (key !== undefined) yield key;
      }
    },
    chosen: () => chosen,
    chosenForAll: () => chosenForAll,
    isComplete: () => true,
    lookMs: 100,
  });
}

function run(): void {
  owners = directory();
  ended = new AbortController();
  running = owners.run(ended.signal);
}

const synced = async (): Promise<void> => {
  await until('all is known', () => owners.hasSynced);
};
const labelsAbove = (one: Pod): (object | undefined)[] =>
  owners
    .chainOf(one)
    .slice(1)
    .map(({ metadata }) => metadata.labels);
const holds = ({ apiVersion, kind }: Kind = ROLLOUT): boolean => owners.holds(apiVersion, kind);
/** Whether its nearest owner is in the caches. */
const isRead = (one: Pod): boolean => {
  const [, above] = owners.chainOf(one);
  return above !== undefined && owners.isRead(above);
};
/** Lists and watches of custom kinds. */
const follows = (): string[] =>
  api.seen
    .filter(({ path, method }) => method === 'GET' && /^\/apis\/(argoproj|core|kafka)[^/]*\/[^/]+\/./.test(path))
    .map(({ path }) => path);
const refuse = (may: () => boolean): void => {
  api.fault = ({ path }) => (path.endsWith(REVIEWS) && !may() ? { code: 403 } : undefined);
};

beforeEach(async () => {
  now = 1_000_000;
  confirmHost = async () => await Promise.resolve();
  pods.clear();
  chosen.clear();
  chosenForAll.clear();
  api = new MemoryApi();
  server = await serveMemoryApi(api);
});

afterEach(async () => {
  ended.abort();
  await running;
  await server.close();
});

describe('owners of kinds that are not Kubernetes own', () => {
  test('are known with their labels, and with what owns them, from the first answer on', async () => {
    rollout('web', { tier: 'front' });
    set('web-1', ROLLOUT, 'web');
    put('strimzipodsets', POD_SET, 'broker', { labels: { set: 'a' }, ...byController(KAFKA, 'events') });
    put('kafkas', KAFKA, 'events', { labels: { team: 'data' } });
    const [web, broker] = [pod('web-1-x', SET, 'web-1'), pod('broker-0', POD_SET, 'broker')];
    run();
    await synced();
    expect(labelsAbove(web)).toEqual([undefined, { tier: 'front' }]);
    // Who owns an owner is only known once that is read.
    await until(
      'what is above is read, too',
      () => labelsAbove(broker).length === 2 && labelsAbove(broker)[1] !== undefined,
    );
    expect(owners.chainOf(broker).map(({ kind }) => kind)).toEqual(['Pod', 'StrimziPodSet', 'Kafka']);
    expect(labelsAbove(broker)).toEqual([{ set: 'a' }, { team: 'data' }]);
    expect(await owners.whenKnown(broker)).toBeUndefined();
  });

  test('change as their objects do, which listeners hear', async () => {
    rollout('web', { tier: 'front' });
    pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    const heard: unknown[] = [];
    owners.on((object, old) => heard.push([object.kind, object.metadata.labels, old?.metadata.labels]));
    heard.length = 0;
    rollout('web', { tier: 'back' });
    await until('the new labels are known', () => heard.length > 0);
    expect(heard).toEqual([['Rollout', { tier: 'back' }, { tier: 'front' }]]);
  });

  test('hold nothing but metadata', async () => {
    rollout('web', {});
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    expect(owners.chainOf(web)[1]).toMatchObject({ kind: 'Rollout', spec: {} });
  });

  test('are waited for when a pod of such a kind is the first of it', async () => {
    run();
    await synced();
    expect(follows()).toEqual([]);
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    // Longer than half a second only where the machine has no time.
    await until('it is known', async () => (await owners.whenKnown(web)) === undefined);
    expect(labelsAbove(web)).toEqual([{ tier: 'front' }]);
  });

  test('that come late are waited for; those that the host says are not there are not', async () => {
    const [late, none] = [pod('late-x', ROLLOUT, 'late'), pod('none-x', ROLLOUT, 'none')];
    run();
    await synced();
    await until('it is known to be gone', async () => (await owners.whenKnown(none)) === undefined);
    api.fault = ({ query }) => (query['fieldSelector'] === undefined ? undefined : { code: 500 });
    const known = owners.whenKnown(late);
    setTimeout(() => rollout('late', { tier: 'front' }), 50);
    await known;
    await until('it is known', async () => (await owners.whenKnown(late)) === undefined);
    expect(labelsAbove(late)).toEqual([{ tier: 'front' }]);
  });

  test('are not known without the right to read them, and wait for nobody', async () => {
    let may = false;
    refuse(() => may);
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    expect(await owners.whenKnown(web)).toBeUndefined();
    expect(labelsAbove(web)).toEqual([undefined]);
    expect(owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind)).toMatch(/may not read rollouts\.argoproj\.io/);
    expect(holds()).toBe(false);
    expect(follows()).toEqual([]);
    // Half a minute later somebody has granted it.
    may = true;
    now += 30_000;
    owners.noticed(['argoproj.io/v1alpha1 Rollout']);
    await until('it is read', () => labelsAbove(web)[0] !== undefined);
    expect(owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind)).toBeUndefined();
  });

  test('that a watch does not bring any more are waited for no longer than it takes to see that', async () => {
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    await until('it is read', () => labelsAbove(web)[0] !== undefined);
    api.fault = ({ path, query }) => (path === ROLLOUTS && query['watch'] !== undefined ? { code: 500 } : undefined);
    server.cutWatches();
    rollout('late', { tier: 'back' });
    const late = pod('late-x', ROLLOUT, 'late');
    await until('that it cannot be read is seen', () => {
      now += 1_000;
      return owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind) !== undefined;
    });
    expect(await owners.whenKnown(late)).toBeUndefined();
    expect(labelsAbove(web)).toEqual([{ tier: 'front' }]);
    // Whoever needs its labels waits for it; what was read stays known.
    expect([holds(), ...[late, web].map((one) => isRead(one))]).toEqual([true, false, true]);
    api.fault = undefined;
    await until('it is read again', () => {
      now += 1_000;
      return isRead(late);
    });
    expect(holds()).toBe(false);
  });

  test('of a kind that cannot be listed hold pods up, and no longer than that', async () => {
    api.fault = ({ path }) => (path === ROLLOUTS ? { code: 500 } : undefined);
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await until('nobody waits for it in the caches any more', async () => {
      now += 1_000;
      return owners.hasSynced && (await owners.whenKnown(web)) === undefined;
    });
    expect([holds(), isRead(web)]).toEqual([true, false]);
    api.fault = undefined;
    await until('it is read', () => isRead(web));
    expect(holds()).toBe(false);
  });

  test('are chosen by policies of the namespace of the pod, be they in none themselves', async () => {
    const fleet = { apiVersion: 'fleets.example.com/v1', kind: 'Fleet' };
    const metadata = { name: 'all', uid: 'uid-all', labels: { team: 'a' } };
    api.put('/apis/fleets.example.com/v1/fleets/all', { ...fleet, metadata });
    const web = pod('web-x', fleet, 'all');
    run();
    await synced();
    await until('it is read', () => labelsAbove(web)[0] !== undefined);
    expect(owners.chainOf(web).map((one) => one.metadata.namespace)).toEqual(['shop', 'shop']);
  });

  test('stay known while the host denies what it granted for less than three looks', async () => {
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    api.fault = ({ path }) => (path.endsWith(REVIEWS) || path === ROLLOUTS ? { code: 403 } : undefined);
    server.cutWatches();
    const reviews = (): number => api.requests('POST', REVIEWS).length;
    for (const [look, labels] of [
      [1, { tier: 'front' }],
      [2, { tier: 'front' }],
      [3, undefined],
    ] as const) {
      const before = reviews();
      now += 30_000;
      await until(`look ${String(look)} is over`, () => reviews() > before);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(labelsAbove(web)).toEqual([labels]);
    }
    expect(owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind)).toMatch(/may not read/);
  });

  test('are not followed any more when nothing has named them for ten minutes', async () => {
    rollout('web', {});
    pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    pods.clear();
    now += 599_000;
    const told: string[] = [];
    owners.onKinds(() => told.push(owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind) ?? 'known'));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(told).toEqual([]);
    now += 601_000;
    await until('it is given up', () => told.length > 0);
    const before = follows().length;
    rollout('web', { tier: 'front' });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(follows()).toHaveLength(before);
  });
});

describe('owners that anybody made up', () => {
  test('a thousand kinds begin no watch, and keep nobody waiting', async () => {
    run();
    await synced();
    const before = api.seen.length;
    const started = performance.now();
    for (let index = 0; index < 1_000; index += 1) {
      const version = ['example.com/v1', `x${String(index)}.example.com/v1`, 'argoproj.io/v1alpha1'][index % 3] ?? '';
      const one = pod(`p${String(index)}`, { apiVersion: version, kind: `Robot${String(index)}` }, 'r');
      expect(await owners.whenKnown(one)).toBeUndefined();
    }
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(api.seen.slice(before).map(({ path }) => path)).toEqual(['/apis', '/apis/argoproj.io/v1alpha1']);
    // Later the same names cost one more look at most.
    now += 10_000;
    for (const one of pods.values()) expect(await owners.whenKnown(one)).toBeUndefined();
    expect(api.seen.slice(before + 2).map(({ path }) => path)).toEqual(['/apis']);
    expect(follows()).toEqual([]);
  });

  test('of kinds of Kubernetes, and of ours, are nothing that is followed', async () => {
    run();
    await synced();
    const before = api.seen.length;
    for (const [apiVersion, kind] of [
      ['v1', 'Secret'],
      ['v1', 'Node'],
      ['coordination.k8s.io/v1', 'Lease'],
      ['rbac.authorization.k8s.io/v1', 'Role'],
      ['spillway.dev/v1alpha1', 'MemberCluster'],
      ['', 'Robot'],
      ['example.com/v1', 'x'.repeat(1_000)],
    ] as const) {
      const one = pod(`of-${kind.slice(0, 20)}`, { apiVersion, kind }, 'r');
      expect(await owners.whenKnown(one)).toBeUndefined();
      expect(labelsAbove(one)).toEqual([undefined]);
    }
    expect(api.seen).toHaveLength(before);
  });

  test.each([
    ['dots', '..'],
    ['a path', 'a/b'],
    ['half a code', '50%'],
    ['too long', 'x'.repeat(254)],
  ])('by a name that no object can have are gone at once: %s', async (_, name) => {
    run();
    await synced();
    const before = api.seen.length;
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: 'uid-none', controller: true };
    const metadata = { name: 'p', namespace: 'shop', uid: 'uid-p', ownerReferences: [owner] };
    const started = performance.now();
    expect(await owners.whenKnown({ metadata, spec: { containers: [] } })).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(400);
    expect(api.seen).toHaveLength(before);
  });

  test('by a name that says more in a field selector are looked for by that very name, once', async () => {
    // As API servers do.
    api.fault = ({ query }) =>
      /(?<!\\)[,=]/.test((query['fieldSelector'] ?? '').replace('metadata.name=', '')) ? { code: 400 } : undefined;
    run();
    await synced();
    const one = pod('p', SET, String.raw`x,a=b\c`);
    const asked = (): unknown[] =>
      api.seen.map(({ query }) => query['fieldSelector']).filter((selector) => selector !== undefined);
    await until('it is known to be gone', async () => (await owners.whenKnown(one)) === undefined);
    now += 60_000;
    expect(await owners.whenKnown(one)).toBeUndefined();
    expect(asked()).toEqual([String.raw`metadata.name=x\,a\=b\\c`]);
  });

  test.each([
    ['has none of them', false],
    ['cannot answer', true],
  ])('are not gone because another cluster that answers in the place of the host %s', async (_, refuses) => {
    run();
    await synced();
    if (refuses) api.fault = ({ query }) => (query['fieldSelector'] === undefined ? undefined : { code: 400 });
    let asked = 0;
    confirmHost = async () => {
      asked += 1;
      await Promise.reject(new Error('another cluster answers in the place of the host'));
    };
    const one = pod('p', SET, 'new');
    expect((await owners.whenKnown(one))?.name).toBe('new');
    await until('the host was asked who it is', () => asked === 1);
    expect((await owners.whenKnown(one))?.name).toBe('new');
    confirmHost = async () => await Promise.resolve();
    now += 2_001;
    await until('it is known to be gone', async () => (await owners.whenKnown(one)) === undefined);
  });

  test('are gone where the host can never answer', async () => {
    run();
    await synced();
    api.fault = ({ query }) => (query['fieldSelector'] === undefined ? undefined : { code: 400 });
    const one = pod('p', SET, 'none');
    await until('it is known to be gone', async () => (await owners.whenKnown(one)) === undefined);
  });

  test.each([
    ['the answer is too large', { code: 500, message: 'grpc: received message larger than max (3 vs. 2)' }],
    ['something on the way refuses the question', { code: 413 }],
    ['it cannot be worked on', { code: 422 }],
  ])('are waited for where %s', async (_, fault) => {
    run();
    await synced();
    api.fault = ({ query }) => (query['fieldSelector'] === undefined ? undefined : fault);
    const one = pod('p', SET, 'none');
    const asked = (): number => api.requests('GET').filter(({ query }) => query['fieldSelector'] !== undefined).length;
    await until('the host was asked', async () => (await owners.whenKnown(one)) !== undefined && asked() > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await owners.whenKnown(one)).toBeDefined();
  });

  test('of one namespace fill no room but that of the namespace, and keep only its own pods waiting', async () => {
    const web = pod('web-x', ROLLOUT, 'web');
    rollout('web', { tier: 'front' });
    run();
    await synced();
    const labels = Object.fromEntries(
      Array.from({ length: 2_500 }, (_, index) => [`${'x'.repeat(200)}/label-${String(index)}`, 'x']),
    );
    const paths = Array.from({ length: 70 }, (_, index) => {
      return `/apis/argoproj.io/v1alpha1/namespaces/mean/rollouts/big-${String(index)}`;
    });
    for (const [index, path] of paths.entries())
      api.put(path, { ...ROLLOUT, metadata: { uid: `uid-big-${String(index)}`, namespace: 'mean', labels } });
    rollout('late', { tier: 'front' });
    const late = pod('late-x', ROLLOUT, 'late');
    await until('the late one is read', () => {
      now += 1_000;
      return isRead(late);
    });
    now += 15_000;
    expect([holds(), isRead(late), isRead(web)]).toEqual([false, true, true]);
    expect(labelsAbove(late)).toEqual([{ tier: 'front' }]);
    const mean = pod('mean-x', ROLLOUT, 'big-69');
    const own = { ...mean, metadata: { ...mean.metadata, namespace: 'mean' } };
    expect([owners.isKnown(own), isRead(own)]).toEqual([true, false]);
    // It needs no change to be read once there is room for it.
    const heard: unknown[] = [];
    owners.on(({ metadata }, old) => heard.push([metadata.name, old?.metadata.labels]));
    heard.length = 0;
    for (const path of paths.slice(0, -1)) api.delete(path);
    await until('it is read', () => {
      now += 10_000;
      return isRead(own);
    });
    expect([labelsAbove(own), heard]).toEqual([[labels], [['big-69', undefined]]]);
    expect(labelsAbove(web)).toEqual([{ tier: 'front' }]);
    // From then on all is as before.
    rollout('web', { tier: 'back' });
    await until('the change is heard of', () => heard.length > 1);
    expect([labelsAbove(web), heard.slice(1)]).toEqual([[{ tier: 'back' }], [['web', { tier: 'front' }]]]);
  }, 30_000);

  test('of kinds that only policies of a namespace name take no place of one that has pods', async () => {
    const many = Array.from({ length: 20 }, (_, index) => {
      return { apiVersion: 'many.example.com/v1', kind: `Many${String(index)}` };
    });
    for (const one of [...many, KAFKA]) chosen.add(customKindKey(one) ?? '');
    chosenForAll.add(customKindKey(KAFKA) ?? '');
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    await until('it is read', () => isRead(web));
    expect([holds(ROLLOUT), holds(KAFKA)]).toEqual([false, false]);
    // 16 are followed.
    expect(many.filter((one) => holds(one))).toHaveLength(6);
  });

  test('of a kind that is followed take from the budget that all share', async () => {
    pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    api.fault = ({ query }) => (query['fieldSelector'] === undefined ? undefined : { code: 500 });
    const started = performance.now();
    for (let index = 0; index < 30; index += 1)
      await owners.whenKnown(pod(`m${String(index)}`, ROLLOUT, `m${String(index)}`));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe('a host that does not say what it serves', () => {
  test('keeps nobody waiting for longer than it takes to fail, and is asked again', async () => {
    api.fault = ({ path }) => (path === '/apis' ? { code: 403 } : undefined);
    rollout('web', { tier: 'front' });
    const web = pod('web-x', ROLLOUT, 'web');
    run();
    await synced();
    expect(await owners.whenKnown(web)).toBeUndefined();
    expect(owners.whyUnread(ROLLOUT.apiVersion, ROLLOUT.kind)).toMatch(/it is tried again: .*403/);
    // As rights are missing, nobody waits for it.
    expect(holds()).toBe(false);
    api.fault = undefined;
    await until('it is read', () => labelsAbove(web)[0] !== undefined);
  });

  test('of one group says nothing of others', async () => {
    api.fault = ({ path }) => (path === '/apis/core.strimzi.io/v1' ? { code: 403 } : undefined);
    rollout('web', { tier: 'front' });
    const [web, broker] = [pod('web-x', ROLLOUT, 'web'), pod('broker-0', POD_SET, 'broker')];
    run();
    await synced();
    expect(labelsAbove(web)).toEqual([{ tier: 'front' }]);
    expect(labelsAbove(broker)).toEqual([undefined]);
    expect(owners.whyUnread(POD_SET.apiVersion, POD_SET.kind)).toMatch(/it is tried again/);
  });

  test('holds pods up where it fails, and none of a kind that it does not have', async () => {
    api.fault = ({ path }) => (path === '/apis/core.strimzi.io/v1' ? { code: 503 } : undefined);
    rollout('web', {});
    const [, broker] = [pod('web-x', ROLLOUT, 'web'), pod('broker-0', POD_SET, 'broker')];
    put('strimzipodsets', POD_SET, 'broker', {});
    run();
    await synced();
    expect(await owners.whenKnown(broker)).toBeUndefined();
    const none = { apiVersion: ROLLOUT.apiVersion, kind: 'Robot' };
    expect([holds(POD_SET), holds(ROLLOUT), holds(none), holds(SET)]).toEqual([true, false, false, false]);
  });
});
