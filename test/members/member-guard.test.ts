import { beforeEach, describe, expect, it } from 'vitest';
import { HOST_LABEL } from '../../src/api/marks.ts';
import type { MemberConnectionOptions } from '../../src/members/connection.ts';
import { memberGuard } from '../../src/members/member-guard.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { memberConnection } from '../fixtures/member-connection.ts';
import { Violations } from '../fixtures/violations.ts';

describe('the guard of a member', () => {
  let violations: Violations;
  let identityOk: boolean;
  let leaseHeld: boolean;
  let hostProblem: string | undefined;
  beforeEach(() => {
    violations = new Violations();
    identityOk = true;
    leaseHeld = true;
    hostProblem = undefined;
  });
  const ask = (method: string, path: string, body?: unknown): void => {
    const known = {
      member: 'east',
      hostId: 'us',
      identityOk: () => identityOk,
      leaseHeld: () => leaseHeld,
      hostProblem: () => hostProblem,
    };
    memberGuard({ ...known, invariants: violations })({ method, path, body });
  };
  const ours = { metadata: { name: 'a', labels: { [HOST_LABEL]: 'us' } } };

  it.each([
    ['POST', '/api/v1/namespaces/a/pods', ours],
    ['POST', '/api/v1/namespaces', ours],
    ['PATCH', '/api/v1/namespaces/a/pods/b', {}],
    ['PATCH', '/api/v1/namespaces/a/pods/b', { metadata: { labels: { app: null } } }],
    ['PATCH', '/api/v1/namespaces/a/pods/b', { metadata: { labels: { $patch: 'replace', [HOST_LABEL]: 'us' } } }],
    ['PATCH', '/api/v1/namespaces/a/pods/b', [{ op: 'add', path: '/metadata/labels/app', value: 'a' }]],
    ['PUT', '/api/v1/namespaces/a/secrets/b', ours],
    ['PUT', '/api/v1/namespaces/a/pods/b/ephemeralcontainers', {}],
    ['PUT', '/api/v1/namespaces/a/finalize', {}],
    ['DELETE', '/api/v1/namespaces/a/pods/b', {}],
    ['CONNECT', '/', undefined],
    ['POST', '/api/v1/namespaces/a/serviceaccounts/b/token', {}],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {}],
  ])('lets %s %s pass', (method, path, body) => {
    ask(method, path, body);
    expect(violations.seen).toEqual([]);
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT'])('I3: stops %s to another cluster', (method) => {
    identityOk = false;
    expect(() => ask(method, '/api/v1/namespaces/a/pods', ours)).toThrow(/^I3/);
    expect(violations.seen).toEqual(['I3']);
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT'])('I3: stops %s while the host is another', (method) => {
    hostProblem = 'another cluster answers in the place of the host';
    expect(() => ask(method, '/api/v1/namespaces/a/pods', ours)).toThrow(/not sent: another cluster/);
  });

  it('stops writes once the lease is not held, and counts no violation for that', () => {
    leaseHeld = false;
    expect(() => ask('DELETE', '/api/v1/namespaces/a/pods/b')).toThrow(/lease of the member is not held/);
    expect(() => ask('CONNECT', '/')).not.toThrow();
    expect(violations.seen).toEqual([]);
  });

  it.each([
    ['/api/v1/namespaces/a/pods', { metadata: { name: 'a' } }],
    ['/api/v1/namespaces', { metadata: { labels: { [HOST_LABEL]: 'others' } } }],
    ['/api/v1/namespaces/a/secrets', undefined],
    ['/apis/storage.k8s.io/v1/storageclasses', { metadata: { labels: null } }],
  ])('I15: stops an object without our label at %s', (path, body) => {
    expect(() => ask('POST', path, body)).toThrow(/^I15/);
    expect(violations.seen).toEqual(['I15']);
  });

  it.each([
    ['/api/v1/namespaces/a/secrets/b', { metadata: { name: 'b' } }],
    ['/api/v1/namespaces/b', { metadata: { name: 'b', labels: { [HOST_LABEL]: 'others' } } }],
    ['/apis/storage.k8s.io/v1/storageclasses/b', undefined],
  ])('I15: stops a replacement without our label at %s', (path, body) => {
    expect(() => ask('PUT', path, body)).toThrow(/^I15/);
    expect(violations.seen).toEqual(['I15']);
  });

  it.each([
    [{ metadata: { labels: { [HOST_LABEL]: null } } }],
    [{ metadata: { labels: { [HOST_LABEL]: 'others' } } }],
    [{ metadata: { labels: { $patch: 'replace', app: 'a' } } }],
    [{ metadata: { labels: null } }],
    [{ metadata: { $patch: 'replace' } }],
    [{ metadata: null }],
    [[{ op: 'remove', path: '/metadata/labels/spillway.dev~1host' }]],
    [[{ op: 'replace', path: '/metadata/labels', value: {} }]],
    [[{ op: 'move', from: '/metadata', path: '/spec/x' }]],
    [[{ op: 'replace', path: '', value: {} }]],
  ])('I15: stops the patch %j, which takes our label away', (body) => {
    expect(() => ask('PATCH', '/api/v1/namespaces/a/pods/b', body)).toThrow(/^I15/);
    expect(violations.seen).toEqual(['I15']);
  });
});

/** A connection to a member whose identity is `pinned`, and the methods and user agents of requests that arrive there. */
async function connect(options: Partial<MemberConnectionOptions> = {}) {
  const arrived: string[] = [];
  const agents = new Set<string | undefined>();
  const server = await startHttpServer((req, res) => {
    arrived.push(req.method ?? '');
    agents.add(req.headers['user-agent']);
    const isIdentity = req.url?.endsWith('/kube-system') === true;
    const [kind, name] = isIdentity ? ['Namespace', 'kube-system'] : ['Pod', 'b'];
    sendJson(res, 200, { apiVersion: 'v1', kind, metadata: { name, uid: 'pinned' } });
  });
  const connection = memberConnection(server.url, options);
  return { arrived, agents, server, connection };
}

it('a connection of who only observes the member sends nothing but reads, whatever is known', async () => {
  const { arrived, agents, server, connection } = await connect({ leaseHeld: 'never' });
  expect(await connection.confirmIdentity(AbortSignal.timeout(5_000))).toBe(true);
  const path = '/api/v1/namespaces/a/pods/b';
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    await expect(connection.client.request({ method, path, body: {} })).rejects.toThrow(/not sent: .*observes/);
  }
  await expect(connection.client.dial()).rejects.toThrow(/not sent: .*observes/);
  expect(arrived).toEqual(['GET']);
  expect([...agents]).toEqual(['spillway-observer']);
  await connection.client.close();
  await server.close();
});

it('I3: a connection sends no write before it has seen the pinned cluster', async () => {
  const violations = new Violations();
  const { arrived, server, connection } = await connect({ invariants: violations });
  const path = '/api/v1/namespaces/a/pods/b';
  await expect(connection.client.request({ method: 'DELETE', path })).rejects.toMatchObject({ invariant: 'I3' });
  await expect(connection.client.dial()).rejects.toMatchObject({ invariant: 'I3' });
  await connection.client.request({ path });
  expect(arrived).toEqual(['GET']);
  expect(violations.seen).toEqual(['I3', 'I3']);
  await connection.client.close();
  await server.close();
});
