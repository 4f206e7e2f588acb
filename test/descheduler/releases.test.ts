import { describe, expect, test } from 'vitest';
import { releasedFrom, releasedText } from '../../src/api/released.ts';
import {
  goesGracefully,
  onHealOf,
  releasedAtOnce,
  staysByPolicy,
  waitsForHeal,
} from '../../src/descheduler/purge-mode.ts';
import { costPatch, giveBackPatch, releasePatch } from '../../src/descheduler/release-patches.ts';
import { releaseSteps } from '../../src/descheduler/release-rules.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { CAUGHT_UP_MS } from '../../src/kube/reflector-timings.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const RULES = { purgeMode: 'Gracefully', gracePeriodSeconds: 600, onTimeout: 'GiveBack' } as const;
const NEVER = { ...RULES, purgeMode: 'Never' } as const;
const READY: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const NOT_READY: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] };
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d', uid: 'set', controller: true };

const pod = (name: string, status: Pod['status'], metadata: object = {}): Pod => ({
  metadata: { name, uid: name, ...metadata },
  spec: { containers: [] },
  ...(status === undefined ? {} : { status }),
});
/** Of ReplicaSet `set`, some of them Ready. */
const owned = (ready: number, others = 0): Pod[] =>
  Array.from({ length: ready + others }, (_, index) => pod(`o${index}`, index < ready ? READY : NOT_READY));
/** Released so many seconds ago, when so many were Ready. */
const out = (
  name: string,
  agoSeconds: number,
  ready: number,
  status: Pod['status'] = READY,
  more: object = {},
): Pod => {
  const at = new Date(NOW - agoSeconds * 1_000).toISOString().replace('.000Z', 'Z');
  const mark = releasedText({ hash: '7d', replicaSet: 'web-7d', uid: 'set', at, ready });
  return pod(name, status, { annotations: { 'spillway.dev/released': mark }, ...more });
};
/** The same as its member was lost, when none was Ready. */
const outAsLost = (name: string, agoSeconds: number): Pod => {
  const one = out(name, agoSeconds, 0, NOT_READY);
  const mark = releasedFrom(one) ?? { hash: '', replicaSet: '', uid: '', at: '', ready: 0 };
  const annotations = { 'spillway.dev/released': releasedText({ ...mark, lost: true }) };
  return { ...one, metadata: { ...one.metadata, annotations } };
};
/** Made so many seconds ago, in the place of one that was released. */
const since = (name: string, agoSeconds: number, status: Pod['status'] = READY): Pod =>
  pod(name, status, { creationTimestamp: new Date(NOW - agoSeconds * 1_000).toISOString().replace('.000Z', 'Z') });
/** By a wall clock that is right. */
const passedMs = (one: Pod): number => NOW - Date.parse(releasedFrom(one)?.at ?? '');
const set = (replicas: number, available?: number, ready?: number) => ({ replicas, ready, available });

