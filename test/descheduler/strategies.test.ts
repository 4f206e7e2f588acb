import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { ownerProjection } from '../../src/scheduler/projections.ts';
import { toleratedMs } from '../../src/kube/taints.ts';
import { lostWords, whyItStaysLost } from '../../src/descheduler/member-lost.ts';
import { outOfServiceWords, whyItStaysOutOfService } from '../../src/descheduler/out-of-service.ts';
import { whyItStaysDrained } from '../../src/descheduler/drain.ts';
import { whyNotMoved, whyNotReplaced } from '../../src/descheduler/replaceable.ts';
import { whyItStaysTainted } from '../../src/descheduler/taint-no-execute.ts';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import { lostMembers, outageBegan, reachabilityOf, whyMovesPaused } from '../../src/placement/lost-members.ts';
import type { MoveRules, PlacedMember } from '../../src/placement/placed-pods.ts';
import { placedMember } from '../fixtures/placed-member.ts';

const OWNER = { uid: 'o', name: 'o', controller: true };
const controlled = (apiVersion: string, kind: string, spec: object = {}, metadata: object = {}): Pod => ({
  metadata: { name: 'p', uid: 'p', ownerReferences: [{ ...OWNER, apiVersion, kind }], ...metadata },
  spec: { containers: [], nodeName: 'east', ...spec },
});
const web = (spec: object = {}, metadata: object = {}): Pod => controlled('apps/v1', 'ReplicaSet', spec, metadata);
const CLAIM = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] };
const UNREACHABLE = { key: 'spillway.dev/member-unreachable', operator: 'Exists', effect: 'NoExecute' } as const;
/** A pod's Job, as the caches keep it; API servers write the default down. */
const job = (podReplacementPolicy: string | undefined = 'TerminatingOrFailed'): MoveRules['workload'] =>
  ownerProjection('batch/v1', 'Job')({ metadata: { name: 'work' }, spec: { podReplacementPolicy } } as KubeObject);
const rules = (onMemberLost: object = {}, clusterTolerations: MoveRules['clusterTolerations'] = []): MoveRules => ({
  workload: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
  replicas: undefined,
  failover: { onMemberLost },
  clusterTolerations,
});

describe('members that do not answer', () => {
  const members = (...reachable: (boolean | undefined)[]) =>
    lostMembers(
      reachable.map((one, index) => ({
        name: `m${index}`,
        reachable: one,
        mayBeLost: one === false,
        answers: one === true,
        since: index,
      })),
    );

  test.each([
    [[false, true], ['m0']],
    [
      [false, true, true, false, true],
      ['m0', 'm3'],
    ],
    [[true, true], []],
    [[undefined, true], []],
    [[], []],
  ])('of %j lost are %j, and their pods are moved', (reachable, names) => {
    const { lost, paused } = members(...reachable);
    expect([...lost.keys()]).toEqual(names);
    expect(paused).toBeUndefined();
  });

  test.each([
    [6, 11, undefined],
    [7, 12, /^7 of 12 members do not answer: /],
  ])('%i of %i are too many only where they are more than 55 in a hundred', (gone, all, words) => {
    const { paused } = members(...Array.from({ length: all }, (_, index) => index >= gone));
    if (words === undefined) expect(paused).toBeUndefined();
    else expect(paused).toMatch(words);
  });

  test('the Events about their pods have the time that the pods themselves and the condition have', () => {
    const lastTransitionTime = '2026-01-01T00:00:20Z';
    const of = (status: string): MemberCluster => {
      const conditions = [{ type: 'Reachable', status, reason: 'Timeout', message: 'no answer', lastTransitionTime }];
      const spec = { credentials: { secretRef: { namespace: 'fleet', name: 'east' } } };
      const raw: object = { metadata: { name: 'east' }, spec, status: { conditions } };
      const parsed = parseMemberCluster(raw as KubeObject);
      if ('problems' in parsed) throw new Error(parsed.problems.join());
      return parsed.member;
    };
    expect(outageBegan(of('False'))).toBe(lastTransitionTime);
    const { since } = reachabilityOf(of('False'));
    expect(lostWords('east', since).cause).toBe(`member east has not answered since ${lastTransitionTime}`);
    expect([outageBegan(of('True')), outageBegan(of('Unknown'))]).toEqual([undefined, undefined]);
  });

  const slow = { reachable: false, mayBeLost: false, answers: true, since: 0 };
  const lost = { name: 'lost', reachable: false, mayBeLost: true, answers: false, since: 1 };

  test('that answer too slowly are none of them, nor do they count among those that are too many', () => {
    const found = { lost: new Map([['lost', 1]]), paused: undefined };
    expect(lostMembers([{ name: 'a', ...slow }, lost])).toEqual(found);
    expect(lostMembers([{ name: 'a', ...slow }, { name: 'b', ...slow }, lost])).toEqual(found);
  });

  test('that could not be asked, for a fault on this side, are none of them and count among those that are too many', () => {
    const unasked = { ...slow, answers: false };
    expect(lostMembers([{ name: 'a', ...unasked }, lost]).paused).toMatch(/^no member answers: /);
    expect(lostMembers([{ name: 'a', ...unasked }, lost, { name: 'b', ...slow }]).paused).toMatch(/^2 of 3 members/);
  });

  test.each([
    [[false], /^no member answers: /],
    [[false, false], /^no member answers: /],
    [[false, undefined], /^no member answers: /],
    [[false, false, true], /^2 of 3 members do not answer: /],
    [[false, false, false, true, true], /^3 of 5 members do not answer: /],
  ])('of %j too many are lost at once', (reachable, words) => {
    expect(members(...reachable).paused).toMatch(words);
  });
});

