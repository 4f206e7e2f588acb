import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { pino } from 'pino';
import type { Pod } from '../../src/kube/core-v1.ts';
import { PodTokens, type PodTokensOptions } from '../../src/dependents/pod-tokens.ts';
import { REFRESH_ANNOTATION, tokenSecretFor } from '../../src/dependents/token-secret.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { tokenSecretName } from '../../src/pods/translate-tokens.ts';
import { FakeMember, HOST_ID, refuse } from '../fixtures/dependents.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';

const UIDS = ['0c7d2c5e-8a4b-4f0e-9c52-2f2a8f3f9c11', '1c7d2c5e-8a4b-4f0e-9c52-2f2a8f3f9c11'] as const;
const PLACE = 'Secret/t-shop/';

interface Ask {
  path: string;
  audiences: string[] | undefined;
  expirationSeconds: number;
  pod: string;
}

let server: TestServer;
let client: KubeClient;
let member: FakeMember;
let asks: Ask[];
/** How many letters are in each token. */
let padding: number;
let refusal: { code: number; reason: string; message: string } | undefined;
let lines: string[];
let events: string[];
let ready: string[];
let hostPods: Map<string, Pod>;
let inMember: Set<string>;
/** Where it is there. */
let place: string;
/** Of new namespaces in the member. */
let prefix: string;
let admitted: boolean;
let now: number;
let stop: () => Promise<void>;

beforeEach(async () => {
  [asks, lines, events, ready] = [[], [], [], []];
  [hostPods, inMember] = [new Map(), new Set()];
  [place, prefix] = ['t-shop', 't-'];
  padding = 0;
  [refusal, admitted, now] = [undefined, true, Date.parse('2026-01-01T00:00:00Z')];
  server = await startHttpServer((req, res, text) => {
    const path = req.url ?? '';
    if (refusal !== undefined) {
      sendJson(res, refusal.code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', ...refusal });
    } else if (path.endsWith('/configmaps/kube-root-ca.crt')) {
      const metadata = { name: 'kube-root-ca.crt', namespace: 'shop', uid: 'u', resourceVersion: '1' };
      sendJson(res, 200, { kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { 'ca.crt': 'the CA' } });
    } else {
      const { spec } = JSON.parse(text) as {
        spec: { audiences?: string[]; expirationSeconds: number; boundObjectRef: { name: string; uid: string } };
      };
      const { name, uid } = spec.boundObjectRef;
      const { audiences, expirationSeconds } = spec;
      asks.push({ path, audiences, expirationSeconds, pod: `${name}/${uid}` });
      sendJson(res, 201, {
        kind: 'TokenRequest',
        apiVersion: 'authentication.k8s.io/v1',
        metadata: {},
        spec,
        status: { token: `token ${asks.length}${'x'.repeat(padding)}` },
      });
    }
  });
  client = new KubeClient({ cluster: 'host', ...staticAccess({ endpoint: { server: server.url } }) });
  member = new FakeMember();
});
afterEach(async () => {
  await stop();
  await client.close();
  await server.close();
});

function podOf(uid: string = UIDS[0], more: object = {}): Pod {
  const sources = [
    { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
    { configMap: { name: 'kube-root-ca.crt' } },
    { serviceAccountToken: { path: 'vault', audience: 'vault', expirationSeconds: 7200 } },
  ];
  const spec = { nodeName: 'east', serviceAccountName: 'builder', volumes: [{ name: 't', projected: { sources } }] };
  return { metadata: { namespace: 'shop', name: 'web', uid }, spec, ...more } as unknown as Pod;
}

/** What the host has. */
function bind(pod: Pod): Pod {
  hostPods.set('shop/web', pod);
  return pod;
}

function start(options: Partial<PodTokensOptions> = {}): PodTokens {
  const tokens = new PodTokens({
    member: 'east',
    hostId: HOST_ID,
    copies: member,
    memberNamespaceOf: (namespace) => prefix + namespace,
    clientOf: () => client,
    hostPod: (podKey) => hostPods.get(podKey),
    placeOf: (_, __, uid) => (inMember.has(uid) ? place : undefined),
    admitted: () => admitted,
    onReady: (podKey) => void ready.push(podKey),
    mayWrite: () => true,
    events: { record: (object, _, reason, message) => void events.push(`${object.name}: ${reason}: ${message}`) },
    logger: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
    clock: () => now,
    monotonic: () => now,
    ...options,
  });
  const end = new AbortController();
  const running = [member.run(end.signal), tokens.run(end.signal)];
  stop = async () => {
    end.abort();
    await Promise.all(running);
  };
  return tokens;
}

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 8_000, interval: 5 });
const secretOf = (uid: string = UIDS[0]) =>
  member.objects.get(PLACE + tokenSecretName(uid)) as
    | { metadata: { annotations: Record<string, string>; uid: string }; data: Record<string, string> }
    | undefined;
