import { describe, expect, it, test } from 'vitest';
import { type ClusterTaintPolicy, parseClusterTaintPolicy } from '../../src/api/cluster-taint-policy.ts';
import { clusterTaintsOf, type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import { policyTaints } from '../../src/placement/policy-taints.ts';
import { taintPolicyStatus } from '../../src/placement/taint-policy-status.ts';
import { GOOD_TAINT_POLICY, WRONG_TAINT_POLICIES } from './wrong-taint-policies.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const TAINT = { key: 'example.com/not-ready', effect: 'NoExecute' } as const;

function taintPolicy(name: string, spec: object = {}, metadata: object = {}): ClusterTaintPolicy {
  const found = parseClusterTaintPolicy({
    metadata: { name, ...metadata },
    spec: { ...GOOD_TAINT_POLICY, ...spec },
  } as never);
  if (!('policy' in found)) throw new Error(found.problems.join());
  return found.policy;
}

/** `conditions`: status, and for how many seconds it has been so. */
function member(
  conditions: Record<string, readonly [status: string, forSeconds: number]>,
  more: { taints?: object[]; spec?: object } = {},
): MemberCluster {
  const all = Object.entries(conditions).map(([type, [status, forSeconds]]) => ({
    type,
    status,
    reason: 'Test',
    message: '',
    lastTransitionTime: new Date(NOW - forSeconds * 1_000).toISOString(),
  }));
  const found = parseMemberCluster({
    metadata: { name: 'east' },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } }, ...more.spec },
    status: { conditions: all, ...(more.taints === undefined ? {} : { taints: more.taints }) },
  } as never);
  if (!('member' in found)) throw new Error(found.problems.join());
  return found.member;
}

const put = (policy: string, more: object = {}): object => ({
  ...TAINT,
  policy,
  timeAdded: '2026-01-01T00:00:00Z',
  ...more,
});
const keys = (
  of: MemberCluster,
  policies: readonly ClusterTaintPolicy[],
  unreadable: readonly string[] = [],
): string[] =>
  policyTaints(
    of,
    policies,
    new Set(
      ['a', 'p', 'z'].filter(
        (name) => !unreadable.includes(name) && !policies.some(({ metadata }) => metadata.name === name),
      ),
    ),
    NOW,
    ({ lastTransitionTime = '' }) => NOW - Date.parse(lastTransitionTime),
  ).map(({ key, value, effect, policy, timeAdded }) =>
    [
      `${policy} ${key}${value === undefined ? '' : `=${value}`}:${effect}`,
      timeAdded === '2026-01-01T00:10:00Z' ? 'now' : 'before',
    ].join(' '),
  );
const ADDED = 'p example.com/not-ready:NoExecute now';
const KEPT = 'p example.com/not-ready:NoExecute before';

