import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOST_LABEL, MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { Condition, Pod, PodStatus } from '../../src/kube/core-v1.ts';
import { heldBack } from '../../src/pods/creation-intent.ts';
import { decide, type PodFacts } from '../../src/pods/decide.ts';
import { hostStatus, mirroredMessage } from '../../src/pods/host-status.ts';
import { LOST_EXIT_CODE } from '../../src/pods/lost-container.ts';
import { HOST_ID, hostPod, memberPod, running, terminated } from '../fixtures/pods.ts';

const NOW = '2026-01-01T00:02:00Z';

function facts(overrides: Partial<PodFacts> = {}): PodFacts {
  return {
    member: 'east',
    hostId: HOST_ID,
    nodeName: 'east',
    reachable: true,
    ignored: () => false,
    hostDeletionSeen: () => false,
    outdated: () => false,
    hostStatus: (host, member) => hostStatus(host, member, { member: 'east', network: 'Flat', inSync: true }, NOW),
    hostAnnotations: () => ({}),
    now: NOW,
    ...overrides,
  };
}

const mirrored = (pod: Pod = memberPod()): Pod => {
  const status = {
    ...pod.status,
    qosClass: 'BestEffort',
    conditions: [{ type: MIRRORED_CONDITION, status: 'True' as const, message: mirroredMessage('east', memberPod()) }],
  };
  return hostPod({ status });
};
const deletedHost = (status = mirrored().status): Pod =>
  hostPod({
    metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 },
    ...(status === undefined ? {} : { status }),
  });
const bornAt = (time: string): Pod => hostPod({ metadata: { creationTimestamp: `2026-01-01T${time}Z` } });
const stranger = (): Pod => memberPod({ metadata: { labels: {} } });
const former = (): Pod =>
  memberPod({ metadata: { labels: { ...memberPod().metadata.labels, [UID_LABEL]: 'former-uid' } } });

