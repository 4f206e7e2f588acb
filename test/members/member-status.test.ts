import { describe, expect, it } from 'vitest';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import { deletionToken } from '../../src/members/kept-deletions.ts';
import { memberStatus } from '../../src/members/member-status.ts';
import { wasBreakerOpen } from '../../src/members/written-status.ts';
import type { MemberFacts } from '../../src/members/member-status.ts';
import { NOT_PROBED } from '../../src/members/reachability.ts';

const NOW = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T00:01:00Z';
const UP = { reachable: true, against: 0, failingSince: undefined, failure: undefined };
const DOWN = {
  reachable: false,
  against: 0,
  failingSince: { wall: 0, monotonic: 0 },
  failure: { reason: 'Timeout', message: 'no answer.' },
};

const good: MemberFacts = {
  name: 'east',
  generation: 4,
  problems: [],
  conflict: undefined,
  credentials: { state: 'accepted', secret: 'Secret fleet/east' },
  reachability: UP,
  pinned: 'uid-1',
  observed: 'uid-1',
  isHost: false,
  synced: true,
  cacheProblem: undefined,
  version: 'v1.36.3',
  allocatable: { cpu: '4' },
  room: { largestFreeSlot: { cpu: '2' }, fits: [{ requests: { cpu: '1' }, slots: 3 }] },
  pods: { running: 1, pending: 2, total: 3 },
  keptDeletions: { uids: [], open: false, hostWentBack: false },
  retiring: [],
};
const none: MemberFacts = {
  ...good,
  credentials: { state: 'waiting', message: 'Not read.' },
  reachability: NOT_PROBED,
  pinned: undefined,
  observed: undefined,
  synced: false,
  version: undefined,
  allocatable: undefined,
  room: undefined,
  pods: undefined,
  keptDeletions: undefined,
  retiring: undefined,
};

function conditions(facts: MemberFacts, previous?: MemberClusterStatus): Record<string, string> {
  const status = memberStatus(previous, facts, NOW);
  return Object.fromEntries((status.conditions ?? []).map((one) => [one.type, `${one.status} ${one.reason}`]));
}