const valuesOf = (uid?: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(secretOf(uid)?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
  );

describe('tokens of a pod in mode Host', () => {
  test('are made before the pod: bound to it, for its audiences, never for the year that the usual volume gets', async () => {
    const tokens = start();
    const pod = bind(podOf());
    expect(tokens.require(pod)).toMatchObject({ ready: false, pending: true });
    await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
    expect(ready).toContain('shop/web');
    const path = '/api/v1/namespaces/shop/serviceaccounts/builder/token';
    const bound = `web/${UIDS[0]}`;
    expect(asks).toEqual([
      { path, audiences: undefined, expirationSeconds: 3600, pod: bound },
      { path, audiences: ['vault'], expirationSeconds: 7200, pod: bound },
    ]);
    expect(valuesOf()).toEqual({ 'token-0': 'token 1', 'token-1': 'token 2', 'ca.crt': 'the CA' });
    // At 80 % of the life of the first that ends.
    expect(secretOf()?.metadata.annotations[REFRESH_ANNOTATION]).toBe('2026-01-01T00:48:00.000Z');
    expect(member.writes.length).toBe(1);
  });

  test('are not made for a pod that asks for none', () => {
    const tokens = start();
    expect(tokens.require(bind({ ...podOf(), spec: { containers: [] } }))).toEqual({ ready: true });
    expect(member.writes).toEqual([]);
  });

  test('are replaced when their time has come, not before, and what others wrote meanwhile is no obstacle', async () => {
    const tokens = start();
    const pod = bind(podOf());
    tokens.require(pod);
    await until(() => expect(member.writes.length).toBe(1));
    now += 47 * 60_000;
    tokens.resync();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(member.writes.length).toBe(1);
    member.put('Secret', { ...(secretOf() as never as { metadata: { name: string } }) });
    now += 2 * 60_000;
    tokens.resync();
    await until(() => expect(member.writes.length).toBe(2));
    expect(valuesOf()['token-0']).toBe('token 3');
    expect(secretOf()?.metadata.annotations[REFRESH_ANNOTATION]).toBe('2026-01-01T01:37:00.000Z');
  });

  test.each([
    ['the wall clock was set back', 30, 0],
    ['the monotonic clock stood still', 0, 30],
  ])('are replaced in time although %s', async (_, backMinutes, stoodMinutes) => {
    let passed = false;
    const behind = (minutes: number): number => (passed ? now - minutes * 60_000 : now);
    const tokens = start({ clock: () => behind(backMinutes), monotonic: () => behind(stoodMinutes) });
    tokens.require(bind(podOf()));
    await until(() => expect(member.writes.length).toBe(1));
    now += 49 * 60_000;
    passed = true;
    tokens.resync();
    await until(() => expect(member.writes.length).toBe(2));
  });

  test('are known again after a start, which writes nothing and reads nothing', async () => {
    const first = start();
    const pod = bind(podOf());
    first.require(pod);
    await until(() => expect(member.writes.length).toBe(1));
    await stop();
    inMember.add(UIDS[0]);
    [ready, server.seen.length] = [[], 0];
    const again = start();
    again.setComplete();
    await until(() => expect(ready).toEqual(expect.arrayContaining(['shop/web'])));
    expect(member.writes.length).toBe(1);
    expect(server.seen).toEqual([]);
    // They are followed all the same.
    now += 49 * 60_000;
    again.resync();
    await until(() => expect(member.writes.length).toBe(2));
  });

  test('that somebody deletes come back while the pod runs', async () => {
    const tokens = start();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    now += 60_000;
    const { uid } = secretOf()?.metadata ?? {};
    member.delete('Secret', 't-shop', tokenSecretName(UIDS[0]));
    await until(() => expect(secretOf()?.metadata.uid).not.toBe(uid));
    await until(() => expect(secretOf()).toBeDefined());
  });

  test('are removed after the pod, not while its copy is still there, and not before all pods are known', async () => {
    const tokens = start();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    hostPods.clear();
    tokens.release('shop/web');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(secretOf()).toBeDefined();
    inMember.add(UIDS[0]);
    tokens.setComplete();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(secretOf()).toBeDefined();
    inMember.clear();
    tokens.release('shop/web');
    await until(() => expect(secretOf()).toBeUndefined());
  });

  test('of a pod of another MemberCluster of the same cluster stay, though its copy is yet to come', async () => {
    let there = true;
    const tokens = start({ sharesCluster: (name) => there && name === 'west' });
    const content = {
      hostId: HOST_ID,
      member: 'west',
      memberNamespace: 't-shop',
      refreshAt: now + 1e6,
      values: new Map(),
    };
    tokens.setComplete();
    member.put('Secret', tokenSecretFor(podOf(), content, undefined));
    // What nobody says to be another one's goes; by then the others have been looked at.
    member.put('Secret', tokenSecretFor(podOf(UIDS[1]), { ...content, member: 'former' }, undefined));
    await until(() => expect(secretOf(UIDS[1])).toBeUndefined());
    expect(secretOf()).toBeDefined();
    there = false;
    tokens.resync();
    await until(() => expect(secretOf()).toBeUndefined());
  });

  test('stay with the copy of their pod when new ones go to another namespace, are kept fresh there, and go with it', async () => {
    const tokens = start();
    tokens.setComplete();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    inMember.add(UIDS[0]);
    prefix = 'new-';
    tokens.resync();
    now += 3_600_000;
    tokens.resync();
    const name = tokenSecretName(UIDS[0]);
    await until(() => expect(member.writes).toEqual([`create ${PLACE}${name}`, `replace ${PLACE}${name}`]));
    expect(valuesOf()['token-0']).toBe('token 3');
    expect(tokens.require(podOf())).toEqual({ ready: true });
    hostPods.clear();
    inMember.clear();
    tokens.release('shop/web');
    await until(() => expect(secretOf()).toBeUndefined());
    expect([...member.objects.keys()]).toEqual([]);
  });

  test('are brought to another namespace where there is no copy yet, and only what is kept there stays', async () => {
    const tokens = start();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    prefix = 'new-';
    expect(tokens.require(podOf())).toMatchObject({ ready: false });
    tokens.resync();
    const moved = `Secret/new-shop/${tokenSecretName(UIDS[0])}`;
    await until(() => expect(member.objects.get(moved)).toBeDefined());
    // Where its copy is may not be known yet.
    expect(secretOf()).toBeDefined();
    tokens.setComplete();
    await until(() => expect(secretOf()).toBeUndefined());
    expect(member.objects.get(moved)).toBeDefined();
  });

  test('of a former process are found wherever they are, and go when the last user is gone', async () => {
    const content = {
      hostId: HOST_ID,
      member: 'east',
      memberNamespace: 't-shop',
      refreshAt: now + 1e6,
      values: new Map(),
    };
    member.put('Secret', tokenSecretFor(podOf(), content, undefined));
    bind(podOf());
    inMember.add(UIDS[0]);
    prefix = 'new-';
    const tokens = start();
    tokens.setComplete();
    now += 1e6;
    tokens.resync();
    await until(() => expect(valuesOf()['token-0']).toBe('token 1'));
    hostPods.clear();
    inMember.clear();
    tokens.release('shop/web');
    await until(() => expect(member.objects.size).toBe(0));
  });

  test('of a former pod of the same name go, those of its successor stay', async () => {
    const tokens = start();
    tokens.setComplete();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    const next = bind(podOf(UIDS[1]));
    tokens.require(next);
    await until(() => expect(tokens.require(next)).toEqual({ ready: true }));
    await until(() => expect(secretOf(UIDS[0])).toBeUndefined());
    expect(secretOf(UIDS[1])).toBeDefined();
  });

  test('are not forgotten when a former pod of the same name is let go of', async () => {
    member.lagMs = 1_000;
    const tokens = start();
    const pod = bind(podOf());
    tokens.require(pod);
    await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
    tokens.release('shop/web');
    expect(tokens.require(pod)).toEqual({ ready: true });
  });

  test('are not brought where they are not admitted any more, nor for a pod that has ended', async () => {
    const tokens = start();
    tokens.require(bind(podOf()));
    await until(() => expect(member.writes.length).toBe(1));
    now += 3_600_000;
    admitted = false;
    tokens.resync();
    await new Promise((resolve) => setTimeout(resolve, 50));
    admitted = true;
    bind(podOf(UIDS[0], { status: { phase: 'Succeeded' } }));
    tokens.resync();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(member.writes.length).toBe(1);
    bind(podOf());
    tokens.resync();
    await until(() => expect(member.writes.length).toBe(2));
  });
});

describe('a refusal of the host', () => {
  test('is told in its words, with the audience, and passes by itself', async () => {
    refusal = { code: 422, reason: 'Invalid', message: 'no vault for you' };
    const tokens = start();
    const pod = bind(podOf());
    tokens.require(pod);
    await until(() =>
      expect(tokens.require(pod)).toMatchObject({
        ready: false,
        pending: false,
        reason: 'ServiceAccountTokenNotAvailable',
        message: expect.stringContaining('no vault for you') as string,
      }),
    );
    expect(ready).toContain('shop/web');
    refusal = undefined;
    await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
    expect(lines.join('')).not.toContain('token 1');
  });

  test('that comes from knowing the pod too late is not told', async () => {
    refusal = { code: 403, reason: 'Forbidden', message: 'no relationship found' };
    const tokens = start();
    const pod = bind(podOf());
    tokens.require(pod);
    await until(() => expect(server.seen.length).toBe(2));
    expect(tokens.require(pod)).toMatchObject({ pending: true });
    refusal = undefined;
    await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
    expect(lines.filter((line) => line.includes('"warn"'))).toEqual([]);
  });

  test('of fresh tokens is an Event on the pod, and the old ones stay', async () => {
    const tokens = start();
    tokens.require(bind(podOf()));
    await until(() => expect(secretOf()).toBeDefined());
    refusal = { code: 500, reason: 'InternalError', message: 'etcd is away' };
    now += 3_000_000;
    tokens.resync();
    await until(() => expect(events).not.toEqual([]));
    expect(events[0]).toMatch(
      /^web: TokenNotRefreshed: The service account token could not be refreshed in cluster "east"/,
    );
    expect(events[0]).toContain('etcd is away');
    expect(valuesOf()['token-0']).toBe('token 1');
    expect(tokens.require(podOf())).toEqual({ ready: true });
  });
});

test('a refusal of the member is told without the tokens that it repeats', async () => {
  const refusalOf = (token: string) =>
    refuse(422, 'Invalid', `no pod needs "${token}", which is ${Buffer.from(token).toString('base64')}`);
  member.failures.push(refusalOf('token 1'));
  const tokens = start();
  const pod = bind(podOf());
  tokens.require(pod);
  await until(() => expect(lines.join('')).toContain('no pod needs'));
  await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
  // The third and fourth are for the second try.
  member.failures.push(refusalOf('token 5'));
  now += 3_000_000;
  tokens.resync();
  await until(() => expect(events).toEqual([expect.stringContaining('no pod needs "(hidden)", which is (hidden)')]));
  expect(lines.join('')).not.toMatch(/token [1-9]|dG9rZW4g/);
});

test('a refusal of the member is told without a token that is longer than any message', async () => {
  padding = 1_200;
  const token = Buffer.from(`token 1${'x'.repeat(padding)}`).toString('base64');
  member.failures.push(refuse(422, 'Invalid', `no pod needs ${token}`));
  const tokens = start();
  const pod = bind(podOf());
  tokens.require(pod);
  await until(() => expect(tokens.require(pod)).toEqual({ ready: true }));
  expect(lines.join('')).toContain('no pod needs (hidden)');
  expect(lines.join('')).not.toMatch(/dG9rZW4g/);
});