describe('how a pod leaves', () => {
  const says = (purgeMode: 'Gracefully' | 'Directly' | 'Never') => ({ cluster: { ...RULES, purgeMode } });
  test.each([
    ['by default', READY, 'TaintNoExecute', undefined, 'Gracefully'],
    ['not Ready', NOT_READY, 'TaintNoExecute', undefined, 'Directly'],
    ['of a gang that gives up', READY, 'GangTimedOut', undefined, 'Directly'],
    ['as its policy says', READY, 'Drain', says('Directly'), 'Directly'],
    ['whose policy says Never', READY, 'MemberLost', says('Never'), 'Never'],
    ['whose policy says Never, and which never ran', NOT_READY, 'RefusedInMember', says('Never'), 'Directly'],
    ['that waits in vain, whatever its policy says', NOT_READY, 'UnschedulableInMember', says('Never'), 'Directly'],
  ] as const)('%s', (_, status, strategy, failover, mode) => {
    expect(staysByPolicy(strategy, failover)).toBe(mode === 'Never');
    expect(goesGracefully(pod('p', status), strategy, failover)).toBe(mode === 'Gracefully');
  });

  const onHeal = (choice: 'KeepOriginal' | 'KeepReplacement', purgeMode?: 'Directly') => ({
    onMemberLost: { onHeal: choice },
    ...(purgeMode === undefined ? {} : says(purgeMode)),
  });
  const mirrored: Pod['status'] = {
    phase: 'Running',
    conditions: [
      { type: 'Ready', status: 'False' },
      { type: 'spillway.dev/Mirrored', status: 'True' },
    ],
  };
  test.each([
    ['as its policy says', mirrored, 'MemberLost', onHeal('KeepOriginal'), true],
    ['not by default', mirrored, 'MemberLost', undefined, false],
    ['not as its policy says', mirrored, 'MemberLost', onHeal('KeepReplacement'), false],
    ['not where none is made first', mirrored, 'MemberLost', onHeal('KeepOriginal', 'Directly'), false],
    ['not out of a member that answers', mirrored, 'TaintNoExecute', onHeal('KeepOriginal'), false],
    ['not when it never ran', { ...mirrored, phase: 'Pending' }, 'MemberLost', onHeal('KeepOriginal'), false],
    ['not when nobody knows that it did', NOT_READY, 'MemberLost', onHeal('KeepOriginal'), false],
  ] as const)('whether it waits for its member: %s', (_, status, strategy, failover, waits) => {
    expect(waitsForHeal(pod('p', status), strategy, failover)).toBe(waits);
    if (waits) expect(onHealOf(failover)).toBe('KeepOriginal');
  });

  test.each([
    [0, 1],
    [1, 1],
    [10, 1],
    [20, 2],
    [21, 3],
  ])('of %i replicas %i are out at a time', (replicas, count) => {
    expect(releasedAtOnce({ key: 'set', replicas })).toBe(count);
  });
});