test('each lost member can say why its pods are not moved, and no other one', () => {
  const of = (name: string, status: 'True' | 'False' | 'Unknown', reason: string): MemberCluster => {
    const conditions = [{ type: 'Reachable', status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const spec = { credentials: { secretRef: { namespace: 'fleet', name } } };
    const raw = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec,
      status: { conditions },
    };
    const parsed = parseMemberCluster(raw);
    if (!('member' in parsed)) throw new Error(parsed.problems.join());
    return parsed.member;
  };
  const fleet = [
    of('lost', 'False', 'Timeout'),
    of('own', 'False', 'CredentialPluginFailed'),
    of('well', 'True', 'ProbeSucceeded'),
  ];
  const whyOf = (all: MemberCluster[]) => all.map((one) => whyMovesPaused(one, () => all));
  expect(whyOf(fleet)).toEqual([expect.stringMatching(/^2 of 3 members do not answer: /), undefined, undefined]);
  for (const reason of ['TooManyRequests', 'ProbeFailed', 'WatchStale'])
    expect(whyOf([of('lost', 'False', 'Timeout'), of('busy', 'False', reason)])[0]).toBeUndefined();
  // As a gateway before both of them says.
  expect(whyOf([of('lost', 'False', 'Timeout'), of('own', 'False', 'ServerError')])[0]).toBeDefined();
  expect(whyOf([...fleet, of('new', 'True', 'ProbeSucceeded')])[0]).toBeUndefined();
});

describe('a pod of a lost member', () => {
  test.each<[string, Pod, 'Replace' | 'Hold' | 'ReplaceWhenFenced' | undefined, RegExp | undefined]>([
    ['of a ReplicaSet', web(), undefined, undefined],
    ['of a ReplicaSet, as its policy says', web(), 'Replace', undefined],
    ['of a ReplicaSet that is to be held', web(), 'Hold', /its policy says Hold/],
    ['of a ReplicationController', controlled('v1', 'ReplicationController'), undefined, undefined],
    ['of a StatefulSet', controlled('apps/v1', 'StatefulSet'), undefined, /known to have ended/],
    [
      'of a StatefulSet, whatever its policy says',
      controlled('apps/v1', 'StatefulSet'),
      'Replace',
      /known to have ended/,
    ],
    ['of a Job', controlled('batch/v1', 'Job'), undefined, /done twice/],
    ['of a Job, as its policy says', controlled('batch/v1', 'Job'), 'Replace', undefined],
    ['of a DaemonSet', controlled('apps/v1', 'DaemonSet'), 'Replace', /one pod for each node/],
    ['of a stranger', controlled('argoproj.io/v1', 'Workflow'), 'Replace', /not known that a argoproj.io\/Workflow/],
    ['of a namesake of ReplicaSets', controlled('example.org/v1', 'ReplicaSet'), 'Replace', /not known/],
    [
      'of a ReplicaSet that is to wait for the word of an administrator',
      web(),
      'ReplaceWhenFenced',
      /not out of service/,
    ],
    ['alone', { ...web(), metadata: { name: 'p' } }, 'Replace', /no controller/],
    ['with claims', web(CLAIM), 'Replace', /its data are there/],
    ['of a gang', web({}, { labels: { 'spillway.dev/gang': 'g' } }), 'Replace', /one place together/],
  ])('%s', (_, pod, action, why) => {
    const own = { ...rules(action === undefined ? {} : { action }), workload: job() };
    if (why === undefined) expect(whyNotReplaced(pod, own)).toBeUndefined();
    else expect(whyNotReplaced(pod, own)).toMatch(why);
  });

  describe('of a Job that is to be replaced', () => {
    const work = controlled('batch/v1', 'Job');
    const stays = (workload: MoveRules['workload'], action = 'Replace'): string | undefined =>
      whyItStaysLost(work, { ...rules({ action }), workload }, 9e9)?.why;
    const unseen = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'work' } };

    test('goes where that makes another one while it is Terminating', () => {
      expect(stays(job('TerminatingOrFailed'))).toBeUndefined();
    });
    test('stays where that makes none before it has ended, which nobody hears of, or is not known', () => {
      expect(stays(job('Failed'))).toMatch(/^its Job makes no other one before .* \(podReplacementPolicy: Failed\)$/);
      for (const one of [unseen, job('Other'), ownerProjection('batch/v1', 'Job')(unseen)])
        expect(stays(one)).toMatch(/^it is not known whether its Job makes another one/);
      expect(stays(job('Failed'), 'Hold')).toBe('its policy says Hold');
    });
    test('goes as soon as its virtual node is out of service: it is gone at once then', () => {
      const OUT = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoSchedule' };
      const member = placedMember({ reachable: false, mayBeLost: true, outOfService: new Map([['east', [OUT]]]) });
      const own = { ...rules({ action: 'Replace' }), workload: job('Failed') };
      expect(whyItStaysOutOfService(work, own, member, () => 0)).toBeUndefined();
    });
    test('goes out of a member that answers, for a taint or a drain: it ends there, and another one comes', () => {
      const TAINT = { key: 'k', value: 'v', effect: 'NoExecute' };
      const drained = new Map([['east', [{ key: 'spillway.dev/drain', value: '', effect: 'NoSchedule' }]]]);
      const member = placedMember({ nodeTaints: new Map([['east', [TAINT]]]), drained });
      for (const workload of [job('Failed'), unseen]) {
        const own = { ...rules({}), workload };
        expect(whyItStaysTainted(work, own, member, () => 0)).toBeUndefined();
        expect(whyItStaysDrained(work, own, member)).toBeUndefined();
      }
      const lost = { ...member, reachable: false, mayBeLost: true };
      const own = { ...rules({ action: 'Replace' }), workload: job('Failed') };
      expect(whyItStaysTainted(work, own, lost, () => 0)).toMatchObject({ why: stays(job('Failed')) });
      expect(whyItStaysDrained(work, own, lost)).toMatchObject({ why: stays(job('Failed')) });
    });
  });

  test.each<[string, Pod, MoveRules, number, number | undefined | 'as long as that is so']>([
    ['after five minutes by default', web(), rules(), 300_000, undefined],
    ['not before', web(), rules(), 299_000, 1_000],
    ['after what its policy says', web(), rules({ after: '1m30s' }), 90_000, undefined],
    ['not before that', web(), rules({ after: '1m30s' }), 80_000, 10_000],
    ['whatever its policy says not within the first 15 s', web(), rules({ after: '1s' }), 14_000, 1_000],
    ['and after them, as its policy says', web(), rules({ after: '1s' }), 15_000, undefined],
    [
      'not before its own time',
      web({ tolerations: [{ ...UNREACHABLE, tolerationSeconds: 600 }] }),
      rules(),
      300_000,
      300_000,
    ],
    [
      'its own time makes it no shorter',
      web({ tolerations: [{ ...UNREACHABLE, tolerationSeconds: 1 }] }),
      rules(),
      299_000,
      1_000,
    ],
    [
      'never with a toleration that has no end',
      web({ tolerations: [UNREACHABLE] }),
      rules(),
      9e9,
      'as long as that is so',
    ],
    ['never when its policy says so', web(), rules({ action: 'Hold' }), 9e9, 'as long as that is so'],
  ])('%s', (_, pod, own, lostMs, forMs) => {
    const found = whyItStaysLost(pod, own, lostMs);
    expect(found === undefined ? undefined : (found.forMs ?? 'as long as that is so')).toBe(forMs);
  });
});

