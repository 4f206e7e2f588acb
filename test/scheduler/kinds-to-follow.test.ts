import { expect, test } from 'vitest';
import { customKindKey, customKindOf } from '../../src/api/custom-kinds.ts';
import { type FollowCandidate, IDLE_MS, kindsToFollow, MOST_KINDS } from '../../src/scheduler/kinds-to-follow.ts';

const NOW = 10_000_000;

function some(count: number, prefix: string, more: Partial<FollowCandidate> = {}): FollowCandidate[] {
  return Array.from({ length: count }, (_, index) => ({
    key: `${prefix}${String(index).padStart(2, '0')}`,
    isForAll: false,
    ownsAt: NOW,
    wantedAt: NOW,
    isFollowed: false,
    ...more,
  }));
}

test.each<[string, FollowCandidate[], string[]]>([
  ['nothing', [], []],
  ['all there are', some(2, 'a'), ['a00', 'a01']],
  ['what was needed lately', some(1, 'a', { wantedAt: NOW - IDLE_MS + 1 }), ['a00']],
  ['not what nobody has needed for long', some(1, 'a', { wantedAt: NOW - IDLE_MS, isFollowed: true }), []],
  [
    'no more than so many, those that are followed first',
    [...some(3, 'a'), ...some(MOST_KINDS, 'f', { isFollowed: true })],
    some(MOST_KINDS, 'f').map(({ key }) => key),
  ],
  [
    'what a policy of the whole cluster chooses by before all others',
    [...some(MOST_KINDS, 'f', { isFollowed: true }), ...some(1, 'p', { isForAll: true, ownsAt: -Infinity })],
    ['p00', ...some(MOST_KINDS - 1, 'f').map(({ key }) => key)],
  ],
  [
    'what owns anything, or did lately, before what only policies of namespaces choose by',
    [
      ...some(MOST_KINDS, 'n', { ownsAt: NOW - IDLE_MS, isFollowed: true }),
      ...some(1, 'o'),
      ...some(1, 'p', { ownsAt: NOW - IDLE_MS + 1 }),
    ],
    ['o00', 'p00', ...some(MOST_KINDS - 2, 'n').map(({ key }) => key)],
  ],
  [
    'what is needed now before what was',
    [...some(MOST_KINDS, 'f', { isFollowed: true, wantedAt: NOW - 1 }), ...some(1, 'n')],
    ['n00', ...some(MOST_KINDS - 1, 'f').map(({ key }) => key)],
  ],
])('%s', (_, candidates, expected) => {
  expect([...kindsToFollow(candidates, NOW)]).toEqual(expected);
});

test.each([
  ['argoproj.io/v1alpha1', 'Rollout', 'argoproj.io/v1alpha1 Rollout'],
  ['sparkoperator.k8s.io/v1beta2', 'SparkApplication', 'sparkoperator.k8s.io/v1beta2 SparkApplication'],
  ['leaderworkerset.x-k8s.io/v1', 'LeaderWorkerSet', 'leaderworkerset.x-k8s.io/v1 LeaderWorkerSet'],
  ['apps.kruise.io/v1alpha1', 'CloneSet', 'apps.kruise.io/v1alpha1 CloneSet'],
  ['apps/v1', 'Deployment', undefined],
  ['v1', 'Node', undefined],
  ['/v1', 'Node', undefined],
  ['a b/v1', 'C', 'a b/v1 C'],
  ['a/v1', 'B C', undefined],
])('of %s %s the key is %s', (apiVersion, kind, key) => {
  expect(customKindKey({ apiVersion, kind })).toBe(key);
  if (key !== undefined) expect(customKindOf(key)).toEqual({ apiVersion, kind });
});