describe('taints by policies', () => {
  const down = { Ready: ['False', 60] } as const;
  const up = { Ready: ['True', 5] } as const;
  const never = { removeOnConditions: [] };
  test.each<[what: string, of: MemberCluster, policy: ClusterTaintPolicy | undefined, taints: string[]]>([
    ['its conditions hold for long enough', member(down), taintPolicy('p'), [ADDED]],
    ['not for long enough', member({ Ready: ['False', 59] }), taintPolicy('p'), []],
    ['of a status that is not known, with NotIn', member({ Ready: ['Unknown', 60] }), taintPolicy('p'), [ADDED]],
    ['of a condition that is not there', member({}), taintPolicy('p'), []],
    [
      'all of several',
      member({ ...down, Fast: ['False', 60] }),
      taintPolicy('p', {
        addOnConditions: [
          ...GOOD_TAINT_POLICY.addOnConditions,
          { conditionType: 'Fast', operator: 'In', statusValues: ['False'] },
        ],
      }),
      [ADDED],
    ],
    [
      'one of several not',
      member({ ...down, Fast: ['True', 60] }),
      taintPolicy('p', {
        addOnConditions: [
          ...GOOD_TAINT_POLICY.addOnConditions,
          { conditionType: 'Fast', operator: 'In', statusValues: ['False'] },
        ],
      }),
      [],
    ],
    [
      'one of several not for long enough',
      member({ ...down, Fast: ['False', 1] }),
      taintPolicy('p', {
        addOnConditions: [
          ...GOOD_TAINT_POLICY.addOnConditions,
          { conditionType: 'Fast', operator: 'In', statusValues: ['False'] },
        ],
      }),
      [],
    ],
    ['another member', member(down), taintPolicy('p', { targetClusters: { clusterNames: ['west'] } }), []],
    ['every member', member(down), taintPolicy('p', { targetClusters: {} }), [ADDED]],
    ['nothing says that it is added', member(down), taintPolicy('p', { addOnConditions: [] }), []],
    ['it is there already', member(down, { taints: [put('p')] }), taintPolicy('p'), [KEPT]],
    [
      'neither to be added nor removed',
      member({ Ready: ['Unknown', 5] }, { taints: [put('p')] }),
      taintPolicy('p'),
      [KEPT],
    ],
    ['its conditions to remove hold', member(up, { taints: [put('p')] }), taintPolicy('p'), []],
    [
      'not for long enough to be removed',
      member(up, { taints: [put('p')] }),
      taintPolicy('p', { removeAfterSeconds: 6 }),
      [KEPT],
    ],
    ['nothing says that it is removed', member(up, { taints: [put('p')] }), taintPolicy('p', never), [KEPT]],
    ['both hold', member(down), taintPolicy('p', { removeOnConditions: GOOD_TAINT_POLICY.addOnConditions }), []],
    [
      'both hold, and not for long enough to be removed: none comes',
      member(down),
      taintPolicy('p', { removeOnConditions: GOOD_TAINT_POLICY.addOnConditions, removeAfterSeconds: 61 }),
      [],
    ],
    [
      'both hold, and not for long enough to be removed: it stays',
      member(down, { taints: [put('p')] }),
      taintPolicy('p', { removeOnConditions: GOOD_TAINT_POLICY.addOnConditions, removeAfterSeconds: 61 }),
      [KEPT],
    ],
    ['the policy is gone', member(down, { taints: [put('p')] }), undefined, []],
    [
      'the policy names another taint now',
      member(down, { taints: [put('p')] }),
      taintPolicy('p', { taints: [{ ...TAINT, effect: 'NoSchedule' }] }),
      ['p example.com/not-ready:NoSchedule now'],
    ],
    [
      'the policy gives it a value now',
      member(down, { taints: [put('p')] }),
      taintPolicy('p', { taints: [{ ...TAINT, value: 'x' }] }),
      ['p example.com/not-ready=x:NoExecute before'],
    ],
    [
      'the policy is for others now',
      member(down, { taints: [put('p')] }),
      taintPolicy('p', { targetClusters: { exclude: ['east'] } }),
      [],
    ],
  ])('%s', (_, of, policy, taints) => {
    expect(keys(of, policy === undefined ? [] : [policy])).toEqual(taints);
  });

  it('stay while their policy cannot be read', () => {
    expect(keys(member(up, { taints: [put('p')] }), [], ['p'])).toEqual([KEPT]);
  });

  it('are of the oldest policy where several say the same, and of the next when that goes', () => {
    const old = taintPolicy('z', {}, { creationTimestamp: '2025-01-01T00:00:00Z' });
    const young = taintPolicy('a', {}, { creationTimestamp: '2026-01-01T00:00:00Z' });
    expect(keys(member(down), [young, old])).toEqual(['z example.com/not-ready:NoExecute now']);
    // Also where the younger one was there before.
    expect(keys(member(down, { taints: [put('a')] }), [young, old])).toEqual([
      'z example.com/not-ready:NoExecute before',
    ]);
    expect(keys(member(down, { taints: [put('z')] }), [young])).toEqual(['a example.com/not-ready:NoExecute now']);
  });

  it('count beside those of people, which come first', () => {
    const spec = { clusterTaints: [{ ...TAINT, value: 'by-hand' }] };
    expect(clusterTaintsOf(member(down, { spec, taints: [put('p'), put('p', { key: 'other' })] }))).toEqual([
      { ...TAINT, value: 'by-hand' },
      { key: 'other', effect: 'NoExecute', policy: 'p' },
    ]);
  });
});

describe('the status of a policy', () => {
  const says = (policy: ClusterTaintPolicy, members: readonly MemberCluster[]): (string | undefined)[] =>
    (
      taintPolicyStatus({ ...policy, policy, problems: [], status: undefined, taintedClusters: [], members, now: NOW })
        .conditions ?? []
    ).map(({ type, status, message }) => `${type} ${status} ${message}`);
  const fleet = [member({ Ready: ['True', 1] })];

  test.each([
    ['no contradictions were found', {}],
    ['spec.targetClusters: there is no member west', { targetClusters: { clusterNames: ['west'] } }],
    [
      "spec.targetClusters: the host's own nodes get no taints by policies",
      { targetClusters: { clusterNames: ['local'] } },
    ],
    ['spec.targetClusters: chooses none of the members there are', { targetClusters: { exclude: ['east'] } }],
    [
      'no member that it is for has a condition Redy',
      { addOnConditions: [{ conditionType: 'Redy', operator: 'In', statusValues: ['False'] }] },
    ],
  ])('says: %s', (words, spec) => {
    expect(says(taintPolicy('p', spec), fleet)[1]).toContain(words);
  });
});

it.each(WRONG_TAINT_POLICIES.filter(({ what }) => what !== 'no conditions' && !what.startsWith('two')))(
  'a policy with $what cannot be read',
  ({ wrong }) => {
    const spec = { ...GOOD_TAINT_POLICY, ...wrong };
    expect(parseClusterTaintPolicy({ metadata: { name: 'p' }, spec } as never)).toHaveProperty('problems');
  },
);
