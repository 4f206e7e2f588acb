import { describe, expect, test } from 'vitest';
import { healCosts, originalStays } from '../../src/descheduler/heal-choice.ts';
import { type HealFacts, healStep, strandedStep } from '../../src/descheduler/heal-step.ts';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';
import { placedMember as member } from '../fixtures/placed-member.ts';

const COST = 'controller.kubernetes.io/pod-deletion-cost';
const OWN = 'spillway.dev/deletion-cost';
const pod = (conditions: Condition[], annotations: Record<string, string> = {}): Pod => ({
  metadata: { name: 'p', annotations },
  spec: { containers: [], nodeName: 'east' },
  status: { phase: 'Running', conditions },
});
const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
const is = (type: string, status: 'True' | 'False', second = 0): Condition => ({
  type,
  status,
  lastTransitionTime: at(second),
});
const READY = pod([is('Ready', 'True')]);
const NOT_READY = pod([is('Ready', 'False')]);

describe('a pod that waits for its member', () => {
  const OUT = { outOfService: new Map([['east', []]]) };
  test.each<[string, Pod, Partial<HealFacts>, string]>([
    ['that does not answer', READY, { member: member({ reachable: false }) }, 'lost'],
    ['of which it is not known whether it answers', READY, { member: member({ reachable: undefined }) }, 'lost'],
    [
      'of which not all is known yet',
      READY,
      { member: member({ unavailable: 'it is not ready', silent: 'it is not ready' }) },
      'lost',
    ],
    [
      'that answers, and takes no new pods',
      READY,
      { member: member({ unavailable: 'it takes no new pods' }) },
      'choose',
    ],
    ['that answers, and is being removed', NOT_READY, { member: member({ isLeaving: true }) }, 'replaced'],
    [
      'that is being removed and does not answer',
      READY,
      { member: member({ isLeaving: true, reachable: false }) },
      'lost',
    ],
    ['that has answered for a moment', READY, { answersForMs: 9_999 }, 'wait'],
    ['that answers', READY, {}, 'choose'],
    ['that answers, and is not Ready yet', NOT_READY, { answersForMs: 599_999 }, 'wait'],
    ['that answers, and did not get well in time', NOT_READY, { answersForMs: 600_000 }, 'notWell'],
    ['whose time is set', NOT_READY, { answersForMs: 20_000, gracePeriodSeconds: 20 }, 'notWell'],
    ['that did not run through', NOT_READY, { onHeal: 'LongestRunning', answersForMs: 30_000 }, 'notWell'],
    ['that may have run through', NOT_READY, { onHeal: 'LongestRunning', answersForMs: 29_999 }, 'wait'],
    ['that ran through', READY, { onHeal: 'LongestRunning' }, 'choose'],
    [
      'which the policy does not say any more',
      READY,
      { onHeal: 'KeepReplacement', keepsForMs: 15_000, member: member({ reachable: false }) },
      'replaced',
    ],
    [
      'which the policy has not said for a moment',
      READY,
      { onHeal: 'KeepReplacement', keepsForMs: 14_999, member: member({ reachable: false }) },
      'wait',
    ],
    [
      'which no policy has said for a moment',
      NOT_READY,
      { onHeal: 'KeepReplacement', keepsForMs: 59_999, hasRules: false, answersForMs: 600_000 },
      'wait',
    ],
    [
      'whose node is out of service, and of which no policy has said anything for a moment',
      READY,
      { onHeal: 'KeepReplacement', keepsForMs: 59_999, hasRules: false, member: member({ ...OUT }) },
      'wait',
    ],
    ['which no policy says any more', READY, { onHeal: 'KeepReplacement', hasRules: false }, 'replaced'],
    ['that is none any more', READY, { member: undefined }, 'replaced'],
    ['that is not found for a moment', READY, { member: undefined, goneForMs: 59_999 }, 'wait'],
    ['whose node is out of service', READY, { member: member({ reachable: false, ...OUT }) }, 'outOfService'],
    [
      'whose node is out of service, whatever the policy says',
      READY,
      { onHeal: 'KeepReplacement', member: member({ ...OUT }) },
      'outOfService',
    ],
  ])('%s', (_, one, more, wanted) => {
    const facts: HealFacts = {
      onHeal: 'KeepOriginal',
      keepsForMs: 60_000,
      hasRules: true,
      member: member(),
      goneForMs: 60_000,
      answersForMs: 10_000,
      gracePeriodSeconds: 600,
    };
    expect(healStep(one, { ...facts, ...more })).toBe(wanted);
  });
});

describe('a pod that was released from a member that answered', () => {
  const LOST = member({ reachable: false, mayBeLost: true, answers: false });
  const OUT = member({ reachable: false, mayBeLost: true, answers: false, outOfService: new Map([['east', []]]) });
  const on = (action: 'Hold' | 'ReplaceWhenFenced') => ({ onMemberLost: { action } });
  const NEVER = { cluster: { purgeMode: 'Never', gracePeriodSeconds: 600, onTimeout: 'GiveBack' } } as const;
  test.each<[string, Parameters<typeof strandedStep>, string | undefined]>([
    ['which answers', [NOT_READY, member(), undefined, true], undefined],
    ['which does not serve, and is not lost', [NOT_READY, member({ reachable: false }), undefined, true], undefined],
    ['of which nothing is known', [NOT_READY, undefined, undefined, true], undefined],
    ['which is lost', [NOT_READY, LOST, undefined, true], 'lost'],
    ['which is lost, and whose pods are not moved yet', [NOT_READY, LOST, undefined, false], undefined],
    ['which is lost, and its policy says Hold', [NOT_READY, LOST, on('Hold'), true], undefined],
    ['which is lost, and its policy waits for a word', [NOT_READY, LOST, on('ReplaceWhenFenced'), true], undefined],
    ['which is lost, and its policy says that all stay', [NOT_READY, LOST, NEVER, true], undefined],
    ['whose node is out of service', [NOT_READY, OUT, on('ReplaceWhenFenced'), false], 'outOfService'],
    ['whose node is out of service, and its policy says Hold', [NOT_READY, OUT, on('Hold'), true], undefined],
    ['whose node is out of service, and its policy says that all stay', [NOT_READY, OUT, NEVER, true], undefined],
  ])('%s', (_, of, wanted) => {
    expect(strandedStep(...of)).toBe(wanted);
  });
});

