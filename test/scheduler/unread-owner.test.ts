import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { OwnerChain, TypedObject } from '../../src/placement/owner-chain.ts';
import { whyRulesNotYet, whyRulesUnknown } from '../../src/scheduler/unread-owner.ts';

const pod: Pod = { metadata: { name: 'web-1', namespace: 'shop' }, spec: { containers: [] } };
const owner: TypedObject = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', metadata: { name: 'web' } };

type View = Parameters<typeof whyRulesUnknown>[1];

/** With a policy that chooses such owners by their labels, or none. */
function why(o: { owner?: TypedObject; isKnown?: boolean; isWanted?: boolean; unread?: string }): string | undefined {
  const typed = { ...pod, apiVersion: 'v1', kind: 'Pod' };
  const chain: OwnerChain = o.owner === undefined ? [typed] : [typed, o.owner];
  const policy = { kind: 'PlacementPolicy', metadata: { name: 'front' } };
  const view = {
    owners: {
      isKnown: () => o.isKnown ?? true,
      chainOf: () => chain,
      whyUnread: () => o.unread,
      holds: () => false,
    },
    policies: { wantingLabelsOf: () => (o.isWanted === true ? { policy } : undefined) },
  } as unknown as View;
  return whyRulesUnknown(pod, view);
}

test.each([
  ['a pod of its own', {}, undefined],
  [
    'an owner that is not there yet',
    { owner, isKnown: false },
    'not all of its owners are known yet, so neither are its rules',
  ],
  ['labels that no policy asks for', { owner, unread: 'it may not' }, undefined],
  ['labels that are read', { owner, isWanted: true }, undefined],
  [
    'labels that a policy asks for, and that may not be read',
    { owner, isWanted: true, unread: 'it may not' },
    'it is not known whether PlacementPolicy front is meant for it, which chooses by labels, as those of its owner Rollout web cannot be read (it may not)',
  ],
])('whose rules are not known: %s', (_, facts, words) => {
  expect(why(facts)).toBe(words);
});

interface Holding {
  readonly holds: boolean;
  readonly isRead?: boolean;
  readonly wants?: 'labels' | 'above';
}

describe('a pod waits for its rules', () => {
  /** `labels`: a policy chooses such owners by theirs; `above`: one chooses by another kind, which may own them. */
  const waits = (o: Holding): string | undefined => whyRulesNotYet(pod, held(o));
  const held = (o: Holding): View => {
    const chain: OwnerChain = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }, owner];
    const policy = { policy: { kind: 'PlacementPolicy', metadata: { name: 'front' } } };
    return {
      owners: {
        isKnown: () => true,
        chainOf: () => chain,
        whyUnread: () => 'no answer',
        holds: () => o.holds,
        isRead: () => o.isRead ?? false,
      },
      policies: {
        wantingLabelsOf: () => (o.wants === 'labels' ? policy : undefined),
        mayChooseAbove: () => (o.wants === 'above' ? policy : undefined),
      },
    } as unknown as View;
  };
  const WORDS =
    'it is not known whether PlacementPolicy front is meant for it, as its owner Rollout web cannot be read now, which it waits for (no answer)';

  test.each([
    ['its owner cannot be read, and a policy chooses by its labels', { holds: true, wants: 'labels' }, WORDS],
    ['its owner cannot be read, and a policy chooses by what may own that', { holds: true, wants: 'above' }, WORDS],
    ['not where no policy would choose it', { holds: true }, undefined],
    ['not where its owner was read before', { holds: true, isRead: true, wants: 'labels' }, undefined],
    ['not where a right is missing', { holds: false, wants: 'labels' }, undefined],
  ] as const)('%s', (_, facts, words) => {
    expect(waits(facts)).toBe(words);
  });

  test.each(['labels', 'above'] as const)('and is not moved meanwhile, by a policy that wants %s', (wants) => {
    expect(whyRulesUnknown(pod, held({ holds: true, wants }))).toBe(WORDS);
  });
});