describe('what becomes of released pods', () => {
  const steps = (of: Partial<Parameters<typeof releaseSteps>[0]>): string[] =>
    releaseSteps({
      set: set(3),
      released: [],
      owned: [],
      rules: RULES,
      passedMs,
      heal: () => 'replaced',
      stranded: () => undefined,
      lossCounts: () => true,
      whyItStaysLost: () => undefined,
      mayMakeRoom: true,
      shortForMs: 0,
      clusterOf: (nodeName) => nodeName,
      ...of,
    }).map((step) =>
      [step.pod.metadata.name, step.kind, 'why' in step ? step.why : 'forMs' in step ? step.forMs : '']
        .join(' ')
        .trim(),
    );

  test.each<[string, Partial<Parameters<typeof releaseSteps>[0]>, string[]]>([
    ['the other one is not there', { owned: owned(2), released: [out('a', 10, 3)] }, ['a wait 590000']],
    ['the other one is not Ready', { owned: owned(2, 1), released: [out('a', 10, 3)] }, ['a wait 590000']],
    ['the other one is Ready', { owned: owned(3), released: [out('a', 10, 3)] }, ['a evict Replaced']],
    [
      'one of two others is Ready: the older one',
      { owned: owned(2), released: [out('b', 5, 3), out('a', 10, 3)] },
      ['a evict Replaced', 'b wait 595000'],
    ],
    [
      'it is not Ready itself any more, nor the other one',
      { owned: owned(2, 1), released: [out('a', 10, 3, NOT_READY)] },
      ['a wait 590000'],
    ],
    [
      'it is not Ready itself any more, but the other one',
      { owned: owned(3), released: [out('a', 10, 3, NOT_READY)] },
      ['a evict Replaced'],
    ],
    [
      'fewer were Ready before: so many are enough',
      { owned: [...owned(1, 1), since('n', 9)], released: [out('a', 10, 2)] },
      ['a evict Replaced'],
    ],
    [
      'fewer were Ready before, others got well, and the other one is not Ready',
      { set: set(4), owned: [...owned(3), since('n', 9, NOT_READY)], released: [out('a', 10, 2)] },
      ['a wait 590000'],
    ],
    [
      'fewer were Ready before, others got well, and the other one is not there yet',
      { set: set(4), owned: owned(3), released: [out('a', 10, 2)] },
      ['a wait 590000'],
    ],
    [
      'fewer were Ready before, and the clock that wrote on the pod was a day ahead',
      { owned: [...owned(1, 1), since('n', 9)], released: [out('a', -86_400, 2)], passedMs: () => 0 },
      ['a evict Replaced'],
    ],
    [
      'fewer were Ready before, and one of two others is Ready: the older one',
      {
        set: set(20),
        owned: [...owned(15, 3), since('m', 8), since('n', 4, NOT_READY)],
        released: [out('b', 5, 11), out('a', 10, 11)],
      },
      ['a evict Replaced', 'b wait 595000'],
    ],
    [
      'fewer were Ready before, and the one that is Ready came in the place of one that is gone',
      { set: set(20), owned: [...owned(16, 2), since('m', 8), since('n', 9, NOT_READY)], released: [out('b', 10, 11)] },
      ['b wait 590000'],
    ],
    [
      'fewer were Ready before, and the one that is Ready came in the place of one whose member is lost',
      {
        set: set(4),
        owned: [...owned(1, 1), since('x', 30)],
        released: [outAsLost('l', 60), out('a', 10, 2)],
        heal: () => 'lost',
      },
      ['l wait 5000', 'a wait 590000'],
    ],
    [
      'fewer were Ready before, the other one is Ready, and one whose member was lost goes beside it',
      {
        set: set(4),
        owned: [...owned(1), since('n', 9)],
        released: [outAsLost('l', 60), out('a', 10, 2)],
      },
      ['l evict Replaced', 'a evict Replaced'],
    ],
    ['fewer were Ready before, and fewer are', { owned: owned(1, 2), released: [out('a', 10, 2)] }, ['a wait 590000']],
    ['it was scaled down', { set: set(2), owned: owned(2), released: [out('a', 10, 3)] }, ['a evict Replaced']],
    ['it was scaled to nothing', { set: set(0), released: [out('a', 10, 3)] }, ['a evict NoReplicas']],
    [
      'it was scaled to nothing, and the pod is not Ready',
      { set: set(0), released: [out('a', 10, 3, NOT_READY)] },
      ['a evict NoReplicas'],
    ],
    [
      'it was scaled to nothing, and the pod has ended',
      { set: set(0), released: [out('a', 10, 3, { phase: 'Succeeded' })] },
      ['a evict Finished'],
    ],
    [
      'it was scaled up',
      { set: set(5), owned: [...owned(2, 2), since('n', 9)], released: [out('a', 10, 3)] },
      ['a evict Replaced'],
    ],
    ['it is gone', { set: undefined, owned: owned(0), released: [out('a', 10, 3)] }, ['a evict Gone']],
    ['the pod has ended', { owned: owned(2), released: [out('a', 10, 3, { phase: 'Failed' })] }, ['a evict Finished']],
    ['the pod is going', { owned: owned(3), released: [out('a', 10, 3, READY, { deletionTimestamp: 'x' })] }, []],
    ['the time is over', { owned: owned(2, 1), released: [out('a', 600, 3)] }, ['a giveBack TimedOut']],
    [
      'the time is over for one that serves nobody',
      { owned: owned(2, 1), released: [out('a', 600, 3, NOT_READY)] },
      ['a evict TimedOut'],
    ],
    [
      'the time is over, and the policy says so',
      { owned: owned(2, 1), released: [out('a', 600, 3)], rules: { ...RULES, onTimeout: 'Evict' } },
      ['a evict TimedOut'],
    ],
    [
      'the time is over by the wall clock alone, which may be ahead',
      { owned: owned(2, 1), released: [out('a', 600, 3, NOT_READY)], passedMs: () => 590_000 },
      ['a wait 10000'],
    ],
    [
      'the time is over, and the clock that wrote on the pod was a day ahead',
      { owned: owned(2, 1), released: [out('a', -86_400, 3)], passedMs: () => 600_000 },
      ['a giveBack TimedOut'],
    ],
    [
      'the time is over, but the other one is Ready',
      { owned: owned(3), released: [out('a', 900, 3)] },
      ['a evict Replaced'],
    ],
    [
      'the other one was not Ready for minReadySeconds',
      { set: set(3, 2), owned: owned(3), released: [out('a', 10, 3)] },
      ['a wait 590000'],
    ],
    [
      'the other one was Ready for minReadySeconds',
      { set: set(3, 3), owned: owned(3), released: [out('a', 10, 3)] },
      ['a evict Replaced'],
    ],
    [
      'the other one is not Ready any more, by the word of the ReplicaSet alone',
      { set: set(3, undefined, 2), owned: owned(3), released: [out('a', 10, 3)] },
      ['a wait 590000'],
    ],
    [
      'its member is lost by now, and no other one can be made beside it',
      {
        owned: owned(1),
        released: [out('a', 10, 3, NOT_READY), out('b', 5, 3)],
        stranded: () => 'lost',
        shortForMs: 60_000,
      },
      ['a evict NoOther', 'b wait 595000'],
    ],
    [
      'its member is lost by now, and no other one was made beside it for a moment',
      { owned: owned(2), released: [out('a', 10, 3, NOT_READY)], stranded: () => 'lost', shortForMs: 59_999 },
      ['a wait 590000'],
    ],
    [
      'its member is lost by now, and one makes room already',
      {
        owned: owned(2),
        released: [out('b', 5, 3, NOT_READY)],
        stranded: () => 'lost',
        mayMakeRoom: false,
        shortForMs: 60_000,
      },
      ['b wait 595000'],
    ],
    [
      'its member is lost by now, and the other one is Ready',
      { owned: owned(3), released: [out('a', 10, 3, NOT_READY)], stranded: () => 'lost' },
      ['a evict Replaced'],
    ],
    [
      'it does not run any more, by the word of an administrator',
      { owned: owned(2), released: [out('a', 10, 3, NOT_READY)], stranded: () => 'outOfService' },
      ['a evict OutOfService'],
    ],
    [
      'pods that are going are not Ready',
      { owned: [...owned(2), pod('g', READY, { deletionTimestamp: 'x' })], released: [out('a', 10, 3)] },
      ['a wait 590000'],
    ],
  ])('%s', (_, of, wanted) => {
    expect(steps(of)).toEqual(wanted);
  });
});

