import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdOf } from '../../src/api/marks.ts';
import { joinedMember, type KnownMember } from '../../src/cli/joined-member.ts';
import { optionalGrants } from '../../src/cli/member-grant.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const HOST_UID = '11111111-1111-4111-8111-111111111111';
const OURS = hostIdOf(HOST_UID);
const LEVEL = 'pod-security.kubernetes.io/enforce';
const LENT = 'spillway.dev/allow-host';
const RECORD = `/api/v1/namespaces/spillway-access/configmaps/joined-by-${OURS}`;

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let folder: string;

beforeEach(async () => {
  host = new MemoryApi({ uid: () => HOST_UID });
  member = new MemoryApi();
  servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
  for (const api of [host, member]) makeNamespace(api, 'kube-system');
  folder = mkdtempSync(join(tmpdir(), 'spillway-join-'));
  const [hostServer, memberServer] = servers;
  if (hostServer === undefined || memberServer === undefined) throw new Error('no servers');
  writeKubeconfig(join(folder, 'kubeconfig'), { host: hostServer, east: memberServer });
  makeObject('/api/v1/namespaces/kube-system/configmaps', 'ConfigMap', 'kube-root-ca.crt', {
    data: { 'ca.crt': 'CA' },
  });
  member.fault = (request) => {
    // Whether credentials work is not what is looked at here.
    if (request.path.endsWith('/token')) return { code: 403, reason: 'Forbidden', message: 'no tokens' };
    if (request.contentType !== 'application/apply-patch+yaml') return undefined;
    // Near enough for what one who applies sets and never takes off.
    request.contentType = 'application/merge-patch+json';
    if (!member.objects.has(request.path)) member.put(request.path, { metadata: {} });
    return undefined;
  };
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

function makeNamespace(api: MemoryApi, name: string, labels: Record<string, string> = {}): void {
  makeObject('/api/v1/namespaces', 'Namespace', name, { metadata: { name, labels } }, api);
}

function makeObject(path: string, kind: string, name: string, more: object, api = member): void {
  const body = { apiVersion: 'v1', kind, metadata: { name }, ...more };
  api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
}

/** As far as the rights in the member. */
async function runJoin(...words: string[]): Promise<{ code: number; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--context=host', '--member-context=east'];
  const server = '--server=https://east.example:6443';
  const code = await runProgram(['join', 'east', ...flags, server, ...words], terminal);
  return { code, notes: terminal.notes.join('\n') };
}
const labels = (name: string): unknown => member.objects.get(`/api/v1/namespaces/${name}`)?.metadata.labels;

describe('namespaces that are lent to a host that joins', () => {
  it('are made with a level, and keep it when the same is said again', async () => {
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: 'baseline' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: 'baseline' });
  });

  it.each(['privileged', 'baseline', 'restricted'])('keep the level %s that they have', async (level) => {
    makeNamespace(member, 'shop', { [LEVEL]: level, team: 'a' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: level, team: 'a' });
  });

  it('stay lent to any host where they are', async () => {
    makeNamespace(member, 'shop', { [LENT]: 'any' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: 'any', [LEVEL]: 'baseline' });
  });

  it.each<[string, string]>([
    [LENT, 'or, where that host is to have it no more: kubectl label namespace shop spillway.dev/allow-host- there'],
    ['spillway.dev/host', 'lend another namespace: that host made this one'],
  ])('are not taken from another host, whose by %s they are', async (label, fix) => {
    makeNamespace(member, 'shop', { [label]: 'another0host0000' });
    const { code, notes } = await runJoin('--lend=bank', '--lend=shop');
    expect(code).toBe(1);
    expect(notes).toContain("namespace shop of the member is another host's, and nothing was done");
    expect(notes).toContain(`its label ${label} says another0host0000`);
    expect(notes).toContain(fix);
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('a token that the host has under the name of the member', () => {
  const claims = { sub: 'system:serviceaccount:spillway-access:spillway-host', iat: 1_772_366_000, exp: 1_772_970_000 };
  const token = `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;
  const register = (identity?: string): void => {
    const more = { apiVersion: 'spillway.dev/v1alpha1', spec: {}, status: identity === undefined ? {} : { identity } };
    makeObject('/apis/spillway.dev/v1alpha1/memberclusters', 'MemberCluster', 'east', more, host);
  };
  const asks = (): boolean => member.requests('POST').some(({ path }) => path.endsWith('/spillway-host/token'));
  beforeEach(() => {
    const data = { token: Buffer.from(token).toString('base64') };
    makeObject('/api/v1/namespaces/spillway-system/secrets', 'Secret', 'member-east', { data }, host);
  });

  it.each<[string, () => void]>([
    ['no MemberCluster', () => undefined],
    ['a MemberCluster that was never reached', () => register()],
  ])('is not sent to a cluster for which %s says that it is of it', async (_what, make) => {
    make();
    await runJoin();
    expect(asks()).toBe(true);
  });

  it('is tried where the MemberCluster stands for this cluster', async () => {
    register(member.objects.get('/api/v1/namespaces/kube-system')?.metadata.uid);
    await runJoin();
    expect(asks()).toBe(false);
  });
});

it('a member that leaves is not joined meanwhile: nothing is done, and it is said what to wait for', async () => {
  const metadata = { name: 'east', finalizers: ['spillway.dev/member'] };
  const more = { apiVersion: 'spillway.dev/v1alpha1', spec: {}, metadata };
  makeObject('/apis/spillway.dev/v1alpha1/memberclusters', 'MemberCluster', 'east', more, host);
  host.handle({
    method: 'DELETE',
    path: '/apis/spillway.dev/v1alpha1/memberclusters/east',
    query: {},
    body: undefined,
    contentType: '',
  });
  const { code, notes } = await runJoin();
  expect(code).toBe(1);
  expect(notes).toContain('MemberCluster east is leaving');
  expect(notes).toContain('kubectl wait --for=delete --timeout=10m membercluster/east');
  expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
});

it('a member writes down what any join has granted', async () => {
  const written = (): unknown => member.objects.get(RECORD)?.['data'];
  const NO_MORE = { nodeMetrics: 'false', services: 'false', multiCluster: 'false', privileged: 'false' };
  await runJoin('--lend=shop');
  expect(written()).toEqual({ member: 'east', lent: 'shop', dedicated: 'false', ...NO_MORE });
  await runJoin('--lend=bank', '--node-metrics');
  expect(written()).toEqual({ member: 'east', lent: 'bank shop', dedicated: 'false', ...NO_MORE, nodeMetrics: 'true' });
  await runJoin();
  expect(written()).toEqual({ member: 'east', lent: 'bank shop', dedicated: 'true', ...NO_MORE, nodeMetrics: 'true' });
});

describe('what limits namespaces that are lent', () => {
  const POLICY = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/spillway';
  const QUOTA = '/api/v1/namespaces/shop/resourcequotas/spillway';

  it('is a network policy only where one is asked for, and it stays when join is repeated', async () => {
    await runJoin('--lend=shop');
    expect(member.objects.has(POLICY)).toBe(false);
    await runJoin('--lend=shop', '--network-policy');
    const ours = { matchExpressions: [{ key: 'spillway.dev/host', operator: 'Exists' }] };
    const spec = { podSelector: ours, policyTypes: ['Ingress'], ingress: [{ from: [{ podSelector: ours }] }] };
    expect(member.objects.get(POLICY)).toMatchObject({ spec });
    await runJoin('--lend=shop');
    expect(member.objects.has(POLICY)).toBe(true);
  });

  it('is applied again where join made it', async () => {
    await runJoin('--lend=shop', '--network-policy', '--quota=pods=5');
    const managedFields = [{ manager: 'kubectl-spillway', operation: 'Apply' }];
    for (const path of [POLICY, QUOTA]) member.edit(path, { metadata: { managedFields } });
    await runJoin('--lend=shop', '--network-policy', '--quota=pods=7');
    expect(member.objects.get(QUOTA)).toMatchObject({ spec: { hard: { pods: '7' } } });
  });

  it.each([
    ['--network-policy', POLICY, 'networkpolicy.networking.k8s.io/spillway in namespace shop'],
    ['--quota=pods=5', QUOTA, 'resourcequota/spillway in namespace shop'],
  ])('is not put in the place of one that the owner of the namespace made: %s', async (flag, path, name) => {
    const managedFields = [{ manager: 'kubectl-create', operation: 'Update' }];
    const own = { metadata: { namespace: 'shop', name: 'spillway', managedFields }, spec: { of: 'the owner' } };
    member.put(path, own);
    for (const words of [[flag], [flag, '--dry-run=server']]) {
      const { code, notes } = await runJoin('--lend=bank', '--lend=shop', ...words);
      expect(code).toBe(1);
      expect(notes).toContain('limits of the owner of the member would be overwritten, and nothing was done');
      expect(notes).toContain(`nothing shows that join made ${name}\n`);
      expect(notes).toContain('delete what is there, or give it another name, and repeat this');
    }
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
    await runJoin('--lend=shop');
    expect(member.objects.get(path)).toMatchObject({ spec: { of: 'the owner' } });
  });

  const OF_JOIN = { manager: 'kubectl-spillway', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:hard': {} } } };
  const edit = (fields: object): object => ({ manager: 'kubectl-edit', operation: 'Update', fieldsV1: fields });

  it.each<[string, string, object, object, string]>([
    [
      '--quota=pods=200',
      QUOTA,
      { hard: { pods: '50', 'requests.cpu': '32' } },
      edit({ 'f:spec': { 'f:hard': { 'f:pods': {} } } }),
      'spec.hard.pods of resourcequota/spillway in namespace shop is "50"',
    ],
    [
      '--network-policy',
      POLICY,
      { ingress: [{}], podSelector: {}, policyTypes: ['Ingress'] },
      edit({ 'f:spec': { 'f:ingress': {}, 'f:policyTypes': {} } }),
      'spec.ingress of networkpolicy.networking.k8s.io/spillway in namespace shop is [{}]',
    ],
  ])('is not changed back where its owner has changed it since: %s', async (flag, path, spec, other, words) => {
    member.put(path, { metadata: { namespace: 'shop', managedFields: [OF_JOIN, other] }, spec });
    for (const more of [[], ['--dry-run=server']]) {
      const { code, notes } = await runJoin('--lend=shop', flag, ...more);
      expect(code).toBe(1);
      expect(notes).toContain('limits of the owner of the member would be overwritten, and nothing was done');
      expect(notes).toContain(`somebody has changed what join made: ${words}\n`);
      expect(notes).toContain('give --quota what stands there, or delete what is there, and repeat this');
    }
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('is applied where its owner has only added to it, or agrees', async () => {
    const fields = { 'f:spec': { 'f:hard': { '.': {}, 'f:limits.memory': {}, 'f:requests.cpu': {} } } };
    const status = { ...edit({ 'f:status': { 'f:hard': { 'f:pods': {} } } }), subresource: 'status' };
    const managedFields = [OF_JOIN, edit(fields), status, 'no entry'];
    const hard = { pods: '200', 'limits.memory': '1Gi', 'requests.cpu': '500m' };
    member.put(QUOTA, { metadata: { namespace: 'shop', managedFields }, spec: { hard } });
    await runJoin('--lend=shop', '--quota=pods=100', '--quota=requests.cpu=0.5');
    expect(member.objects.get(QUOTA)).toMatchObject({ spec: { hard: { pods: '100', 'limits.memory': '1Gi' } } });
  });

  it.each(['--network-policy', '--quota=pods=5'])('is refused where none is: %s', async (flag) => {
    const { code, notes } = await runJoin(flag);
    expect(code).toBe(2);
    expect(notes).toContain('--quota and --network-policy are for namespaces that are lent');
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('privileged pods', () => {
  const BINDING = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spillway-privileged';

  it('may be in namespaces that the host makes only where the owner of the member says so, who is told what that means', async () => {
    expect((await runJoin()).notes).not.toContain('privileged');
    expect(member.objects.has(BINDING)).toBe(false);
    const { notes } = await runJoin('--allow-privileged');
    expect(notes).toContain('can do everything on the nodes that they run on. So can whoever steals the credentials');
    expect(member.objects.get(BINDING)).toMatchObject({ roleRef: { name: 'spillway-privileged' } });
    expect(member.objects.get(RECORD)).toMatchObject({ data: { privileged: 'true' } });
  });

  it('have no place in namespaces that are lent: nothing is done', async () => {
    const { code, notes } = await runJoin('--lend=shop', '--allow-privileged');
    expect(code).toBe(2);
    expect(notes).toContain(
      'kubectl label --overwrite namespace NAMESPACE pod-security.kubernetes.io/enforce=privileged',
    );
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('a join that is repeated with fewer words', () => {
  const SECRET = { namespace: 'spillway-system', name: 'member-east' };
  const credentials = { secretRef: SECRET };
  const NOTHING = { lend: [], ...optionalGrants(() => false), quota: {}, networkPolicy: false };
  const WHOLE = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spillway-namespaces';

  /** As the API server shows what this manager has applied. */
  function known(fields: object, spec: object, manager = 'kubectl-spillway'): KnownMember {
    const ours = { manager, operation: 'Apply', fieldsV1: { 'f:spec': { 'f:credentials': {}, ...fields } } };
    const managedFields = [{ manager: 'spillway', operation: 'Update', fieldsV1: { 'f:status': {} } }, ours];
    const metadata = { name: 'east', managedFields };
    return { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata, spec } as KnownMember;
  }
  const EVERYTHING = known(
    {
      'f:namespaces': { 'f:create': {}, 'f:podSecurity': {} },
      'f:services': { 'f:mode': {}, 'f:multiCluster': {} },
    },
    {
      credentials,
      namespaces: { mapping: 'Same', create: false, podSecurity: 'privileged' },
      services: { mode: 'Mirror', namespaces: ['shop'], multiCluster: 'Exchange' },
    },
  );
  const joinAgain = (member: KnownMember, more: object = {}) =>
    joinedMember('east', SECRET, { ...NOTHING, ...more }, member);

  it('keeps what an earlier one has set of the MemberCluster, and says so', () => {
    const { object, kept } = joinAgain(EVERYTHING);
    expect(object).toMatchObject({ metadata: { name: 'east' } });
    expect(object).toHaveProperty('spec', {
      credentials,
      namespaces: { create: false, podSecurity: 'privileged' },
      services: { mode: 'Mirror', multiCluster: 'Exchange' },
    });
    expect(kept).toEqual([
      'spec.namespaces.create: false',
      'spec.namespaces.podSecurity: privileged',
      'spec.services.mode: Mirror',
      'spec.services.multiCluster: Exchange',
    ]);
  });

  it('adds what it is told to that', () => {
    const member = known({ 'f:services': { 'f:mode': {} } }, { services: { mode: 'Mirror', multiCluster: 'None' } });
    const { object, kept } = joinAgain(member, { multiCluster: true });
    expect(object).toHaveProperty('spec', { credentials, services: { mode: 'Mirror', multiCluster: 'Exchange' } });
    expect(kept).toEqual(['spec.services.mode: Mirror']);
  });

  it('leaves to others what is theirs', () => {
    const spec = { services: { mode: 'Mirror', multiCluster: 'None' }, namespaces: { podSecurity: 'restricted' } };
    const fields = { 'f:services': { 'f:mode': {} }, 'f:namespaces': { 'f:podSecurity': {} } };
    for (const member of [known({}, spec), known(fields, spec, 'argocd')])
      expect(joinAgain(member)).toMatchObject({ object: { spec: { credentials } }, kept: [] });
    expect(joinAgain(known({}, spec)).object).toHaveProperty('spec', { credentials });
  });

  it('gives namespaces that are lent by now no level', () => {
    const { object, kept } = joinAgain(EVERYTHING, { lend: ['shop'] });
    expect(object).toHaveProperty('spec.namespaces', { create: false });
    expect(kept).not.toContain('spec.namespaces.podSecurity: privileged');
  });

  it('reads the MemberCluster of that name before it does anything', async () => {
    register(EVERYTHING);
    const { notes } = await runJoin('--allow-privileged');
    expect(notes).toContain(
      'note: as an earlier join was told: spec.namespaces.create: false; spec.services.mode: Mirror; spec.services.multiCluster: Exchange\n',
    );
  });

  it('grants no whole member where namespaces are lent, and lends those that still are', async () => {
    await runJoin('--lend=shop', '--lend=bank');
    register(known({ 'f:namespaces': { 'f:create': {} } }, { credentials, namespaces: { create: false } }));
    unlend('bank');
    const { notes } = await runJoin('--quota=pods=5');
    expect(notes).toContain('note: as an earlier join was told: --lend shop; spec.namespaces.create: false\n');
    expect(member.objects.has(WHOLE)).toBe(false);
    expect(member.objects.get(RECORD)).toMatchObject({ data: { lent: 'bank shop', dedicated: 'false' } });
    expect(labels('bank')).not.toHaveProperty(LENT);
    expect([...member.objects.keys()].filter((path) => path.includes('/resourcequotas/'))).toHaveLength(1);
    expect((await runJoin('--allow-privileged')).code).toBe(2);
  });

  it('does nothing where none of them is lent any more', async () => {
    await runJoin('--lend=shop');
    register(known({}, { credentials }));
    unlend('shop');
    const before = member.seen.length;
    const { code, notes } = await runJoin();
    expect(code).toBe(1);
    expect(notes).toContain('no namespace of the member is lent to the host any more, and nothing was done');
    expect(member.seen.slice(before).filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  function register(object: KnownMember): void {
    makeObject('/apis/spillway.dev/v1alpha1/memberclusters', 'MemberCluster', 'east', object, host);
  }

  function unlend(name: string): void {
    const body = { metadata: { labels: { [LENT]: null } } };
    const contentType = 'application/merge-patch+json';
    member.handle({ method: 'PATCH', path: `/api/v1/namespaces/${name}`, query: {}, body, contentType });
  }
});