describe('what decide answers', () => {
  it('does nothing at all while frozen', () => {
    for (const host of [undefined, hostPod(), deletedHost()]) {
      for (const member of [undefined, memberPod(), former(), stranger()]) {
        expect(decide(host, member, facts({ frozen: 'the caches are not complete yet' })).do).toBe('wait');
      }
    }
  });

  describe('where by the word of an administrator nothing runs any more', () => {
    const fenced = (more: Partial<PodFacts> = {}) => facts({ fenced: true, reachable: false, ...more });

    it('ends what is being deleted, though the member was never heard of', () => {
      const frozen = 'the member is not known to be the pinned cluster';
      for (const member of [undefined, memberPod(), former()]) {
        expect(decide(deletedHost(), member, fenced({ frozen }))).toMatchObject({
          do: 'end-fenced',
          status: undefined,
        });
      }
      expect(decide(deletedHost(), undefined, facts({ frozen })).do).toBe('wait');
    });

    it('ends nothing that nobody deleted', () => {
      expect(decide(mirrored(), memberPod(), fenced()).do).not.toBe('end-fenced');
      expect(decide(hostPod(), undefined, fenced()).do).toBe('hold');
    });

    it('says of a pod that somebody waits to read how it ended that nobody knows', () => {
      const waitedFor = deletedHost();
      waitedFor.metadata.finalizers = ['batch.kubernetes.io/job-tracking'];
      const action = decide(waitedFor, undefined, fenced());
      expect(action).toMatchObject({ do: 'end-fenced', status: { phase: 'Failed', reason: 'MemberStatusLost' } });
    });

    it('does nothing else before copies that are back have been told to end', () => {
      const endsFirst = () => true;
      expect(decide(hostPod(), undefined, facts({ endsFirst })).do).toBe('wait');
      expect(decide(hostPod(), memberPod(), facts({ endsFirst })).do).toBe('wait');
      expect(decide(undefined, former(), facts({ endsFirst })).do).toBe('collect');
      expect(decide(deletedHost(), memberPod(), facts({ endsFirst })).do).toBe('delete-member');
    });
  });

  it('creates a new pod that never had a copy', () => {
    expect(decide(hostPod(), undefined, facts())).toMatchObject({ do: 'create' });
  });

  it('holds a new pod while the member is out of reach', () => {
    expect(decide(hostPod(), undefined, facts({ reachable: false }))).toMatchObject({
      do: 'hold',
      hold: { reason: 'MemberUnreachable' },
    });
  });

  it.each([
    ['Timeout', /does not answer\. .* nothing needs to be done\.$/],
    ['TooManyRequests', /does not answer as it should \(TooManyRequests\)\. .* nothing needs to be done\.$/],
    ['Unauthorized', /cannot be asked \(Unauthorized\), which does not pass by itself\. .*condition Reachable/],
    ['SecretNotFound', /does not pass by itself/],
    ['TLSVerifyFailed', /does not pass by itself/],
  ])(
    'says of a member that is not reachable for %s whether something needs to be done',
    (unreachableBecause, words) => {
      const action = decide(hostPod(), undefined, facts({ reachable: false, unreachableBecause }));
      expect(action.do === 'hold' ? action.hold.message : '').toMatch(words);
    },
  );

  it('never creates a pod again that once existed: it is reported as lost, after a live read', () => {
    const action = decide(mirrored(), undefined, facts());
    expect(action).toMatchObject({
      do: 'report-lost',
      departed: undefined,
      status: { phase: 'Failed', reason: 'MemberPodLost' },
    });
  });

  it('never invents exit code 0 for a lost container', () => {
    const action = decide(mirrored(), undefined, facts());
    if (action.do !== 'report-lost') throw new Error('expected report-lost');
    expect(action.status.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: LOST_EXIT_CODE,
      reason: 'MemberStatusLost',
    });
  });

  it('does not create again what it just created, whatever the cache says', () => {
    expect(decide(hostPod(), undefined, facts({ created: { overdue: false } })).do).toBe('wait');
    expect(decide(hostPod(), undefined, facts({ created: { overdue: true } }))).toMatchObject({
      do: 'report-lost',
      departed: undefined,
    });
  });

  const begun = (): Pod => {
    const intent = { member: 'east', namespace: 'shop', name: 'web-0', since: '20' };
    return hostPod({ status: { conditions: [{ type: MIRRORED_CONDITION, ...heldBack('Creating.', intent) }] } });
  };

  it('looks back first when a creation was begun and nobody knows what came of it', () => {
    expect(decide(begun(), undefined, facts())).toMatchObject({
      do: 'look-back',
      intent: { namespace: 'shop', name: 'web-0', since: '20' },
      lost: { phase: 'Failed', reason: 'MemberPodLost' },
      forgotten: { phase: 'Failed', reason: 'MemberPodLost' },
    });
    expect(decide(begun(), undefined, facts({ ignored: () => true })).do).toBe('look-back');
    expect(decide(begun(), undefined, facts({ reachable: false }))).toMatchObject({ do: 'hold' });
    expect(decide(begun(), undefined, facts({ intentSettled: true })).do).toBe('create');
    expect(decide(begun(), memberPod(), facts()).do).toBe('patch-status');
  });

  it('makes no pod in another namespace than one that may come to life yet', () => {
    const unanswered = { unansweredMs: 1234, intentSettled: true };
    const harmless = hostPod({ spec: { restartPolicy: 'Always' } });
    expect(decide(harmless, undefined, facts(unanswered)).do).toBe('create');
    const once = hostPod({ spec: { restartPolicy: 'Never' } });
    expect(decide(once, undefined, facts(unanswered))).toMatchObject({ do: 'hold', againMs: 1234 });
    expect(decide(begun(), undefined, facts({ ...unanswered, unansweredElsewhere: true }))).toMatchObject({
      do: 'hold',
      hold: { reason: 'CreationUnanswered' },
      againMs: 1234,
    });
  });

  it('does not end a deletion while a copy may come to life yet', () => {
    const pending = hostPod({ metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 } });
    expect(decide(pending, undefined, facts({ unansweredMs: 1234 }))).toMatchObject({
      do: 'hold',
      hold: { reason: 'CreationUnanswered' },
      againMs: 1234,
    });
    expect(decide(pending, memberPod(), facts({ unansweredMs: 1234 })).do).toBe('delete-member');
  });

  it('says of a pod that may have run that its end is not known', () => {
    const tracked = begun();
    tracked.metadata = {
      ...tracked.metadata,
      deletionTimestamp: NOW,
      finalizers: ['batch.kubernetes.io/job-tracking'],
    };
    expect(decide(tracked, undefined, facts())).toMatchObject({ status: { reason: 'MemberStatusLost' } });
    expect(decide(tracked, undefined, facts({ intentSettled: true }))).toMatchObject({
      status: { reason: 'NeverStarted' },
    });
  });

  it('takes the end that the departed member pod told', () => {
    const departed = memberPod({ status: { phase: 'Succeeded', containerStatuses: [terminated('app', 0)] } });
    const action = decide(mirrored(), undefined, facts({ departed }));
    expect(action).toMatchObject({ do: 'report-lost', departed, status: { phase: 'Succeeded' } });
  });

  it('ignores the departure of a former pod of the same name', () => {
    expect(decide(hostPod(), undefined, facts({ departed: former() }))).toMatchObject({ do: 'create' });
  });

  it('leaves a finished pod alone', () => {
    const done = hostPod({ status: { phase: 'Succeeded' } });
    expect(decide(done, undefined, facts()).do).toBe('nothing');
    expect(decide(done, memberPod({ status: { phase: 'Succeeded' } }), facts()).do).toBe('nothing');
  });

  it('stops a copy that runs on although its host pod has finished', () => {
    expect(decide(hostPod({ status: { phase: 'Failed' } }), memberPod(), facts()).do).toBe('collect');
  });

  it('mirrors the status when it differs and is silent when it does not', () => {
    const action = decide(hostPod(), memberPod(), facts());
    expect(action).toMatchObject({
      do: 'patch-status',
      patch: { metadata: { uid: 'host-uid' }, status: { phase: 'Running' } },
    });
    expect(decide(mirrored(), memberPod(), facts()).do).toBe('nothing');
  });

  it('sends changes of the host pod down first', () => {
    expect(decide(hostPod(), memberPod(), facts({ outdated: () => true })).do).toBe('update');
    const ending = memberPod({ metadata: { deletionTimestamp: NOW } });
    expect(decide(hostPod(), ending, facts({ outdated: () => true })).do).toBe('patch-status');
  });

  it('removes the copy of a former pod before anything else happens', () => {
    expect(decide(hostPod(), former(), facts())).toMatchObject({ do: 'collect' });
    const leaving = former();
    leaving.metadata.deletionTimestamp = NOW;
    expect(decide(bornAt('00:01:59'), leaving, facts()).do).toBe('wait');
  });

  it('says that a former pod is still being deleted, when that takes longer than a moment', () => {
    const leaving = former();
    leaving.metadata.deletionTimestamp = NOW;
    const elsewhere = memberPod({ metadata: { deletionTimestamp: NOW, labels: { ...former().metadata.labels } } });
    elsewhere.metadata.labels = { ...elsewhere.metadata.labels, [NODE_LABEL]: 'east-gpu' };
    for (const copy of [leaving, elsewhere]) {
      // A clock that is ahead keeps nobody waiting for longer.
      for (const [born, againMs] of [
        ['00:01:56', 6_000],
        ['00:30:00', 10_000],
      ] as const) {
        expect(decide(bornAt(born), copy, facts())).toMatchObject({ do: 'wait', againMs });
      }
      const hold = { reason: 'FormerPodLeaving', message: expect.stringContaining('is being deleted there') as string };
      expect(decide(bornAt('00:01:50'), copy, facts())).toMatchObject({ do: 'hold', hold });
      expect(decide(bornAt('00:01:50'), copy, facts({ reachable: false }))).toMatchObject({
        do: 'hold',
        hold: { reason: 'MemberUnreachable' },
      });
    }
    expect(decide(deletedHost({ phase: 'Pending' }), leaving, facts()).do).toBe('wait');
    expect(decide(undefined, leaving, facts()).do).toBe('wait');
    expect(decide(hostPod({ status: { phase: 'Failed' } }), leaving, facts()).do).toBe('wait');
    expect(decide(mirrored(), leaving, facts()).do).toBe('wait');
    expect(decide(bornAt('00:01:50'), leaving, facts({ created: { overdue: false } })).do).toBe('wait');
  });

  it('never touches a stranger', () => {
    expect(decide(hostPod(), stranger(), facts())).toMatchObject({ do: 'hold', hold: { reason: 'NameTaken' } });
    expect(decide(undefined, stranger(), facts()).do).toBe('nothing');
    expect(decide(deletedHost({ phase: 'Pending' }), stranger(), facts())).toMatchObject({
      do: 'finish-deletion',
      departed: undefined,
    });
  });

  it('deletes the member pod with the grace the host pod was given, and again when it was shortened', () => {
    expect(decide(deletedHost(), memberPod(), facts())).toMatchObject({ do: 'delete-member', gracePeriodSeconds: 30 });
    const leaving = memberPod({ metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 60 } });
    expect(decide(deletedHost(), leaving, facts())).toMatchObject({ do: 'delete-member', gracePeriodSeconds: 30 });
    leaving.metadata.deletionGracePeriodSeconds = 30;
    expect(decide(deletedHost(), leaving, facts()).do).toBe('nothing');
  });

  it('tells how the member pod ended before it deletes it', () => {
    const ended = memberPod({ status: { phase: 'Succeeded', containerStatuses: [terminated('app', 0)] } });
    expect(decide(deletedHost(), ended, facts())).toMatchObject({
      do: 'patch-status',
      status: { phase: 'Succeeded' },
    });
    const told = deletedHost({ phase: 'Succeeded', containerStatuses: [terminated('app', 0)] });
    expect(decide(told, ended, facts())).toMatchObject({ do: 'delete-member', gracePeriodSeconds: 30 });
  });

  it('ends the deletion once the member pod was seen to go, with its final status', () => {
    const departed = memberPod({ status: { phase: 'Failed', containerStatuses: [terminated('app', 143)] } });
    expect(decide(deletedHost(), undefined, facts({ departed }))).toMatchObject({
      do: 'finish-deletion',
      departed,
      status: { phase: 'Failed' },
    });
    expect(decide(deletedHost(), undefined, facts())).toMatchObject({ do: 'finish-deletion', departed: undefined });
  });

  it('makes up a final status only where a finalizer waits for one, and never a success', () => {
    expect(decide(deletedHost(), undefined, facts())).toMatchObject({ status: undefined });
    const tracked = deletedHost();
    tracked.metadata.finalizers = ['batch.kubernetes.io/job-tracking'];
    expect(decide(tracked, undefined, facts())).toMatchObject({
      status: { phase: 'Failed', reason: 'MemberStatusLost' },
    });
  });

  it('ends a pod that never had a copy as Failed, where a finalizer waits for that', () => {
    const held = hostPod({ metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 } });
    expect(decide(held, undefined, facts())).toMatchObject({ do: 'finish-deletion', status: undefined });
    held.metadata.finalizers = ['batch.kubernetes.io/job-tracking'];
    expect(decide(held, undefined, facts())).toMatchObject({
      do: 'finish-deletion',
      status: { phase: 'Failed', reason: 'NeverStarted' },
    });
    // One that this process created may have run.
    expect(decide(held, undefined, facts({ created: { overdue: true } }))).toMatchObject({
      status: { phase: 'Failed', reason: 'MemberStatusLost' },
    });
  });

  it('asks for evidence before an orphan goes', () => {
    expect(decide(undefined, memberPod(), facts())).toMatchObject({ do: 'collect', deletionSeen: false });
    expect(decide(undefined, memberPod(), facts({ hostDeletionSeen: (uid) => uid === 'host-uid' }))).toMatchObject({
      do: 'collect',
      deletionSeen: true,
    });
  });

  it('reports a pod that somebody deleted in the member as Failed even if its processes exited 0', () => {
    const cut = memberPod({
      metadata: { deletionTimestamp: '2026-01-01T00:01:30Z', deletionGracePeriodSeconds: 30 },
      status: { phase: 'Succeeded', containerStatuses: [terminated('app', 0, '2026-01-01T00:01:01Z')] },
    });
    expect(decide(mirrored(), cut, facts())).toMatchObject({
      do: 'patch-status',
      patch: { status: { phase: 'Failed', reason: 'MemberPodDeleted' } },
    });
    const done = {
      ...cut,
      status: { phase: 'Succeeded' as const, containerStatuses: [terminated('app', 0, '2026-01-01T00:00:10Z')] },
    };
    expect(decide(mirrored(), done, facts())).toMatchObject({
      do: 'patch-status',
      patch: { status: { phase: 'Succeeded' } },
    });
  });
});

