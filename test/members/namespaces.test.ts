import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/kube/json-equal.ts';
import { MemberNamespaces } from '../../src/members/namespaces.ts';
import type { MemberNamespacesOptions } from '../../src/members/namespaces.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';

const HOST_ID = '0123456789abcdef';
type Spec = ReturnType<MemberNamespacesOptions['spec']>;
const DEFAULTS: Spec = { mapping: 'Same', create: true, adoptExisting: true, podSecurity: 'baseline' };

/** A member whose namespace cache is as current as `cached` says. */
function member(spec: Partial<Spec> = {}, cached = true) {
  const api = new MemoryApi();
  let identityOk = true;
  const namespaces = new MemberNamespaces({
    member: {
      name: 'east',
      client: api.client('east'),
      namespaces: {
        get: (name) => (cached ? api.objects.get(`/api/v1/namespaces/${name}`) : undefined),
        values: () => (cached ? api.objects.valuesIn('/api/v1/namespaces') : []),
      },
      confirmIdentity: () => Promise.resolve(identityOk),
    },
    hostId: HOST_ID,
    spec: () => ({ ...DEFAULTS, ...spec }),
  });
  const put = (name: string, metadata: JsonObject = {}, status: JsonObject = {}): void => {
    api.handle({
      method: 'POST',
      path: '/api/v1/namespaces',
      query: {},
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...metadata }, status },
      contentType: 'application/json',
    });
  };
  const lose = (): void => {
    identityOk = false;
  };
  const ensure = async (name = 'shop') => await namespaces.ensure(name, AbortSignal.timeout(5_000));
  const held = async (name?: string) => {
    const answer = await ensure(name);
    return 'hold' in answer ? answer.hold : { reason: `namespace ${answer.namespace}`, message: '' };
  };
  return { api, namespaces, ensure, held, put, lose };
}