describe('memberStatus', () => {
  it('says which virtual nodes are out of service, once somebody has said so, and keeps what is stored of them', () => {
    const of = (
      fencing: Omit<NonNullable<MemberFacts['fencing']>, 'notEnded'>,
      notEnded: NonNullable<MemberFacts['fencing']>['notEnded'] = [],
    ): MemberFacts => ({ ...good, fencing: { ...fencing, notEnded } });
    expect(conditions(of({ fenced: [], refused: [], pods: 0 }))).not.toHaveProperty('OutOfService');
    const fenced = memberStatus(
      { fencing: { nodes: { east: 'Fenced' }, pods: { a: 'east/shop/a' } } },
      of({ fenced: ['east'], refused: ['east-gpu'], pods: 1 }),
      NOW,
    );
    expect(fenced.fencing).toEqual({ nodes: { east: 'Fenced' }, pods: { a: 'east/shop/a' } });
    expect(fenced.conditions).toContainEqual(
      expect.objectContaining({
        type: 'OutOfService',
        status: 'True',
        reason: 'Fenced',
        message: expect.stringMatching(/nothing runs on east any more.* 1 pod that was ended there/) as string,
      }),
    );
    expect(conditions(of({ fenced: [], refused: ['east'], pods: 2 }), fenced)).toMatchObject({
      OutOfService: 'False MemberAnswers',
    });
    expect(conditions(of({ fenced: [], refused: [], pods: 0 }), fenced)).toMatchObject({
      OutOfService: 'False InService',
    });
    expect(conditions(good, fenced)).toMatchObject({ OutOfService: 'True Fenced' });
    const copies = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => ({ copy: `shop/${name}`, why: `no ${name}` }));
    const back = memberStatus(fenced, of({ fenced: [], refused: [], pods: 7 }, copies), NOW);
    expect(back.conditions).toContainEqual(
      expect.objectContaining({
        type: 'OutOfService',
        status: 'False',
        reason: 'CopiesNotEnded',
        message: expect.stringContaining('shop/a, shop/b, shop/c, shop/d, shop/e and 2 more (no a)') as string,
      }),
    );
    expect(memberStatus(fenced, of({ fenced: [], refused: ['east'], pods: 7 }, copies), NOW).conditions).toContainEqual(
      expect.objectContaining({ reason: 'MemberAnswers', message: expect.stringContaining('shop/a') as string }),
    );
  });

  it('names the real nodes that have its names, for as long as they do and nobody has looked since', () => {
    const taken = memberStatus(undefined, { ...good, takenNames: ['worker-1'] }, NOW);
    expect(taken.takenNames).toEqual(['worker-1']);
    expect(memberStatus(taken, good, LATER).takenNames).toEqual(['worker-1']);
    expect('takenNames' in memberStatus(taken, { ...good, takenNames: [] }, LATER)).toBe(false);
  });

  it('says what of a member is left out, and which limit it has met', () => {
    const leftOut = '1 of its pods is left out';
    expect(conditions({ ...good, leftOut })).toMatchObject({
      CapacityFresh: 'True ObjectsLeftOut',
      Ready: 'True Ready',
    });
    const cacheLimit = 'there is no room in memory for more pods of cluster east';
    for (const synced of [true, false]) {
      const facts = { ...good, synced, cacheLimit, cacheProblem: cacheLimit, leftOut };
      expect(conditions(facts)).toMatchObject({ CapacityFresh: 'False CacheLimit', Ready: 'False CacheLimit' });
    }
  });

  it('says when the token of a member ends once no other one has come for half of its life', () => {
    const half = Date.parse(NOW);
    const day = 24 * 3_600_000;
    const of = (issuedAt: number): MemberFacts => ({
      ...good,
      credentials: {
        state: 'accepted',
        secret: 'Secret fleet/east',
        token: { namespace: 'spillway-access', name: 'spillway-host', issuedAt, expiresAt: issuedAt + 7 * day },
      },
    });
    expect(conditions(of(half - 3.5 * day + 1000))).toMatchObject({ CredentialsValid: 'True Accepted' });
    const late = memberStatus(undefined, of(half - 3.5 * day), NOW);
    expect(late.conditions).toContainEqual(
      expect.objectContaining({
        type: 'CredentialsValid',
        status: 'True',
        reason: 'TokenNotRenewed',
        message: expect.stringContaining('Secret fleet/east until 2026-01-04T12:00:00Z') as string,
      }),
    );
    expect(conditions(of(half - 3.5 * day))).toMatchObject({ Ready: 'True Ready' });
    expect(conditions({ ...of(half - 6 * day), reachability: DOWN })).toMatchObject({
      CredentialsValid: 'Unknown NotContacted',
    });
  });

  it('says all there is to say about a good member', () => {
    const status = memberStatus(undefined, good, NOW);
    expect(status).toMatchObject({
      observedGeneration: 4,
      version: 'v1.36.3',
      identity: 'uid-1',
      allocatable: { cpu: '4' },
      largestFreeSlot: { cpu: '2' },
      fits: [{ requests: { cpu: '1' }, slots: 3 }],
      pods: { running: 1, pending: 2, total: 3 },
    });
    expect(conditions(good)).toEqual({
      Ready: 'True Ready',
      CredentialsValid: 'True Accepted',
      Reachable: 'True ProbeSucceeded',
      IdentityPinned: 'True Pinned',
      CapacityFresh: 'True Watching',
      DeletionsAllowed: 'True NothingKept',
    });
    for (const condition of status.conditions ?? []) {
      expect(condition).toMatchObject({ observedGeneration: 4, lastTransitionTime: NOW });
      expect(condition.message).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('claims nothing about a member that was never contacted', () => {
    expect(conditions(none)).toEqual({
      Ready: 'False MemberUnreachable',
      CredentialsValid: 'Unknown SecretNotRead',
      Reachable: 'Unknown NotProbed',
      IdentityPinned: 'Unknown NotContacted',
      CapacityFresh: 'False MemberUnreachable',
    });
  });

  const cases: [string, Partial<MemberFacts>, Record<string, string>][] = [
    [
      'a silent member',
      { reachability: DOWN },
      { Ready: 'False Timeout', Reachable: 'False Timeout', CapacityFresh: 'False MemberUnreachable' },
    ],
    [
      'refused credentials',
      {
        reachability: DOWN,
        credentials: { state: 'refused', stillUsed: false, reason: 'ExecPluginRefused', message: 'm' },
      },
      { Ready: 'False ExecPluginRefused', CredentialsValid: 'False ExecPluginRefused' },
    ],
    [
      'a refused new kubeconfig while the old one serves',
      { credentials: { state: 'refused', stillUsed: true, reason: 'InvalidKubeconfig', message: 'm' } },
      { Ready: 'True Ready', CredentialsValid: 'False InvalidKubeconfig' },
    ],
    [
      'credentials that the member does not accept',
      { reachability: { ...DOWN, failure: { reason: 'Unauthorized', message: 'm' } } },
      { Ready: 'False Unauthorized', CredentialsValid: 'False Unauthorized' },
    ],
    [
      'another cluster',
      { observed: 'uid-2' },
      { Ready: 'False IdentityChanged', IdentityPinned: 'False IdentityChanged' },
    ],
    ['the host itself', { isHost: true }, { Ready: 'False MemberIsHost' }],
    ['caches under way', { synced: false }, { Ready: 'Unknown Listing', CapacityFresh: 'Unknown Listing' }],
    [
      'caches that fail',
      { synced: false, cacheProblem: 'p' },
      { Ready: 'False CacheProblem', CapacityFresh: 'False CacheProblem' },
    ],
    ['a hiccup of a full cache', { cacheProblem: 'p' }, { Ready: 'True Ready', CapacityFresh: 'True Watching' }],
    ['a wrong spec', { problems: ['spec.x: bad'] }, { Ready: 'False InvalidSpec', Reachable: 'True ProbeSucceeded' }],
    ['a conflict', { conflict: { reason: 'NodeNameTaken', message: 'm' } }, { Ready: 'False NodeNameTaken' }],
  ];
  it.each(cases)('%s', (_what, facts, expected) => {
    expect(conditions({ ...good, ...facts })).toMatchObject(expected);
  });

  it('says of a member that another process knew what that one said, until it is asked and read anew', () => {
    const before = memberStatus(undefined, good, NOW);
    const down = memberStatus(undefined, { ...good, reachability: DOWN }, NOW);
    const begun: MemberFacts = { ...none, pinned: 'uid-1', keptDeletions: good.keptDeletions };
    expect(memberStatus(before, begun, LATER).conditions).toEqual(before.conditions);
    expect(memberStatus(down, begun, LATER).conditions).toEqual(down.conditions);
    const accepted: MemberFacts = { ...begun, credentials: good.credentials };
    expect(memberStatus(before, accepted, LATER).conditions).toEqual(before.conditions);
    expect(memberStatus(before, { ...good, synced: false }, LATER).conditions).toEqual(before.conditions);
    // What it finds out itself counts at once.
    expect(conditions({ ...accepted, reachability: DOWN }, before)).toMatchObject({ Ready: 'False Timeout' });
    expect(conditions({ ...good, synced: false }, down)).toMatchObject({ Ready: 'Unknown Listing' });
    expect(conditions({ ...good, synced: false, cacheProblem: 'p' }, before)).toMatchObject({
      Ready: 'False CacheProblem',
    });
    const conflict = { reason: 'NodeNotKept', message: 'the request has not been answered yet' };
    const open = { ...good, conflict: { ...conflict, open: true } };
    expect(memberStatus(before, open, LATER).conditions).toEqual(before.conditions);
    expect(conditions(open, down)).toMatchObject({ Ready: 'False NodeNotKept' });
    expect(conditions({ ...open, reachability: DOWN }, before)).toMatchObject({ Ready: 'False Timeout' });
    expect(conditions({ ...good, conflict }, before)).toMatchObject({ Ready: 'False NodeNotKept' });
    const refused = { state: 'refused', stillUsed: false, reason: 'InvalidKubeconfig', message: 'm' } as const;
    expect(conditions({ ...begun, credentials: refused }, before)).toMatchObject({ Ready: 'False InvalidKubeconfig' });
  });

  it('tells how to confirm another identity', () => {
    const status = memberStatus(undefined, { ...good, observed: 'uid-2' }, NOW);
    const pinned = status.conditions?.find(({ type }) => type === 'IdentityPinned');
    expect(pinned?.message).toContain(
      'kubectl annotate --overwrite membercluster east spillway.dev/confirm-identity=uid-2',
    );
    expect(status.identity).toBe('uid-1');
  });

  it('moves lastTransitionTime only with the status, and keeps what is not known at present', () => {
    const first = memberStatus(undefined, good, NOW);
    expect(memberStatus(first, good, LATER)).toEqual(first);
    const second = memberStatus(
      first,
      { ...good, reachability: DOWN, version: undefined, allocatable: undefined, room: undefined, pods: undefined },
      LATER,
    );
    const times = Object.fromEntries((second.conditions ?? []).map((one) => [one.type, one.lastTransitionTime]));
    expect(times).toMatchObject({ Ready: LATER, Reachable: LATER, IdentityPinned: NOW });
    expect(second).toMatchObject({
      version: 'v1.36.3',
      allocatable: { cpu: '4' },
      largestFreeSlot: { cpu: '2' },
      pods: { total: 3 },
    });
  });

  it('leaves conditions of others alone', () => {
    const foreign = {
      type: 'Audited',
      status: 'True',
      reason: 'Yes',
      message: 'By us.',
      lastTransitionTime: NOW,
    } as const;
    const status = memberStatus({ conditions: [foreign] }, good, LATER);
    expect(status.conditions).toContainEqual(foreign);
    expect(status.conditions).toHaveLength(7);
  });

  it('says how to confirm deletions that are held back, for exactly the pods that are kept', () => {
    const kept = { uids: ['b', 'a'], open: true, hostWentBack: false };
    const status = memberStatus(undefined, { ...good, keptDeletions: kept }, NOW);
    const condition = status.conditions?.find(({ type }) => type === 'DeletionsAllowed');
    expect(condition).toMatchObject({ status: 'False', reason: 'DeletionBreakerOpen' });
    const token = deletionToken(['a', 'b']);
    expect(token).toMatch(/^2-[0-9a-f]{10}$/);
    expect(condition?.message).toContain(`membercluster east spillway.dev/confirm-deletions=${token}`);
    expect(deletionToken(['a', 'b', 'c'])).not.toBe(token);
    // New pods are welcome meanwhile.
    expect(conditions({ ...good, keptDeletions: kept })['Ready']).toBe('True Ready');
    expect([
      wasBreakerOpen(status),
      wasBreakerOpen(memberStatus(status, good, LATER)),
      wasBreakerOpen(undefined),
    ]).toEqual([true, false, false]);
    const back = conditions({ ...good, keptDeletions: { uids: ['a'], open: false, hostWentBack: true } });
    expect(back['DeletionsAllowed']).toBe('False HostWentBack');
    const kept1 = { uids: ['a'], open: false, hostWentBack: true };
    expect(wasBreakerOpen(memberStatus(undefined, { ...good, keptDeletions: kept1 }, NOW))).toBe(true);
  });

  it('names copies that were told to end and do not, of virtual nodes that retire', () => {
    const one = (copy: string, heldBy = 'finalizer a/b') => ({ copy, since: '2026-01-01T00:00:00Z', heldBy });
    const first = [one('shop/a'), one('x'.repeat(5_000), 'y'.repeat(5_000))];
    const retiring = [
      { name: 'east', pods: 3, undeleted: { count: 2, first } },
      { name: 'east-gpu', pods: 9, undeleted: { count: 7, first: [one('shop/b'), one('shop/c')] } },
      { name: 'east-old', pods: 1, undeleted: { count: 0, first: [] } },
    ];
    const status = memberStatus(undefined, { ...good, retiring }, NOW);
    const message = status.conditions?.find(({ type }) => type === 'NodesRetired')?.message ?? '';
    expect(message.replaceAll(/([xy])\1+/g, '$1+')).toContain(
      'What the member was told to delete, and still has: shop/a (since 2026-01-01T00:00:00Z: finalizer a/b), ' +
        'x+… (since 2026-01-01T00:00:00Z: y+…), shop/b (since 2026-01-01T00:00:00Z: finalizer a/b) and 6 more. ' +
        'That waits for somebody in the member. It takes no new pods,',
    );
    expect(message).toMatch(/put its pool back into spec\.virtualNodes\.$/);
  });

  it('says which virtual nodes retire, and nothing where none ever had to', () => {
    expect(conditions(good)).not.toHaveProperty('NodesRetired');
    const retiring = [
      { name: 'east', pods: 3 },
      { name: 'east-gpu', pods: 1 },
      { name: 'east-old', pods: undefined },
    ];
    const status = memberStatus(undefined, { ...good, retiring }, NOW);
    const said = status.conditions?.find(({ type }) => type === 'NodesRetired');
    expect(said).toMatchObject({ status: 'False', reason: 'PodsRemain' });
    expect(said?.message).toBe(
      'Virtual node east is not in the spec any more, and 3 pods are on it. ' +
        'Virtual node east-gpu is not in the spec any more, and 1 pod is on it. ' +
        'Virtual node east-old is not in the spec any more, and it may have pods. ' +
        'It takes no new pods, those that run go on, and it is removed when they are gone. To move them, run ' +
        'kubectl drain --ignore-daemonsets on it; to keep it, put its pool back into spec.virtualNodes.',
    );
    expect(conditions({ ...good, retiring })['Ready']).toBe('True Ready');
    // Nothing is known before the scope has begun.
    const unknown = memberStatus(status, { ...good, retiring: undefined }, NOW);
    expect(unknown.conditions).toContainEqual(said);
    expect(memberStatus(status, good, NOW).conditions).toContainEqual(
      expect.objectContaining({ type: 'NodesRetired', status: 'True', reason: 'NoneLeft' }),
    );
  });

  it('says whether disruption budgets hold there, which does not make it unready', () => {
    expect(conditions(good)).not.toHaveProperty('BudgetsMirrored');
    const ignored = { status: 'False', reason: 'Ignored', message: 'As the spec says.' } as const;
    expect(conditions({ ...good, budgets: ignored })).not.toHaveProperty('BudgetsMirrored');
    const refused = { status: 'False', reason: 'BudgetRightMissing', message: 'It refuses.' } as const;
    const told = conditions({ ...good, budgets: refused });
    expect([told['BudgetsMirrored'], told['Ready']]).toEqual(['False BudgetRightMissing', 'True Ready']);
    // That they are ignored is news after they were not.
    const before = memberStatus(undefined, { ...good, budgets: refused }, NOW);
    expect(memberStatus(before, { ...good, budgets: ignored }, NOW).conditions).toContainEqual(
      expect.objectContaining({ type: 'BudgetsMirrored', status: 'False', reason: 'Ignored' }),
    );
    expect(memberStatus(before, good, NOW).conditions).toContainEqual(
      expect.objectContaining({ type: 'BudgetsMirrored', reason: 'BudgetRightMissing' }),
    );
  });

  it('tells of one beginning of an outage, that of the condition, whoever acts for the member by then', () => {
    const found = (
      previous: MemberClusterStatus | undefined,
      reachability: MemberFacts['reachability'],
      now: string,
    ) => {
      const status = memberStatus(previous, { ...good, reachability }, now);
      const told = (status.conditions ?? []).filter(({ type }) => type === 'Reachable' || type === 'Ready');
      return { status, told: told.map(({ message, lastTransitionTime }) => ({ message, lastTransitionTime })) };
    };
    const before = memberStatus(undefined, good, '2025-12-31T00:00:00Z');
    const { status, told } = found(before, DOWN, NOW);
    expect(told).toEqual([
      { message: `no answer. Not reachable since ${NOW}.`, lastTransitionTime: NOW },
      { message: `no answer. Not reachable since ${NOW}.`, lastTransitionTime: NOW },
    ]);
    // It has seen its own first probe fail later.
    const next = { ...DOWN, failingSince: { wall: Date.parse(LATER), monotonic: 0 } };
    expect(found(found(status, NOT_PROBED, LATER).status, next, LATER).told).toEqual(told);
  });

  it('says nothing uncleaned or without bound, whatever members say', () => {
    const failure = {
      reason: 'ServerError',
      message: `\u001b[31mred\u001b[0m\n\u202eevil ${'x'.repeat(5_000)}`,
    } as const;
    const reachability = { reachable: false, against: 3, failingSince: { wall: 0, monotonic: 0 }, failure } as const;
    for (const { message } of memberStatus(undefined, { ...good, reachability }, NOW).conditions ?? []) {
      expect(message).not.toMatch(/[\p{Cc}\u202e]/u);
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(2_048);
    }
  });
});

describe('what people look at', () => {
  it('is not ready from the moment on that its credentials are taken away', () => {
    const gone = { state: 'refused', reason: 'SecretNotFound', message: 'Secret fleet/east does not exist' } as const;
    const before = memberStatus(undefined, good, NOW);
    expect(conditions({ ...good, credentials: { ...gone, stillUsed: false } }, before)).toMatchObject({
      Ready: 'False SecretNotFound',
    });
    expect(conditions({ ...good, credentials: { ...gone, stillUsed: true } }, before)['Ready']).toBe('True Ready');
  });

  it('shows 0 where nothing is known of a member that was never reached', () => {
    const { allocatable, pods } = memberStatus(undefined, none, NOW);
    expect({ allocatable, pods }).toEqual({
      allocatable: { cpu: '0', memory: '0' },
      pods: { running: 0, pending: 0, total: 0 },
    });
    const known = memberStatus(memberStatus(undefined, good, NOW), none, LATER);
    expect(known).toMatchObject({ allocatable: { cpu: '4' }, pods: { total: 3 } });
  });

  it('says which MemberClusters stand for the same cluster, and that none does any more', () => {
    const shared = memberStatus(undefined, { ...good, sharedWith: ['twin', 'west'] }, NOW);
    const condition = shared.conditions?.find(({ type }) => type === 'ClusterUnique');
    expect(condition).toMatchObject({ status: 'False', reason: 'SharedCluster' });
    expect(condition?.message).toMatch(/^MemberClusters twin, west stand for the same cluster\./);
    expect(conditions({ ...good, sharedWith: [] }, shared)).toMatchObject({ ClusterUnique: 'True Unique' });
    expect(conditions({ ...good, sharedWith: [] })['ClusterUnique']).toBeUndefined();
  });

  it('says that pods have power over nodes which nobody granted, once there were such, and is ready all the same', () => {
    const without = { status: 'False', reason: 'NoLevelSet', message: '3 pods' } as const;
    const well = { status: 'True', reason: 'LevelsSet', message: '' } as const;
    const said = memberStatus(undefined, { ...good, podSecurity: without }, NOW);
    expect(conditions({ ...good, podSecurity: without })).toMatchObject({
      Ready: 'True Ready',
      PodSecuritySet: 'False NoLevelSet',
    });
    expect(conditions({ ...good, podSecurity: well }, said)).toMatchObject({ PodSecuritySet: 'True LevelsSet' });
    expect(conditions({ ...good, podSecurity: undefined }, said)).toMatchObject({ PodSecuritySet: 'False NoLevelSet' });
    expect(conditions({ ...good, podSecurity: well })['PodSecuritySet']).toBeUndefined();
  });

  it('says that its pods are not moved as most members are lost, and how to go on, until that is over', () => {
    const why = '2 of 3 members do not answer: the fault may be on this side, so nothing is moved for it';
    const paused = memberStatus(undefined, { ...good, movesPaused: { why } }, NOW);
    const condition = paused.conditions?.find(({ type }) => type === 'MovesAllowed');
    expect(condition).toMatchObject({ status: 'False', reason: 'MovesPaused' });
    expect(condition?.message).toMatch(
      /^2 of 3 members do not answer: .*\. It goes on by itself when .*: kubectl patch membercluster east --type=merge -p '\{"spec":\{"clusterTaints":\[/,
    );
    expect(conditions({ ...good, movesPaused: { why } })).toMatchObject({ Ready: 'True Ready' });
    expect(conditions({ ...good, movesPaused: undefined }, paused)).toMatchObject({
      MovesAllowed: 'False MovesPaused',
    });
    const well = { ...good, movesPaused: { why: undefined } };
    expect(conditions(well, paused)).toMatchObject({ MovesAllowed: 'True NotPaused' });
    expect(conditions(well)['MovesAllowed']).toBeUndefined();
  });

  it('is not ready once it was deleted, and says what keeps it', () => {
    const leaving = { reason: 'PodsRemain', message: '2 pods are there.', pods: 2, copies: 0, claims: 0, done: false };
    const status = memberStatus(undefined, { ...good, leaving }, NOW);
    expect(status.leaving).toEqual({ pods: 2, copies: 0, claims: 0 });
    expect(conditions({ ...good, leaving })).toMatchObject({ Ready: 'False Leaving', Leaving: 'True PodsRemain' });
  });
});