describe('whatever is seen', () => {
  const maybeDeleted = fc.constantFrom({}, { deletionTimestamp: NOW, deletionGracePeriodSeconds: 5 });
  const status = fc.constantFrom<PodStatus[]>(
    { phase: 'Pending' as const },
    { phase: 'Running', containerStatuses: [running('app', 2)] },
    { phase: 'Succeeded' as const, containerStatuses: [terminated('app', 0)] },
    { phase: 'Failed' as const, containerStatuses: [terminated('app', 3)] },
  );
  const host = fc.option(
    fc
      .record({
        deleted: maybeDeleted,
        status,
        mirrored: fc.constantFrom<Pick<Condition, 'status' | 'message'>[]>(
          { status: 'False', message: 'held' },
          { status: 'True', message: 'uid=member-uid' },
          { status: 'Unknown', message: 'Creating. (member=east namespace=shop name=web-0 since=20)' },
          { status: 'Unknown', message: 'of somebody else' },
        ),
      })
      .map(({ deleted, status, mirrored: was }) =>
        hostPod({ metadata: deleted, status: { ...status, conditions: [{ type: MIRRORED_CONDITION, ...was }] } }),
      ),
    { nil: undefined },
  );
  const member = fc.option(
    fc
      .record({ deleted: maybeDeleted, status, labels: fc.constantFrom('ours', 'former', 'stranger', 'other-host') })
      .map(({ deleted, status, labels }) => {
        const own = memberPod().metadata.labels ?? {};
        const byKind = {
          ours: own,
          former: { ...own, [UID_LABEL]: 'former-uid' },
          stranger: {},
          'other-host': { ...own, [HOST_LABEL]: 'other' },
        };
        return memberPod({ metadata: { ...deleted, labels: byKind[labels] }, status });
      }),
    { nil: undefined },
  );
  const world = fc.record({
    host,
    member,
    facts: fc
      .record({
        reachable: fc.boolean(),
        outdated: fc.boolean(),
        seen: fc.boolean(),
        created: fc.constantFrom(undefined, { overdue: false }, { overdue: true }),
        unansweredMs: fc.constantFrom(undefined, 1000),
        unansweredElsewhere: fc.boolean(),
        second: fc.constantFrom(undefined, memberPod({ metadata: { uid: 'second' } })),
        intentSettled: fc.boolean(),
        fenced: fc.boolean(),
        endsFirst: fc.boolean(),
        frozen: fc.constantFrom(undefined, 'the member is not known to be the pinned cluster'),
      })
      .map((f) =>
        facts({
          fenced: f.fenced,
          endsFirst: () => f.endsFirst,
          ...(f.frozen === undefined ? {} : { frozen: f.frozen }),
          reachable: f.reachable,
          outdated: () => f.outdated,
          hostDeletionSeen: () => f.seen,
          ...(f.created === undefined ? {} : { created: f.created }),
          ...(f.unansweredMs === undefined ? {} : { unansweredMs: f.unansweredMs }),
          unansweredElsewhere: f.unansweredElsewhere,
          ...(f.second === undefined ? {} : { second: f.second }),
          intentSettled: f.intentSettled,
        }),
      ),
  });

  it('keeps the safety rules', () => {
    fc.assert(
      fc.property(world, ({ host, member, facts }) => {
        const action = decide(host, member, facts);
        const ours = member?.metadata.labels?.[HOST_LABEL] === HOST_ID;
        const begun = host?.status?.conditions?.some((c) => c.type === MIRRORED_CONDITION && c.status === 'Unknown');
        const finished = host?.status?.phase === 'Succeeded' || host?.status?.phase === 'Failed';
        if (action.do === 'end-fenced') {
          expect([facts.fenced, host?.metadata.deletionTimestamp !== undefined]).toEqual([true, true]);
          if (finished) expect(action.status).toBeUndefined();
        } else if (facts.frozen !== undefined) expect(action.do).toBe('wait');
        const writes = ['create', 'look-back', 'update', 'patch-status'].includes(action.do);
        if (facts.endsFirst?.() === true) expect(writes).toBe(false);
        if (action.do === 'delete-member' || action.do === 'collect') expect(ours).toBe(true);
        if (action.do === 'delete-member') expect(host?.metadata.deletionTimestamp).toBeDefined();
        if (action.do === 'create') {
          expect(member).toBeUndefined();
          expect(finished || host?.metadata.deletionTimestamp !== undefined).toBe(false);
          expect(
            host?.status?.conditions?.some((c) => c.type === MIRRORED_CONDITION && c.status === 'True') ?? false,
          ).toBe(false);
          expect(facts.created).toBeUndefined();
          expect(begun && facts.intentSettled === false).toBe(false);
          expect(facts.unansweredElsewhere === true && facts.unansweredMs !== undefined).toBe(false);
        }
        if (action.do === 'end-second-copy') {
          expect([ours, action.memberPod, action.second]).toEqual([true, member, facts.second]);
          expect(host?.metadata.uid).toBe(member?.metadata.labels?.[UID_LABEL]);
        }
        if (action.do === 'look-back') {
          expect([member, finished, host?.metadata.deletionTimestamp, facts.reachable]).toEqual([
            undefined,
            false,
            undefined,
            true,
          ]);
          expect([begun, facts.intentSettled, facts.created]).toEqual([true, false, undefined]);
          expect([action.lost.phase, action.forgotten.phase]).toEqual(['Failed', 'Failed']);
        }
        if (action.do === 'patch-status' || action.do === 'report-lost') expect(finished).toBe(false);
        if (action.do === 'finish-deletion') {
          expect(facts.unansweredMs).toBeUndefined();
          expect(host?.metadata.deletionTimestamp).toBeDefined();
          expect(ours && member?.metadata.labels?.[UID_LABEL] === 'host-uid').toBe(false);
          if (finished) expect(action.status).toBeUndefined();
        }
        if (action.do === 'report-lost') expect(action.status.phase).toBe('Failed');
      }),
      { numRuns: 2000 },
    );
  });
});
