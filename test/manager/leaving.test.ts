import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import type { LeavingState } from '../../src/members/leaving/member-leaving.ts';
import { type Asked, isGivenUp } from '../../src/manager/given-up.ts';
import { type LeavingOptions, memberLeaving } from '../../src/manager/leaving.ts';
import { Violations } from '../fixtures/violations.ts';
import { KINDS_IN_MEMBERS } from '../fixtures/kinds-in-members.ts';

const FORCE_LEAVE_SECONDS = 300;

function leaver(word = 'mc-east', leaves = true): MemberCluster {
  const annotations = { 'spillway.dev/force-leave': word };
  const deleted = leaves ? { deletionTimestamp: '2026-01-10T00:00:00Z' } : {};
  const raw = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', uid: 'mc-east', annotations, ...deleted },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  };
  const parsed = parseMemberCluster(raw);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.member;
}
const asked = (reachable: boolean, seconds: number, identity = 'pinned'): Asked => ({
  reachability: { reachable, against: 0, failingSince: undefined, failure: undefined },
  observedIdentity: identity,
  identityOk: () => identity === 'pinned',
  silentMs: seconds * 1000,
});

describe('the word of an administrator that a member is gone for good', () => {
  it.each<[string, boolean, Asked, MemberCluster?]>([
    ['counts in an outage of five minutes', true, asked(false, 300)],
    ['counts when another cluster has answered for so long', true, asked(true, 300, 'another')],
    ['does not count in an outage of half a minute', false, asked(false, 30)],
    ['does not count in one of nearly five minutes', false, asked(false, 299)],
    ['does not count when another cluster has answered for a moment', false, asked(true, 0, 'another')],
    ['does not count while the member answers', false, asked(true, 0)],
    ['does not count before the deletion', false, asked(false, 300), leaver('mc-east', false)],
    ['does not count for another MemberCluster of the name', false, asked(false, 300), leaver('mc-former')],
  ])('%s', (_, counts, connection, member = leaver()) => {
    expect(isGivenUp(member, connection, FORCE_LEAVE_SECONDS)).toBe(counts);
  });
});

const OURS = { 'spillway.dev/host': 'us' };
const object = (name: string, more: object = {}): object => ({
  metadata: { namespace: 'shop', name, labels: OURS, ...more },
});
const SHOP = { kind: 'Namespace', metadata: { name: 'shop', uid: 'n-1', resourceVersion: '7', labels: OURS } };
const KINDS: Readonly<Record<string, string>> = {
  ...KINDS_IN_MEMBERS,
  certificatesigningrequests: 'CertificateSigningRequest',
};

interface Plan {
  /** Whether another MemberCluster `twin` stands for the same cluster. Default: there is none. */
  twin?: 'may be' | 'known';
  givenUp?: boolean;
  /** The policy and phase of the volume of a claim there. Default: there is none. */
  volume?: readonly [policy: string, phase: string, identity?: string];
  /** What keeps the data of that volume. */
  problem?: { why: string; lasts: boolean };
  /** Who wrote a Secret that is left there. */
  secretOf?: string;
}

/** What a look at a member finds in which a namespace is left that we made, whatever caches have; and what was removed there. */
async function leave({ twin, givenUp = false, volume, problem, secretOf }: Plan) {
  const removed: string[] = [];
  const events: string[] = [];
  const request = ({ method = 'GET', path }: KubeRequest): Promise<unknown> => {
    if (method === 'DELETE') removed.push(path);
    if (path.endsWith('/namespaces/shop')) return Promise.resolve(SHOP);
    const kind = KINDS[path.split('/').at(-1) ?? ''];
    if (kind === undefined) return Promise.resolve({ items: [] });
    const writer = { ...OURS, 'spillway.dev/member': secretOf };
    const secrets = kind === 'Secret' && secretOf !== undefined ? [object('keys', { labels: writer })] : [];
    const items =
      kind === 'PersistentVolumeClaim' && problem !== undefined ? [{ ...object('one'), spec: {} }] : secrets;
    return Promise.resolve({ kind: `${kind}List`, metadata: { resourceVersion: '9' }, items });
  };
  const copies = [
    { kind: 'ConfigMap', ...object('settings') },
    { kind: 'PersistentVolumeClaim', ...object('data') },
  ];
  const acting = {
    services: {
      host: { cluster: 'host', request },
      hostId: 'us',
      hostClaims: {
        unknown: () => undefined,
        get: () => undefined,
        volumes: () =>
          givenUp || volume !== undefined ? [{ metadata: { name: 'one' } }, { metadata: { name: 'another' } }] : [],
        volume: (name: string) => ({
          name,
          member: name === 'one' ? 'east' : 'west',
          identity: volume?.[2] ?? 'pinned',
          namespace: 'shop',
          claim: name,
          for: { namespace: 'shop', name, uid: name },
          object: { spec: { persistentVolumeReclaimPolicy: volume?.[0] }, status: { phase: volume?.[1] } },
        }),
      },
      invariants: new Violations(),
      config: { forceLeaveSeconds: FORCE_LEAVE_SECONDS },
    },
    connection: {
      ...asked(true, 0),
      name: 'east',
      identity: () => 'pinned',
      client: { cluster: 'east', request },
      namespaces: new Map([['shop', SHOP]]),
      pods: new Map([['shop/p', object('p', { labels: { ...OURS, 'spillway.dev/node': 'east' } })]]),
    },
    standing: {
      // As every MemberCluster that is there, it stands for the cluster itself.
      sharesCluster: (member: string) => member === 'east' || (member === 'twin' && twin !== undefined),
      othersWant: () => false,
      isShared: () => twin !== undefined,
      isKnownToBeShared: () => twin === 'known',
    },
    member: () => leaver(),
    givenUp: () => givenUp,
    mayWrite: () => true,
    event: (_: string, reason: string, message: string) => void events.push(`${reason}: ${message}`),
    logger: pino({ level: 'silent' }),
  };
  const options = {
    acting,
    namespaces: { isUsable: () => true },
    dependents: {
      mirror: { isInUse: () => false },
      claims: { reclaimer: { problemOf: (name: string) => (name === 'one' ? problem : undefined) } },
      copies: new Map(copies.map((copy, i) => [i, copy])),
    },
    retirement: { retiring: () => [], nodesKnown: true, allKnown: true },
    budgets: { inMember: () => [{ namespace: 'shop', name: 'web' }] },
    memberServices: {
      inMember: () => [
        { kind: 'Service', ...object('web') },
        { kind: 'EndpointSlice', addressType: 'IPv4', ...object('web-1') },
      ],
    },
    exchange: {
      inMember: () => [
        { kind: 'ServiceImport', ...object('cart') },
        { kind: 'Service', ...object('derived-x') },
      ],
    },
    scopes: () => [],
  } as unknown as LeavingOptions;
  const stop = new AbortController();
  const leaving = memberLeaving(options);
  const running = leaving.run(stop.signal);
  const state = await new Promise<LeavingState>((resolve) => {
    const look = (): void => (leaving.state === undefined ? void setTimeout(look, 5) : resolve(leaving.state));
    look();
  });
  stop.abort();
  await running;
  return { state, removed, events };
}