describe('what becomes of pods whose member was lost', () => {
  const made = (second: number): object => ({ creationTimestamp: `2026-01-01T00:00:0${String(second)}Z` });
  const on = (nodeName: string, one: Pod): Pod => ({ ...one, spec: { ...one.spec, nodeName } });
  /** Released as its member was lost, when none was Ready. */
  const lost = (name: string, status: Pod['status'] = READY): Pod => {
    const mark = releasedText({
      hash: '7d',
      replicaSet: 'web-7d',
      uid: 'set',
      at: '2026-01-01T00:00:00Z',
      ready: 0,
      lost: true,
    });
    return on('east', pod(name, status, { annotations: { 'spillway.dev/released': mark }, ...made(1) }));
  };
  const came = (name: string, status: Pod['status'] = READY, second = 5): Pod =>
    on('west', pod(name, status, made(second)));
  const steps = (of: Partial<Parameters<typeof releaseSteps>[0]>): string[] =>
    releaseSteps({
      set: set(2),
      released: [],
      owned: [],
      rules: RULES,
      passedMs: () => 3_600_000,
      heal: () => 'choose',
      stranded: () => undefined,
      lossCounts: () => true,
      whyItStaysLost: () => undefined,
      mayMakeRoom: true,
      shortForMs: 0,
      clusterOf: (nodeName) => nodeName,
      ...of,
    }).map((step) => {
      if (step.kind === 'choose')
        return `${step.pod.metadata.name} instead of ${step.instead?.metadata.name ?? 'nobody'}${step.mayGo ? '' : ', must stay'}`;
      return `${step.pod.metadata.name} ${step.kind} ${step.kind === 'wait' ? (step.keeps?.from ?? '') : step.why}`.trim();
    });

  test.each<[string, Partial<Parameters<typeof releaseSteps>[0]>, string[]]>([
    [
      'its member does not answer',
      { owned: [came('x'), came('y')], released: [lost('a')], heal: () => 'lost' },
      ['a wait'],
    ],
    [
      'its member does not answer, and no other one was made beside it for a moment',
      { owned: [came('x')], released: [lost('a')], heal: () => 'lost', shortForMs: 59_999 },
      ['a wait'],
    ],
    [
      'its member does not answer, and no other one can be made beside it',
      {
        owned: [came('x')],
        released: [lost('a', NOT_READY), lost('b', NOT_READY)],
        heal: () => 'lost',
        shortForMs: 60_000,
      },
      ['a evict NoOther', 'b evict NoOther'],
    ],
    [
      'it is Ready, though not all can be relied on that is said of its member: a quota ends none that serves',
      { owned: [came('x')], released: [lost('a'), lost('b', NOT_READY)], heal: () => 'lost', shortForMs: 60_000 },
      ['a wait', 'b evict NoOther'],
    ],
    [
      'its member does not answer, no other one can be made beside it, and moves for loss are paused',
      {
        owned: [came('x')],
        released: [lost('a', NOT_READY)],
        heal: () => 'lost',
        lossCounts: () => false,
        shortForMs: 3_600_000,
      },
      ['a wait'],
    ],
    [
      'its member does not answer, and one that waited is making room already',
      {
        owned: [came('x')],
        released: [lost('b', NOT_READY)],
        heal: () => 'lost',
        mayMakeRoom: false,
        shortForMs: 3_600_000,
      },
      ['b wait'],
    ],
    [
      'its member does not answer, and has not for as long as others stay in one that is lost',
      {
        owned: [came('x')],
        released: [lost('a', NOT_READY), lost('b', NOT_READY)],
        heal: () => 'lost',
        lossCounts: ({ metadata }) => metadata.name === 'b',
        shortForMs: 3_600_000,
      },
      ['a wait', 'b evict NoOther'],
    ],
    [
      'its member does not answer, no other one can be made beside it, and it stays by itself: not those after it',
      {
        owned: [came('x')],
        released: [lost('a', NOT_READY), lost('b', NOT_READY)],
        heal: () => 'lost',
        whyItStaysLost: ({ metadata }) => (metadata.name === 'a' ? 'so' : undefined),
        shortForMs: 60_000,
      },
      ['a wait NoOther', 'b evict NoOther'],
    ],
    [
      'it was released before its member was lost, no other one can be made beside it, and it stays by itself',
      {
        set: set(3),
        owned: [came('x')],
        released: [out('a', 10, 3, NOT_READY)],
        stranded: () => 'lost',
        whyItStaysLost: () => 'so',
        passedMs: () => 0,
        shortForMs: 60_000,
      },
      ['a wait NoOther'],
    ],
    [
      'the same, and as many others are Ready as before',
      {
        set: set(3),
        owned: [came('x')],
        released: [out('a', 10, 1, NOT_READY)],
        stranded: () => 'lost',
        whyItStaysLost: () => 'so',
        passedMs: () => 0,
        shortForMs: 60_000,
      },
      ['a evict Replaced'],
    ],
    [
      'it is not Ready again, and others are',
      { owned: [came('x'), came('y')], released: [lost('a', NOT_READY)], heal: () => 'notWell', passedMs: () => 0 },
      ['a evict NotWell'],
    ],
    [
      'it is not Ready again, nor are others',
      { owned: [came('x', NOT_READY)], released: [lost('a', NOT_READY)], heal: () => 'notWell', passedMs: () => 0 },
      ['a wait'],
    ],
    [
      'it is not Ready again, nor are others, and its time is over',
      { owned: [came('x', NOT_READY)], released: [lost('a', NOT_READY)], heal: () => 'notWell' },
      ['a evict NotWell'],
    ],
    [
      'it is not Ready again, and nothing more is to go',
      { owned: [came('x'), came('y')], released: [lost('a', NOT_READY)], heal: () => 'notWell', rules: NEVER },
      ['a wait NotWell'],
    ],
    [
      'its member does not answer, no other one can be made beside it, and nothing more is to go',
      {
        owned: [],
        released: [lost('a', NOT_READY), lost('b', NOT_READY)],
        heal: () => 'lost',
        shortForMs: 60_000,
        rules: NEVER,
      },
      ['a wait NoOther', 'b wait NoOther'],
    ],
    [
      'nothing runs there any more, and nothing more is to go',
      { owned: [], released: [lost('a')], heal: () => 'outOfService', rules: NEVER },
      ['a wait OutOfService'],
    ],
    [
      'it was scaled down, and nothing more is to go: the ReplicaSet ends those that it has too many, one after the other',
      {
        set: set(1),
        owned: [on('east', pod('b', READY, made(1)))],
        released: [lost('a'), lost('c')],
        rules: NEVER,
      },
      ['a instead of nobody', 'c wait'],
    ],
    [
      'one goes: the one that came to the same cluster',
      { set: set(1), owned: [on('east', pod('x', READY, made(5)))], released: [lost('a')] },
      ['a instead of x'],
    ],
    [
      'nothing runs there any more',
      { owned: [], released: [lost('a')], heal: () => 'outOfService' },
      ['a evict OutOfService'],
    ],
    ['one goes: the youngest', { owned: [came('x'), came('y', READY, 6)], released: [lost('a')] }, ['a instead of y']],
    [
      'one goes: the one that is not Ready',
      { owned: [came('x', NOT_READY), came('y', READY, 6)], released: [lost('a')] },
      ['a instead of x, must stay'],
    ],
    [
      'one after the other',
      { owned: [came('x'), came('y')], released: [lost('a'), lost('b')] },
      ['a instead of x', 'b wait'],
    ],
    [
      'not while the ReplicaSet has one pod too many',
      { owned: [came('x'), came('y'), on('east', pod('a', READY, made(1)))], released: [lost('b')] },
      ['b wait'],
    ],
    [
      'the ReplicaSet has too few',
      { owned: [came('x')], released: [lost('a'), lost('b')] },
      ['a instead of nobody', 'b instead of x'],
    ],
    [
      'it was scaled down, and has others that came back: nobody wants it',
      { set: set(1), owned: [on('east', pod('b', READY, made(1)))], released: [lost('a')] },
      ['a evict Replaced'],
    ],
    [
      'nobody came, as those elsewhere were there before',
      { owned: [on('west', pod('x', READY, made(1))), on('west', pod('y', READY, made(0)))], released: [lost('a')] },
      ['a evict Replaced'],
    ],
    [
      'pods that end are none',
      { owned: [came('x'), came('y'), came('z', { phase: 'Failed' }, 9)], released: [lost('a')] },
      ['a instead of x'],
    ],
    ['it has ended', { owned: [came('x')], released: [lost('a', { phase: 'Failed' })] }, ['a evict Finished']],
    ['its ReplicaSet is gone', { set: undefined, released: [lost('a')] }, ['a evict Gone']],
    ['its ReplicaSet is to have none', { set: set(0), released: [lost('a')] }, ['a evict NoReplicas']],
    [
      'the other one stays: it goes at once if it serves nobody',
      { owned: [came('x', NOT_READY)], released: [lost('a', NOT_READY)], heal: () => 'replaced' },
      ['a evict Replaced'],
    ],
    [
      'the other one stays: it goes when that one is Ready',
      { owned: [came('x'), came('y', NOT_READY)], released: [lost('a')], heal: () => 'replaced', passedMs: () => 0 },
      ['a wait'],
    ],
    [
      'pods that are moved meanwhile are none of its',
      { owned: [came('x'), came('y')], released: [out('m', 10, 2), lost('a', NOT_READY)], heal: () => 'wait' },
      ['a wait', 'm evict Replaced'],
    ],
  ])('%s', (_, of, wanted) => {
    expect(steps(of)).toEqual(wanted);
  });

  test('they make no other pod wait for its turn', () => {
    const releases = new Releases(() => 0);
    releases.sent(lost('a'), 'set', true);
    expect([releases.has('set'), releases.count('set')]).toEqual([true, 0]);
    releases.seen(lost('a'));
    expect([releases.of('set').length, releases.count('set'), releases.total]).toEqual([1, 0, 1]);
  });
});

