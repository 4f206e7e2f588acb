import { expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { bareOwner, whyBare } from '../../src/scheduler/bare-owner.ts';
import { whenRulesKnown, whyRulesNotYet, whyRulesUnknown } from '../../src/scheduler/unread-owner.ts';

const pod: Pod = { metadata: { name: 'web-1', namespace: 'shop' }, spec: { containers: [] } };
const metadata = { name: 'web', namespace: 'shop', uid: 'uid-web', labels: { tier: 'front' } };
const owner: TypedObject = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', metadata };

type View = Parameters<typeof whyRulesUnknown>[1];

/** `wants`: a policy chooses Rollouts by their labels, or by another kind, which may own them. All of the kind is read otherwise. */
function view(last: TypedObject, wants?: 'labels' | 'above'): View {
  const policy = { policy: { kind: 'PlacementPolicy', metadata: { name: 'front' } } };
  return {
    owners: {
      isKnown: () => true,
      whenKnown: async () => await Promise.resolve(undefined),
      chainOf: () => [{ ...pod, apiVersion: 'v1', kind: 'Pod' }, last],
      whyUnread: () => undefined,
      holds: () => false,
      isRead: () => whyBare(last) === undefined,
    },
    policies: {
      wantingLabelsOf: () => (wants === 'labels' ? policy : undefined),
      mayChooseAbove: () => (wants === 'above' ? policy : undefined),
    },
  } as unknown as View;
}

test.each(['labels', 'above'] as const)('a pod of one waits while a policy wants %s', async (wants) => {
  const words =
    'it is not known whether PlacementPolicy front is meant for it, as its owner Rollout web cannot be read now, which it waits for (no room)';
  const bare = view(bareOwner(owner, 'no room'), wants);
  expect([whyRulesNotYet(pod, bare), await whenRulesKnown(pod, bare)]).toEqual([words, words]);
  expect(whyRulesNotYet(pod, view(owner, wants))).toBeUndefined();
});

test('a pod of one waits for nothing where no policy would choose by that', () => {
  expect(whyRulesNotYet(pod, view(bareOwner(owner, 'no room')))).toBeUndefined();
});

test('a pod of one is not moved by rules that nobody knows', () => {
  expect(whyRulesUnknown(pod, view(bareOwner(owner, 'no room'), 'labels'))).toMatch(/cannot be read .*\(no room\)/);
});
