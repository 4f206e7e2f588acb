import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../hack/until.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import { tokenClaims } from '../../src/kube/service-account-token.ts';
import { renewalDue, TokenRenewal } from '../../src/members/token-renewal.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-01-10T00:00:00Z');
const SECRETS = '/api/v1/namespaces/fleet/secrets';
const SUBJECT = 'system:serviceaccount:spillway-access:spillway-host';

function tokenOf(issuedAt: number, lifeMs: number, sub: unknown = SUBJECT): string {
  const claims = { sub, iat: issuedAt / 1000, exp: (issuedAt + lifeMs) / 1000 };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
}

describe('claims of a token', () => {
  it('are read', () => {
    expect(tokenClaims(tokenOf(NOW, HOUR))).toEqual({
      namespace: 'spillway-access',
      name: 'spillway-host',
      issuedAt: NOW,
      expiresAt: NOW + HOUR,
    });
  });

  it.each([
    '',
    'x',
    'a.b.c',
    'e30.bnVsbA.x',
    tokenOf(NOW, HOUR, 'admin'),
    tokenOf(NOW, HOUR, 7),
    tokenOf(NOW, -1),
    tokenOf(NOW, 1e300),
  ])('are none in %j', (token) => {
    expect(tokenClaims(token)).toBeUndefined();
  });

  it('of another account cannot lead to another path', () => {
    expect(tokenClaims(tokenOf(NOW, HOUR, 'system:serviceaccount:a/../b:c'))).toBeUndefined();
  });
});

it('is due after a day, or a third of a shorter life', () => {
  const due = (lifeMs: number): number => renewalDue({ namespace: 'a', name: 'b', issuedAt: 0, expiresAt: lifeMs });
  expect(due(168 * HOUR)).toBe(24 * HOUR);
  expect(due(3 * HOUR)).toBe(HOUR);
});