describe('MemberNamespaces', () => {
  it('creates a missing namespace once, marked as made for this host', async () => {
    const { api, ensure } = member({}, false);
    const answers = await Promise.all(Array.from({ length: 50 }, () => ensure()));
    expect(answers).toEqual(Array.from({ length: 50 }, () => ({ namespace: 'shop' })));
    expect(await ensure()).toEqual({ namespace: 'shop' });
    expect(api.requests('POST')).toHaveLength(1);
    expect(api.objects.get('/api/v1/namespaces/shop')).toMatchObject({
      metadata: { labels: { 'spillway.dev/host': HOST_ID }, annotations: { 'spillway.dev/host-namespace': 'shop' } },
    });
  });

  it.each(['privileged', 'baseline', 'restricted'] as const)(
    'gives a namespace that it creates the level %s, and never writes to one that has another',
    async (podSecurity) => {
      const { api, ensure, put } = member({ podSecurity });
      await ensure();
      expect(api.objects.get('/api/v1/namespaces/shop')?.metadata.labels).toEqual({
        'spillway.dev/host': HOST_ID,
        'pod-security.kubernetes.io/enforce': podSecurity,
      });
      for (const level of ['privileged', 'baseline', 'restricted']) {
        put(level, { labels: { 'spillway.dev/host': HOST_ID, 'pod-security.kubernetes.io/enforce': level } });
        expect(await ensure(level)).toEqual({ namespace: level });
      }
      put('former', { labels: { 'spillway.dev/host': HOST_ID } });
      expect(await ensure('former')).toEqual({ namespace: 'former' });
      expect(api.seen).toHaveLength(1);
    },
  );

  it('knows what was made for a namespace of the host before the mapping was edited', async () => {
    const prefixed: Partial<Spec> = { mapping: 'Prefixed', prefix: 'h-' };
    const { namespaces, ensure, put } = member(prefixed);
    await ensure();
    const madeFor = (host: string, namespace: string): JsonObject => ({
      labels: { 'spillway.dev/host': host },
      annotations: { 'spillway.dev/host-namespace': namespace },
    });
    put('shop', madeFor(HOST_ID, 'shop'));
    put('g-lab', madeFor(HOST_ID, 'lab'));
    put('g-shop', madeFor('another0host0000', 'shop'));
    expect(namespaces.everUsedFor('shop')).toEqual(['h-shop', 'shop']);
    expect(namespaces.everUsedFor('lab')).toEqual(['h-lab', 'g-lab']);
    expect(namespaces.everUsedFor('kube-system')).toEqual([]);
  });

  it.each([
    [{ 'spillway.dev/host': HOST_ID }, true],
    [{ 'spillway.dev/host': 'another', 'spillway.dev/allow-host': 'any' }, false],
    [{ 'spillway.dev/allow-host': 'any' }, true],
    [{ 'spillway.dev/allow-host': HOST_ID }, true],
    [{ 'spillway.dev/allow-host': 'another' }, false],
    [{}, false],
  ])('knows by its labels %j whether a namespace is ours to use', async (labels, usable) => {
    const { api, namespaces, put, ensure } = member();
    put('shop', { labels });
    const found = api.objects.get('/api/v1/namespaces/shop');
    if (found === undefined) throw new Error('it is not there');
    expect(namespaces.isUsable(found)).toBe(usable);
    expect('namespace' in (await ensure())).toBe(usable);
  });

  it('asks nothing about a namespace of ours that is there', async () => {
    const { api, ensure, put } = member();
    put('shop', { labels: { 'spillway.dev/host': HOST_ID } });
    expect(await ensure()).toEqual({ namespace: 'shop' });
    expect(api.seen).toEqual([]);
  });

  it.each([
    [HOST_ID, true, 'namespace shop'],
    ['any', true, 'namespace shop'],
    ['another', true, 'NamespaceNotAllowed'],
    [HOST_ID, false, 'NamespaceNotAllowed'],
  ])('lent by label %s with adoptExisting %s: %s', async (value, adoptExisting, reason) => {
    const { api, held, put } = member({ adoptExisting });
    put('shop', { labels: { 'spillway.dev/allow-host': value } });
    expect((await held()).reason).toBe(reason);
    expect(api.seen).toEqual([]);
  });

  it('never uses one that is not ours, and says how to lend it', async () => {
    const { api, held, put } = member();
    put('shop');
    expect(await held()).toEqual({
      reason: 'NamespaceNotAllowed',
      message: expect.stringContaining(
        `Cluster "east": namespace shop exists there and is not ours. To lend it, its owner runs: kubectl label namespace shop spillway.dev/allow-host=${HOST_ID}`,
      ),
    });
    expect(api.seen).toEqual([]);
  });

  it('never uses one of another host, even if it is lent to anyone', async () => {
    const { held, put } = member();
    put('shop', { labels: { 'spillway.dev/host': 'another', 'spillway.dev/allow-host': 'any' } });
    expect((await held()).message).toContain('belongs to another host (another)');
  });

  it('never lets two host namespaces meet in one', async () => {
    const { held, put } = member({ mapping: 'Explicit', explicit: [{ host: 'bank', member: 'shared' }] });
    put('shared', { labels: { 'spillway.dev/host': HOST_ID }, annotations: { 'spillway.dev/host-namespace': 'shop' } });
    expect((await held('bank')).message).toContain('already stands for namespace shop');
  });

  it('finds out about a namespace that the cache does not show yet', async () => {
    const { api, held, put } = member({}, false);
    put('shop');
    expect((await held()).reason).toBe('NamespaceNotAllowed');
    expect(api.requests('POST')).toHaveLength(1);
    expect(api.requests('GET')).toHaveLength(1);
  });

  it('waits for one that is being deleted', async () => {
    const { held, put } = member();
    put('shop', { labels: { 'spillway.dev/host': HOST_ID }, deletionTimestamp: '2026-01-01T00:00:00Z' });
    put('bank', { labels: { 'spillway.dev/host': HOST_ID } }, { phase: 'Terminating' });
    expect((await held()).reason).toBe('NamespaceTerminating');
    expect((await held('bank')).reason).toBe('NamespaceTerminating');
  });

  it('does not create when it must not', async () => {
    const { api, held } = member({ create: false });
    expect(await held()).toMatchObject({
      reason: 'NamespaceMissing',
      message: expect.stringContaining('spec.namespaces.create is false'),
    });
    expect(api.seen).toEqual([]);
  });

  it('does not create in a cluster that is not the pinned one', async () => {
    const { api, held, lose } = member();
    lose();
    expect((await held()).reason).toBe('MemberIdentityChanged');
    expect(api.seen).toEqual([]);
  });

  it('says what the member answered', async () => {
    const { api, held } = member();
    api.fault = () => ({ code: 403, reason: 'Forbidden', message: 'User "x" cannot create resource "namespaces"' });
    expect(await held()).toMatchObject({
      reason: 'NamespaceCreateForbidden',
      message: expect.stringContaining('User "x" cannot create'),
    });
    api.fault = () => ({ code: 503, message: 'overloaded' });
    expect(await held()).toMatchObject({ reason: 'MemberUnavailable', message: expect.stringContaining('overloaded') });
    api.fault = () => 'reset';
    expect((await held()).reason).toBe('MemberUnavailable');
    api.fault = undefined;
    expect((await held()).reason).toBe('namespace shop');
  });

  const denied = (words: string, policy = 'spillway-host-namespace-guard') => ({
    code: 422,
    reason: 'Invalid',
    message: `namespaces "shop" is forbidden: ValidatingAdmissionPolicy '${policy}' with binding '${policy}' denied request: ${words}`,
  });
  const hasLevel = ({ body }: MemoryRequest): boolean =>
    JSON.stringify(body ?? {}).includes('pod-security.kubernetes.io/');

  it('creates one without a level where the guard of the member is of a version that takes none', async () => {
    const { api, ensure } = member();
    api.fault = (request) =>
      hasLevel(request) ? denied('how secure pods have to be is not for hosts to say') : undefined;
    expect(await ensure()).toEqual({ namespace: 'shop' });
    expect(api.objects.get('/api/v1/namespaces/shop')?.metadata.labels).toEqual({ 'spillway.dev/host': HOST_ID });
    expect(api.requests('POST')).toHaveLength(2);
  });

  it.each([
    denied('how secure pods have to be is not for hosts to say', 'another-policy'),
    denied('a namespace that a host makes has the Pod Security level baseline or restricted'),
    denied('by which version of the rules pods are judged is not for hosts to say'),
    { code: 400, message: 'admission webhook "names.example" denied the request: no such names' },
    { code: 500, message: 'admission webhook "names.example" denied the request: no such names' },
    { code: 422, reason: 'Invalid', message: 'Namespace "shop" is invalid: metadata.labels: Invalid value' },
  ])('does not say of a denial that it passes by itself, nor asks twice: $message', async (fault) => {
    const { api, held } = member();
    api.fault = (request) => (hasLevel(request) ? fault : undefined);
    expect(await held()).toMatchObject({
      reason: 'NamespaceCreateForbidden',
      message: expect.stringContaining(fault.message),
    });
    expect(api.requests('POST')).toHaveLength(1);
  });

  it('rejects only when it is told to stop', async () => {
    const { api, namespaces } = member();
    api.fault = () => 'hang';
    const stop = new AbortController();
    const answer = namespaces.ensure('shop', stop.signal);
    stop.abort(new Error('stopped'));
    await expect(answer).rejects.toThrow('stopped');
  });

  it.each(['kube-system', 'kube-public', 'openshift-x'])('never touches %s', async (name) => {
    const { api, held, namespaces } = member();
    expect((await held(name)).reason).toBe('NamespaceNotAllowed');
    expect(namespaces.memberNamespaceOf(name)).toBeUndefined();
    expect(api.seen).toEqual([]);
  });

  it('maps without asking', () => {
    const { api, namespaces } = member({ mapping: 'Prefixed', prefix: 'a-' });
    expect(namespaces.memberNamespaceOf('shop')).toBe('a-shop');
    expect(api.seen).toEqual([]);
  });
});