describe('a taint of effect NoExecute', () => {
  const TAINT = { key: 'k', value: 'v', effect: 'NoExecute' };
  const member = (more: Partial<PlacedMember> = {}): PlacedMember =>
    placedMember({ nodeTaints: new Map([['east', [TAINT]]]), ...more });
  const stays = (pod: Pod, of: PlacedMember, own = rules(), sinceMs = 0) =>
    whyItStaysTainted(pod, own, of, () => sinceMs);
  const onCluster = member({ nodeTaints: new Map(), clusterTaints: [TAINT] });

  test.each([
    [undefined, 0],
    [[], 0],
    [[{ key: 'other', operator: 'Exists' as const }], 0],
    [[{ key: 'k', operator: 'Exists' as const }], Infinity],
    [[{ operator: 'Exists' as const, tolerationSeconds: 5 }], 5_000],
    [
      [
        { key: 'k', value: 'v', tolerationSeconds: 9 },
        { key: 'k', operator: 'Exists' as const, tolerationSeconds: 3 },
      ],
      9_000,
    ],
    [[{ key: 'k', value: 'v', tolerationSeconds: -1 }], 0],
    [[{ key: 'k', value: 'w' }], 0],
    [[{ key: 'k', operator: 'Exists' as const, effect: 'NoSchedule' }], 0],
  ])('is tolerated by %j for %s ms', (tolerations, ms) => {
    expect(toleratedMs(tolerations, TAINT)).toBe(ms);
  });

  test('moves pods at once, those of StatefulSets and Jobs, too: they end where they are', () => {
    for (const pod of [web(), controlled('apps/v1', 'StatefulSet'), controlled('batch/v1', 'Job')]) {
      expect(stays(pod, member())).toBeUndefined();
      expect(whyNotMoved(pod)).toBeUndefined();
    }
    expect(stays(web(CLAIM), member())).toMatchObject({ why: 'it uses claims, and its data are there' });
  });

  test('of a member that does not answer moves only what may run twice', () => {
    const lost = member({ reachable: false });
    expect(stays(web(), lost)).toBeUndefined();
    expect(stays(controlled('apps/v1', 'StatefulSet'), lost)).toMatchObject({
      why: expect.stringMatching(/known to have ended/) as string,
    });
  });

  test('of a member that has yet to be asked moves nothing: it may be one that is lost', () => {
    const why = 'member east: it has not been contacted yet';
    for (const pod of [web(), controlled('apps/v1', 'StatefulSet'), controlled('batch/v1', 'Job')]) {
      expect(stays(pod, member({ reachable: undefined }), rules({ action: 'Replace' }))).toEqual({ why });
    }
  });

  test('by a policy moves nothing out of members that do not answer while too many do not', () => {
    const by = (policy?: string) =>
      member({
        reachable: false,
        nodeTaints: new Map(),
        clusterTaints: [policy === undefined ? TAINT : { ...TAINT, policy }],
      });
    const paused = 'no member answers';
    const found = (of: PlacedMember, unpausedForMs = 0) =>
      whyItStaysTainted(web(), rules(), of, () => 9e9, { why: unpausedForMs > 0 ? undefined : paused, unpausedForMs });
    expect(found(by('p'))).toEqual({ why: paused });
    // It may only have yet to be asked.
    expect(found(by('p'), 100)).toMatchObject({ forMs: 14_900 });
    expect(found(by('p'), 15_000)).toBeUndefined();
    // A person knows.
    expect(found(by())).toBeUndefined();
    expect(found({ ...by('p'), reachable: true })).toBeUndefined();
    const both = member({
      ...by('p'),
      clusterTaints: [
        { ...TAINT, policy: 'p' },
        { ...TAINT, key: 'gone' },
      ],
    });
    expect(found(both)).toBeUndefined();
  });

  test('by a policy moves pods of members that do not answer by the time since a pause, and since the taint came', () => {
    const lost = member({
      reachable: false,
      nodeTaints: new Map(),
      clusterTaints: [{ ...TAINT, policy: 'p' }],
    });
    const tolerates = (tolerationSeconds: number): MoveRules => ({
      ...rules(),
      clusterTolerations: [{ key: TAINT.key, operator: 'Exists', tolerationSeconds }],
    });
    const found = (of: MoveRules, taintedForMs: number, unpausedForMs = Infinity) =>
      whyItStaysTainted(web(), of, lost, () => taintedForMs, { why: undefined, unpausedForMs });
    expect(found(tolerates(300), 1_800_000, 100)).toMatchObject({ forMs: 299_900 });
    expect(found(tolerates(300), 1_800_000, 300_000)).toBeUndefined();
    expect(found(tolerates(300), 299_000)).toMatchObject({ forMs: 1_000 });
    // A former process may have seen a pause.
    expect(found(rules(), 14_000)).toMatchObject({ forMs: 1_000 });
    expect(found(rules(), 15_000)).toBeUndefined();
  });

  test('counts on the virtual node of the pod only', () => {
    expect(stays(web({ nodeName: 'east-gpu' }), member())).toBe('notWanted');
  });

  test('lets a pod stay that tolerates it, for as long as it does', () => {
    const tolerations = [{ key: 'k', operator: 'Exists', tolerationSeconds: 10 }];
    expect(stays(web({ tolerations }), member(), rules(), 4_000)).toMatchObject({ forMs: 6_000 });
    expect(stays(web({ tolerations }), member(), rules(), 10_000)).toBeUndefined();
    expect(stays(web({ tolerations: [{ operator: 'Exists' }] }), member(), rules(), 9e9)).toBe('notWanted');
  });

  test('moves the pod when the first of several is tolerated no longer, each by its own age', () => {
    const other = { ...TAINT, key: 'other' };
    const of = member({ nodeTaints: new Map([['east', [TAINT, other]]]), clusterTaints: [TAINT] });
    const tolerations = [
      { key: 'k', operator: 'Exists', tolerationSeconds: 60 },
      { key: 'other', operator: 'Exists', tolerationSeconds: 100 },
    ];
    const own = rules({}, [{ key: 'k', operator: 'Exists', tolerationSeconds: 300 }]);
    const found = (k: number, others: number, onAll: number) =>
      whyItStaysTainted(web({ tolerations }), own, of, ({ key }, node) =>
        node === undefined ? onAll : key === 'k' ? k : others,
      );
    expect(found(0, 95_000, 0)).toEqual({ why: 'it tolerates other=v:NoExecute for so long', forMs: 5_000 });
    expect(found(0, 100_000, 0)).toBeUndefined();
    expect(found(50_000, 0, 299_000)).toMatchObject({ forMs: 1_000 });
    expect(found(59_000, 0, 0)).toMatchObject({ forMs: 1_000 });
  });

  test('on the cluster is tolerated by policies, and not by pods', () => {
    expect(stays(web({ tolerations: [{ operator: 'Exists' }] }), onCluster)).toBeUndefined();
    const own = rules({}, [{ key: 'k', operator: 'Exists', tolerationSeconds: 10 }]);
    expect(stays(web(), onCluster, own, 4_000)).toMatchObject({ forMs: 6_000 });
    expect(stays(web(), onCluster, own, 10_000)).toBeUndefined();
  });

  describe('and a virtual node that is out of service', () => {
    const KEY = 'node.kubernetes.io/out-of-service';
    const OUT = { key: KEY, value: 'nodeshutdown', effect: 'NoSchedule' };
    const fenced = member({ reachable: false, nodeTaints: new Map(), outOfService: new Map([['east', [OUT]]]) });
    const tolerating = (more: object): Pod => web({ tolerations: [{ key: KEY, operator: 'Exists', ...more }] });

    test.each<[string, Pod, MoveRules, Partial<PlacedMember>, number, string | RegExp | undefined]>([
      ['a pod of a ReplicaSet is replaced', web(), rules(), {}, 0, undefined],
      ['of a StatefulSet, too', controlled('apps/v1', 'StatefulSet'), rules(), {}, 0, undefined],
      ['of a Job, too', controlled('batch/v1', 'Job'), rules(), {}, 0, undefined],
      ['with claims, too', controlled('apps/v1', 'StatefulSet', CLAIM), rules(), {}, 0, undefined],
      ['of a gang, too', web({}, { labels: { 'spillway.dev/gang': 'g' } }), rules(), {}, 0, undefined],
      ['as its policy says', web(), rules({ action: 'ReplaceWhenFenced', after: '24h' }), {}, 0, undefined],
      ['not one that is to be held', web(), rules({ action: 'Hold' }), {}, 9e9, 'its policy says Hold'],
      [
        'not one that nobody makes anew',
        { ...web(), metadata: { name: 'p' } },
        rules(),
        {},
        9e9,
        /no controller.*kubectl delete pod ends it at once/,
      ],
      ['not one of a DaemonSet', controlled('apps/v1', 'DaemonSet'), rules(), {}, 9e9, /one pod for each node/],
      ['not one that tolerates it for ever', tolerating({}), rules(), {}, 9e9, /for ever/],
      [
        'not before the time of one that tolerates it',
        tolerating({ tolerationSeconds: 10 }),
        rules(),
        {},
        9_000,
        /for so long/,
      ],
      ['but after it', tolerating({ tolerationSeconds: 10 }), rules(), {}, 10_000, undefined],
      ['on another node it is none of its business', web({ nodeName: 'east-gpu' }), rules(), {}, 9e9, 'notWanted'],
      ['nor once the word does not count', web(), rules(), { outOfService: new Map() }, 9e9, 'notWanted'],
    ])('%s', (_, pod, own, more, sinceMs, why) => {
      const found = whyItStaysOutOfService(pod, own, { ...fenced, ...more }, () => sinceMs);
      if (why === undefined || why === 'notWanted') expect(found).toBe(why);
      else expect(found).toMatchObject({ why: expect.stringMatching(why) as string });
    });

    test('moves those of a gang whether there is a place for one of them or not, and no others', () => {
      const leaves = (pod: Pod) => outOfServiceWords(pod, 'east').leavesAnyway;
      expect(leaves(web({}, { labels: { 'spillway.dev/gang': 'g' } }))).toBe(true);
      expect(leaves(controlled('apps/v1', 'StatefulSet', CLAIM))).toBe(false);
    });
  });

  describe('and a virtual node that is to be emptied', () => {
    const DRAIN = { key: 'spillway.dev/drain', effect: 'NoSchedule' };
    const drained = member({ nodeTaints: new Map(), drained: new Map([['east', [DRAIN]]]) });
    const leaves = (pod: Pod, of = drained) => whyItStaysDrained(pod, rules(), of);

    test.each<[string, Pod, Partial<PlacedMember>, string | RegExp | undefined]>([
      ['a pod of a ReplicaSet goes', web(), {}, undefined],
      ['of a StatefulSet, too', controlled('apps/v1', 'StatefulSet'), {}, undefined],
      ['of a Job, too', controlled('batch/v1', 'Job'), {}, undefined],
      ['of a DaemonSet stays', controlled('apps/v1', 'DaemonSet'), {}, /one pod for each node/],
      ['with claims stays', web(CLAIM), {}, /its data are there/],
      ['on another node it is none of its business', web({ nodeName: 'east-gpu' }), {}, 'notWanted'],
      [
        'nor for a pod that tolerates it',
        web({ tolerations: [{ key: 'spillway.dev/drain', operator: 'Exists' }] }),
        {},
        'notWanted',
      ],
      [
        'nor for one that tolerates it with its effect',
        web({ tolerations: [{ ...DRAIN, operator: 'Exists' }] }),
        {},
        'notWanted',
      ],
      [
        'nor for one that tolerates all of that effect',
        web({ tolerations: [{ operator: 'Exists', effect: 'NoSchedule' }] }),
        {},
        'notWanted',
      ],
      [
        'one that tolerates another effect of it goes',
        web({ tolerations: [{ ...DRAIN, operator: 'Exists', effect: 'NoExecute' }] }),
        {},
        undefined,
      ],
      [
        'and one that tolerates only one of two',
        web({ tolerations: [{ ...DRAIN, operator: 'Exists' }] }),
        { drained: new Map([['east', [DRAIN, { ...DRAIN, effect: 'NoExecute' }]]]) },
        undefined,
      ],
      ['nor once that is taken back', web(), { drained: new Map() }, 'notWanted'],
      [
        'while the member does not answer a StatefulSet keeps its pod',
        controlled('apps/v1', 'StatefulSet'),
        { reachable: false },
        /known to have ended/,
      ],
      [
        'while nobody has asked the member any pod stays',
        web(),
        { reachable: undefined },
        /member east: it has not been contacted yet/,
      ],
    ])('%s', (_, pod, more, why) => {
      const found = leaves(pod, { ...drained, ...more });
      if (why instanceof RegExp) expect(found).toMatchObject({ why: expect.stringMatching(why) as string });
      else expect(found).toBe(why);
    });
  });
});