test('patches hold for that version of the pod, take one label away and bring it back', () => {
  const live = pod('p', READY, {
    resourceVersion: '7',
    labels: { app: 'web', 'pod-template-hash': '7d' },
    ownerReferences: [OWNER],
  });
  const mark = '{"hash":"7d","replicaSet":"web-7d","uid":"set","at":"2026-01-01T01:00:00Z","ready":3}';
  expect(releasePatch(live, { ready: 3, at: NOW })).toEqual({
    metadata: {
      uid: 'p',
      resourceVersion: '7',
      labels: { 'pod-template-hash': null },
      annotations: { 'spillway.dev/released': mark },
    },
  });
  expect(giveBackPatch(live, { hash: '7d', replicaSet: 'web-7d', uid: 'set', at: '', ready: 3 })).toEqual({
    metadata: {
      uid: 'p',
      resourceVersion: '7',
      labels: { 'pod-template-hash': '7d' },
      annotations: { 'spillway.dev/released': null },
    },
  });
  expect(releasePatch(pod('p', READY, { ownerReferences: [OWNER] }), { ready: 3, at: NOW })).toBeUndefined();
  expect(releasePatch(pod('p', READY, { labels: live.metadata.labels }), { ready: 3, at: NOW })).toBeUndefined();
});

test('one that waits for its member says so, and is given back with a cost by which it stays', () => {
  const live = pod('p', READY, {
    resourceVersion: '7',
    labels: { 'pod-template-hash': '7d' },
    ownerReferences: [OWNER],
  });
  expect(JSON.stringify(releasePatch(live, { ready: 0, at: NOW, lost: true }))).toContain(
    '\\"ready\\":0,\\"lost\\":true}',
  );
  const mark = { hash: '7d', replicaSet: 'web-7d', uid: 'set', at: '', ready: 3 };
  const COST = 'controller.kubernetes.io/pod-deletion-cost';
  expect(giveBackPatch(live, mark, 3)).toMatchObject({
    metadata: { annotations: { 'spillway.dev/released': null, [COST]: '3', 'spillway.dev/deletion-cost': '3' } },
  });
  expect(costPatch(live, -4)).toEqual({
    metadata: {
      uid: 'p',
      resourceVersion: '7',
      annotations: { [COST]: '-4', 'spillway.dev/deletion-cost': '-4' },
    },
  });
});