describe('renewal', () => {
  let api: MemoryApi;
  let server: MemoryApiServer;
  let ended: AbortController;
  let running: Promise<void> | undefined;
  let asked: KubeRequest[];
  let failures: [string, number][];
  let tried: [kubeconfig: string, token: string][];
  let refusal: () => Promise<string | undefined>;
  let leads = true;
  let answer: () => unknown;

  beforeEach(async () => {
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    ended = new AbortController();
    asked = [];
    failures = [];
    tried = [];
    refusal = () => Promise.resolve(undefined);
    leads = true;
    answer = () => ({ status: { token: tokenOf(NOW, 168 * HOUR) } });
  });
  afterEach(async () => {
    ended.abort();
    await running;
    await server.close();
  });

  function start(token: string, labels: Record<string, string> = { 'spillway.dev/renew-token': 'true' }): void {
    const client = server.client('host');
    const data = { kubeconfig: 'YQ==', token: Buffer.from(token).toString('base64') };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'fleet', name: 'east', labels }, data };
    api.handle({ method: 'POST', path: SECRETS, query: {}, body: secret, contentType: 'application/json' });
    const request = (one: KubeRequest): Promise<unknown> => {
      asked.push(one);
      return Promise.resolve(answer());
    };
    const renewal = new TokenRenewal({
      host: client,
      member: { request } as unknown as KubeClient,
      reference: () => ({ namespace: 'fleet', name: 'east', key: 'kubeconfig' }),
      refusal: async (kubeconfig, renewed) => {
        tried.push([kubeconfig, renewed]);
        return await refusal();
      },
      mayWrite: () => leads,
      failed: (...what) => failures.push(what),
      logger: pino({ level: 'silent' }),
      clock: () => NOW,
    });
    running = renewal.run(ended.signal);
  }
  const stored = (): string => {
    const { data } = api.objects.get(`${SECRETS}/east`) as unknown as { data: Record<string, string> };
    return Buffer.from(data['token'] ?? '', 'base64').toString('utf8');
  };
  const looked = async (): Promise<unknown> =>
    await until('it has looked', () => Promise.resolve(api.requests('GET', `${SECRETS}/east`).length > 0));
  const writes = (): number => api.requests('PATCH', `${SECRETS}/east`).length;

  it('asks for as long a life as before, and stores what it gets', async () => {
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it is renewed', () => Promise.resolve(stored() === tokenOf(NOW, 168 * HOUR)));
    expect(asked).toMatchObject([
      {
        method: 'POST',
        path: '/api/v1/namespaces/spillway-access/serviceaccounts/spillway-host/token',
        body: { spec: { expirationSeconds: 168 * 3600 } },
      },
    ]);
    expect(tried).toEqual([['a', tokenOf(NOW, 168 * HOUR)]]);
    expect((api.objects.get(`${SECRETS}/east`) as unknown as { data: object }).data).toMatchObject({
      kubeconfig: 'YQ==',
    });
  });

  it.each([
    ['is young', tokenOf(NOW - 23 * HOUR, 168 * HOUR), undefined],
    ['is over', tokenOf(NOW - 200 * HOUR, 168 * HOUR), undefined],
    ['is none', 'x', undefined],
    ['is not to be renewed', tokenOf(NOW - 25 * HOUR, 168 * HOUR), {}],
  ])('leaves one alone that %s', async (_what, token, labels) => {
    start(token, labels);
    await looked();
    ended.abort();
    await running;
    expect(asked).toEqual([]);
    expect(writes()).toBe(0);
  });

  it('is not for those who do not act for the member', async () => {
    leads = false;
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await looked();
    ended.abort();
    await running;
    expect(asked).toEqual([]);
  });

  it.each([
    {},
    { status: { token: '' } },
    { status: { token: 'a b' } },
    { status: { token: 'x'.repeat(20_000) } },
    null,
  ])('tells of a member that answers with %j, and keeps the old one', async (bad) => {
    answer = () => bad;
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it is told', () => Promise.resolve(failures.length === 1));
    expect(failures[0]).toEqual([expect.stringContaining('without a token'), NOW + 143 * HOUR]);
    expect(writes()).toBe(0);
  });

  it.each([
    ['is for another account', tokenOf(NOW, 168 * HOUR, 'system:serviceaccount:spillway-access:other')],
    ['is for one of another namespace', tokenOf(NOW, 168 * HOUR, 'system:serviceaccount:other:spillway-host')],
    ['says nothing of itself', 'garbage'],
    ['ends no later', tokenOf(NOW, 143 * HOUR)],
    ['comes from a clock that is behind', tokenOf(NOW - 300 * HOUR, 168 * HOUR)],
  ])('neither tries nor stores a token that %s, and tells', async (_what, token) => {
    answer = () => ({ status: { token } });
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it is told', () => Promise.resolve(failures.length === 1));
    expect(failures[0]).toEqual([expect.stringContaining('it answered with a token that'), NOW + 143 * HOUR]);
    expect(tried).toEqual([]);
    expect(writes()).toBe(0);
  });

  it.each([
    ['does not let in', () => Promise.resolve('Unauthorized'), 'gave: Unauthorized'],
    ['cannot be asked about', () => Promise.reject(new Error('no answer')), 'no answer'],
  ])('keeps the old token when the new one is one that the member %s', async (_what, refused, words) => {
    refusal = refused;
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it is told', () => Promise.resolve(failures.length === 1));
    expect(failures[0]).toEqual([expect.stringContaining(words), NOW + 143 * HOUR]);
    expect(writes()).toBe(0);
  });

  it.each([
    [{ code: 403, reason: 'Forbidden', message: 'denied by policy' }, 'denied by policy'],
    [{ code: 422, reason: 'Invalid', message: 'field is immutable when `immutable` is set' }, 'field is immutable'],
  ])('tells when the Secret cannot be written: %j', async (refused, words) => {
    api.fault = ({ method }) => (method === 'PATCH' ? refused : undefined);
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it is told', () => Promise.resolve(failures.length === 1));
    const [said, end] = failures[0] ?? [];
    expect(said).toContain('Secret fleet/east cannot be written: ');
    expect(said).toContain(words);
    expect(end).toBe(NOW + 143 * HOUR);
  });

  it('says nothing of a Secret that somebody else has just written', async () => {
    api.fault = ({ method }) => (method === 'PATCH' ? { code: 409, reason: 'Conflict' } : undefined);
    start(tokenOf(NOW - 25 * HOUR, 168 * HOUR));
    await until('it has tried', () => Promise.resolve(writes() > 0));
    ended.abort();
    await running;
    expect(failures).toEqual([]);
  });
});