describe('a namespace that we made in a member that leaves', () => {
  it('goes where no other MemberCluster stands for the same cluster', async () => {
    const { removed, events } = await leave({});
    expect(removed).toEqual(['/api/v1/namespaces/shop']);
    expect(events).toEqual([expect.not.stringContaining('stays')]);
  });

  it('stays, and is named, where another one may', async () => {
    const { removed, events } = await leave({ twin: 'may be' });
    expect(removed).toEqual([]);
    expect(events.join()).toContain('What stays there: Namespace shop (another MemberCluster may stand for the same');
  });

  it('stays without a word where another one is known to, which sees to it', async () => {
    const { removed, events } = await leave({ twin: 'known' });
    expect(removed).toEqual([]);
    expect(events).toEqual([expect.not.stringContaining('stays')]);
  });
});

describe('a copy that is left in a member that leaves', () => {
  it.each(['east', 'gone'])('is waited for when %s wrote it last', async (secretOf) => {
    const { state, removed } = await leave({ secretOf });
    expect(state).toMatchObject({ reason: 'CopiesRemain', copies: 1, done: false });
    expect(removed).toEqual([]);
  });

  it('is not, when another MemberCluster for the same cluster did', async () => {
    expect((await leave({ secretOf: 'twin', twin: 'known' })).state).toMatchObject({ done: true });
  });
});

describe('a claim in a member that leaves, whose claim in the host is gone', () => {
  it('is waited for while it goes, too', async () => {
    const { state, removed } = await leave({ volume: ['Delete', 'Released'] });
    expect(state).toMatchObject({ reason: 'CopiesRemain', copies: 1, done: false });
    expect(state.message).toContain('PersistentVolumeClaim shop/one');
    expect(removed).toEqual([]);
  });

  it('is waited for before the host itself has seen that its claim is gone', async () => {
    const { state } = await leave({ volume: ['Delete', 'Bound'] });
    expect(state).toMatchObject({ reason: 'CopiesRemain', copies: 1, done: false });
  });

  it('says what keeps it, and how to leave the data there', async () => {
    const { state } = await leave({
      volume: ['Delete', 'Released'],
      problem: { why: 'a webhook is down', lasts: false },
    });
    expect(state).toMatchObject({ reason: 'CopiesRemain', copies: 1, done: false });
    expect(state.message).toContain(
      'PersistentVolumeClaim shop/one (not deleted so far: a webhook is down; to leave the data there, set the reclaim policy of volume one here to Retain)',
    );
  });

  it('is named, and not waited for, where the member has refused for long', async () => {
    const { state, events } = await leave({
      volume: ['Delete', 'Released'],
      problem: { why: 'it may not be deleted', lasts: true },
    });
    const named = 'PersistentVolumeClaim shop/one (not deleted: it may not be deleted; volume one here stays, too)';
    expect(state).toMatchObject({ done: true, mayRemain: expect.arrayContaining([named]) as string[] });
    expect(state.mayRemain).not.toContain('PersistentVolumeClaim shop/one');
    expect(events.join()).toContain(`What may remain there: ${named}`);
  });

  it.each<[NonNullable<Plan['volume']>]>([
    [['Retain', 'Released']],
    [['Retain', 'Bound']],
    [['Delete', 'Failed']],
    [['Delete', 'Released', 'another cluster']],
  ])('is not, where it stays: %j', async (volume) => {
    expect((await leave({ volume })).state).toMatchObject({ done: true });
  });
});

it('all that is known to be in a member that is given up is named', async () => {
  const { state, removed } = await leave({ givenUp: true });
  expect(removed).toEqual([]);
  expect(state.mayRemain).toEqual([
    'ConfigMap shop/settings',
    'EndpointSlice shop/web-1',
    'Namespace shop',
    'PersistentVolumeClaim shop/data',
    'PersistentVolumeClaim shop/one',
    'Pod shop/p',
    'PodDisruptionBudget shop/web',
    'Service shop/derived-x',
    'Service shop/web',
    'ServiceImport shop/cart',
  ]);
});