test('releases are known from when they are sent, and from what stands on pods', () => {
  let now = 0;
  const releases = new Releases(() => now);
  const before = pod('a', READY, { ownerReferences: [OWNER] });
  releases.sent(before, 'set');
  expect([releases.count('set'), releases.of('set')]).toEqual([1, []]);
  // An older state, from the caches.
  expect(releases.seen(before)).toBeUndefined();
  expect(releases.has('set')).toBe(true);
  const after = out('a', 0, 3);
  expect(releases.seen(after)).toBe('set');
  expect(releases.of('set')).toEqual([after]);
  // Given back.
  expect(releases.seen(before)).toBe('set');
  expect([releases.has('set'), releases.total]).toEqual([false, 0]);
  releases.sent(pod('b', READY), 'set');
  now = CAUGHT_UP_MS;
  // It never was.
  expect(releases.seen(pod('b', READY))).toBe('set');
  releases.seen(out('c', 0, 3));
  expect(releases.forget(out('c', 0, 3))).toBe('set');
  expect(releases.total).toBe(0);
});

test('one that is being deleted is released still, and takes the turn of no other one, however long it takes to end', () => {
  const releases = new Releases(() => 0);
  releases.seen(out('a', 0, 3));
  expect(releases.count('set')).toBe(1);
  releases.seen(out('a', 0, 3, NOT_READY, { deletionTimestamp: '2026-01-01T00:00:00Z' }));
  expect([releases.count('set'), releases.of('set').length, releases.has('set')]).toEqual([0, 1, true]);
  releases.seen(out('b', 0, 3));
  releases.seen(pod('b', READY, { labels: { 'pod-template-hash': '7d' }, deletionTimestamp: '2026-01-01T00:00:00Z' }));
  expect(releases.count('set')).toBe(0);
});