describe('which of the two stays', () => {
  const ran = (second: number, readySecond = second): Pod =>
    pod([is('ContainersReady', 'True', second), is('Ready', 'True', readySecond)]);
  test.each<[string, 'KeepOriginal' | 'LongestRunning', Pod, Pod | undefined, boolean]>([
    ['the original, as the policy says', 'KeepOriginal', ran(50), ran(20), true],
    ['the one that ran through', 'LongestRunning', ran(1), ran(20), true],
    ['the one that ran through, though it was out of reach meanwhile', 'LongestRunning', ran(1, 59), ran(20), true],
    ['the one that came, as the original started anew later', 'LongestRunning', ran(30), ran(20), false],
    ['the original, as it started anew before the other one was Ready', 'LongestRunning', ran(10), ran(20), true],
    ['the original, as the other one is not Ready', 'LongestRunning', ran(30), NOT_READY, true],
    ['the original, as there is no other one', 'LongestRunning', ran(30), undefined, true],
    [
      'the one that came, where nobody knows since when the original runs',
      'LongestRunning',
      pod([{ type: 'Ready', status: 'True' }]),
      ran(20),
      false,
    ],
    [
      'by what it says itself, where it does not tell of its containers',
      'LongestRunning',
      pod([is('Ready', 'True', 1)]),
      ran(20),
      true,
    ],
  ])('%s', (_, onHeal, original, replacement, stays) => {
    expect(originalStays(onHeal, original, replacement)).toBe(stays);
  });
});

describe('which of the two stays, whatever the clocks of their members say', () => {
  const HOUR_S = 3_600;
  const at = (second: number): string => new Date(Date.parse('2026-01-01T00:00:00Z') + second * 1_000).toISOString();
  /** Given its node, and started, at `bound`, and ready since then, by a member whose clock is so far ahead. */
  const ran = (bound: number, ready: number, aheadS = 0): Pod => {
    const since = (type: string, second: number): Condition => ({
      type,
      status: 'True',
      lastTransitionTime: at(second),
    });
    return {
      metadata: { name: 'web', creationTimestamp: at(bound - 1) },
      spec: { containers: [] },
      status: {
        startTime: at(bound + aheadS),
        conditions: [
          since('PodScheduled', bound),
          since('ContainersReady', ready + aheadS),
          since('Ready', ready + aheadS),
        ],
      },
    };
  };
  test.each<[string, Pod, Pod, boolean]>([
    ['the original that ran through, where its clock is ahead', ran(0, 5, HOUR_S), ran(100, 110), true],
    ['the original that ran through, where that of the other one is behind', ran(0, 5), ran(100, 110, -HOUR_S), true],
    [
      'the one that came, as the original started anew, where its clock is behind',
      ran(0, 200, -HOUR_S),
      ran(100, 110),
      false,
    ],
    ['the one that came, where its clock is ahead', ran(0, 200), ran(100, 110, HOUR_S), false],
  ])('%s', (_, original, replacement, stays) => {
    expect(originalStays('LongestRunning', original, replacement)).toBe(stays);
  });

  test('a start that is later than when it was ready, as a clock was put right meanwhile, counts as none', () => {
    const { status, ...rest } = ran(0, 5);
    const original = { ...rest, status: { ...status, startTime: at(HOUR_S) } };
    expect(originalStays('LongestRunning', original, ran(1, 2))).toBe(true);
  });
});

describe('costs by which its ReplicaSet ends the other one', () => {
  const own = (cost: string): Pod => pod([], { [COST]: cost, [OWN]: cost });
  const foreign = (cost: string): Pod => pod([], { [COST]: cost });
  const LOWEST = -2_147_483_648;
  test.each<[string, Pod, Pod | undefined, Pod[], ReturnType<typeof healCosts>]>([
    ['none yet', READY, READY, [READY, READY], { original: 1, replacement: LOWEST }],
    ['others of ours', own('-7'), own('5'), [own('3'), own('-2')], { original: 6, replacement: LOWEST }],
    ['it goes first as others are now', READY, own('-9'), [own('-2')], { original: 1, replacement: LOWEST }],
    ['it was made to before a crash', READY, own(String(LOWEST)), [READY], { original: 1, replacement: undefined }],
    ['nobody has to go', READY, undefined, [own('3')], { original: 4, replacement: undefined }],
    [
      'somebody else says when the other one goes',
      READY,
      foreign('9'),
      [READY],
      { original: 10, replacement: undefined },
    ],
    ['somebody else says when it goes', foreign('9'), READY, [], undefined],
    ['no number', READY, foreign('many'), [foreign('1.5')], { original: 1, replacement: undefined }],
    [
      'the ends',
      READY,
      READY,
      [foreign('2147483647'), foreign('-2147483648')],
      { original: 2_147_483_647, replacement: LOWEST },
    ],
  ])('%s', (_, original, replacement, others, wanted) => {
    expect(healCosts(original, replacement, others)).toEqual(wanted);
  });
});