test('what the host takes from one strategy stays, though it does not take the same from another one that wanted it meanwhile', () => {
  const releases = new Releases(() => 0);
  const before = pod('a', READY, { ownerReferences: [OWNER] });
  releases.sent(before, 'set');
  releases.seen(out('a', 0, 3));
  releases.sent(before, 'set');
  releases.notSent(before);
  expect([releases.of('set').length, releases.total]).toEqual([1, 1]);
  releases.sent(pod('b', READY), 'set');
  releases.notSent(pod('b', READY));
  expect(releases.total).toBe(1);
});

test("a pod that is given back is its ReplicaSet's, and none is released meanwhile, until it is adopted", () => {
  let now = 0;
  const releases = new Releases(() => now);
  releases.seen(out('a', 0, 3));
  const waiting = pod('a', READY, { labels: { 'pod-template-hash': '7d' } });
  expect(releases.seen(waiting)).toBe('set');
  expect([releases.of('set'), releases.givenBack('set'), releases.count('set')]).toEqual([[], [waiting], 1]);
  const adopted = { ...waiting, metadata: { ...waiting.metadata, ownerReferences: [OWNER] } };
  expect(releases.seen(adopted)).toBe('set');
  expect([releases.givenBack('set'), releases.count('set')]).toEqual([[], 0]);
  // Only the mark is gone: its ReplicaSet does not choose it.
  releases.seen(out('a', 0, 3));
  expect(releases.seen(pod('a', READY))).toBe('set');
  expect([releases.givenBack('set'), releases.count('set')]).toEqual([[], 0]);
  // Never adopted: the ReplicaSet is gone, or does not choose it.
  releases.seen(out('a', 0, 3));
  releases.seen(waiting);
  now = CAUGHT_UP_MS - 1;
  releases.seen(waiting);
  expect(releases.count('set')).toBe(1);
  now = CAUGHT_UP_MS;
  // It stands in nobody's way any more, and is known until somebody has looked whose it is.
  expect([releases.count('set'), releases.givenBack('set'), releases.has('set')]).toEqual([0, [], true]);
  expect(releases.unadopted('set')).toMatchObject([{ pod: waiting, replicaSet: 'web-7d' }]);
  releases.forget(waiting);
  expect([releases.has('set'), releases.total]).toEqual([false, 0]);
});

test('a release whose request got lost stands in the way of others until the caches must show it, though nothing is heard of the pod', () => {
  let now = 0;
  const releases = new Releases(() => now);
  releases.sent(pod('a', READY), 'set');
  now = CAUGHT_UP_MS - 1;
  expect([releases.count('set'), releases.has('set')]).toEqual([1, true]);
  now = CAUGHT_UP_MS;
  expect([releases.count('set'), releases.has('set'), releases.total]).toEqual([0, false, 0]);
  // It was done after all, and is seen late.
  expect(releases.seen(out('a', 30, 3))).toBe('set');
  now = 90_000;
  expect(releases.count('set')).toBe(1);
});
