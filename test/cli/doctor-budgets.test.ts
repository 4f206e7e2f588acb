import { describe, expect, it, test } from 'vitest';
import type { PlacementPolicy } from '../../src/api/placement-policy.ts';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import { budgetsLetMove, withNoneToSpare } from '../../src/cli/doctor/budget-checks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { PodDisruptionBudget } from '../../src/kube/policy-v1.ts';

interface Rule {
  spec?: Partial<PodDisruptionBudget['spec']>;
  desired?: number;
  expected?: number;
  observed?: number;
}
const budget = ({
  spec = { maxUnavailable: 0 },
  desired = 3,
  expected = 3,
  observed = 2,
}: Rule): PodDisruptionBudget => ({
  metadata: { name: 'web', namespace: 'shop', generation: 2 },
  spec,
  status: { observedGeneration: observed, desiredHealthy: desired, expectedPods: expected, disruptionsAllowed: 0 },
});

describe('a budget', () => {
  test.each<[what: string, rule: Rule, none: boolean]>([
    ['of maxUnavailable: 0', {}, true],
    ['that asks for more than there are', { spec: { minAvailable: 4 }, desired: 4 }, true],
    ['of minAvailable: 100%', { spec: { minAvailable: '100%' } }, true],
    ['that can spare one', { spec: { minAvailable: 2 }, desired: 2 }, false],
    ['of a workload of no pods', { desired: 0, expected: 0 }, false],
    ['that its controller has not seen as it is', { observed: 1 }, false],
  ])('%s has none to spare: %s', (_what, rule, none) => {
    expect(withNoneToSpare([budget(rule)])).toHaveLength(none ? 1 : 0);
  });

  it('that nobody has counted is not judged', () => {
    const { status: _, ...fresh } = budget({});
    expect(withNoneToSpare([fresh])).toEqual([]);
  });
});

const owned = (kind: string, name: string, nodeName: string | undefined, labels = {}): Pod => ({
  metadata: {
    name: `${name}-0`,
    namespace: 'shop',
    labels,
    ownerReferences: kind === '' ? [] : [{ apiVersion: 'apps/v1', kind, name, uid: 'u', controller: true }],
  },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
});
const ofDeployment = (nodeName: string | undefined): Pod =>
  owned('ReplicaSet', 'web-5d9', nodeName, { 'pod-template-hash': '5d9' });
const ofStatefulSet = (nodeName: string | undefined): Pod => owned('StatefulSet', 'db', nodeName);
const policy = (failover: object | undefined, namespace: string | undefined = 'shop') =>
  ({
    metadata: { name: 'mine', ...(namespace === '' ? {} : { namespace }) },
    spec: failover === undefined ? {} : { failover },
  }) as unknown as PlacementPolicy;
const placed = (kind: string, name: string, by: string, namespace = 'shop') =>
  ({
    metadata: { name: 'p', namespace },
    spec: { workload: { apiVersion: 'apps/v1', kind, name, uid: 'u' } },
    status: { policy: { kind: by, name: 'mine', generation: 1 } },
  }) as unknown as WorkloadPlacement;
const DIRECTLY = { cluster: { purgeMode: 'Directly' } };
const NEVER = { cluster: { purgeMode: 'Never' } };
const FAILOVER = { repatriate: { after: '1m' } };

function said(
  rule: Rule,
  pods: readonly Pod[],
  more: { placements?: WorkloadPlacement[]; policies?: PlacementPolicy[] } = {},
): string[] {
  const facts = { virtualNodes: new Set(['east']), placements: more.placements ?? [], policies: more.policies ?? [] };
  return budgetsLetMove({ stuck: [{ budget: budget(rule), pods }], ...facts })
    .filter(({ verdict }) => verdict !== 'ok')
    .map(({ verdict, says, fix = '' }) => `${verdict}: ${says} | ${fix}`);
}
const NO_WAY =
  /^warning: PodDisruptionBudget shop\/web \(.*\) can spare no pod: pods of (\S+) are never moved .* \| kubectl patch poddisruptionbudget web -n shop --type=merge -p '\{"spec":\{"minAvailable":null,"maxUnavailable":1\}\}'/;
const WHEN_LOST =
  /^warning: .* can spare no pod: pods of (\S+) leave a member that answers.*lost none is moved \| kubectl patch .*"unhealthyPodEvictionPolicy":"AlwaysAllow"/;
const decided = placed('Deployment', 'web', 'PlacementPolicy');

describe('a workload whose budget has none to spare', () => {
  test.each<
    [
      what: string,
      pods: Pod[],
      words: RegExp | undefined,
      more?: { rule?: Rule; placements?: WorkloadPlacement[]; policies?: PlacementPolicy[] },
    ]
  >([
    ['a StatefulSet in a member', [ofStatefulSet('east')], NO_WAY],
    ['a StatefulSet of the host that no policy moves', [ofStatefulSet('real')], undefined],
    ['pods of nobody', [owned('', 'a', 'east')], undefined],
    ['a DaemonSet', [owned('DaemonSet', 'a', 'east')], undefined],
    ['a ReplicaSet without a Deployment', [owned('ReplicaSet', 'web', 'east')], NO_WAY],
    ['a Deployment in a member: another one is Ready first', [ofDeployment('east')], WHEN_LOST],
    ['one of whose pods only one is there', [ofDeployment('real'), ofDeployment('east')], WHEN_LOST],
    [
      'one whose pods that are not Ready may go',
      [ofDeployment('east')],
      undefined,
      { rule: { spec: { maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' } } },
    ],
    [
      'one that has not even one more than it asks for',
      [ofDeployment('east')],
      NO_WAY,
      { rule: { spec: { minAvailable: 4 }, desired: 4 } },
    ],
    [
      'one of twenty, of which two more are made at a time',
      [ofDeployment('east')],
      WHEN_LOST,
      { rule: { spec: { minAvailable: 21 }, desired: 21, expected: 20 } },
    ],
    [
      'one whose policy has its pods go directly',
      [ofDeployment('east')],
      NO_WAY,
      { placements: [decided], policies: [policy(DIRECTLY)] },
    ],
    [
      'one whose pods wait for their lost member, and another is made meanwhile',
      [ofDeployment('east')],
      undefined,
      { placements: [decided], policies: [policy({ onMemberLost: { onHeal: 'KeepOriginal' } })] },
    ],
    [
      'one whose policy moves nothing',
      [ofDeployment('east')],
      undefined,
      { placements: [decided], policies: [policy(NEVER)] },
    ],
    [
      'one of the host that a policy would move',
      [ofDeployment('real')],
      WHEN_LOST,
      { placements: [decided], policies: [policy(FAILOVER)] },
    ],
    [
      'one that has no node yet, by a policy of the cluster',
      [ofDeployment(undefined)],
      WHEN_LOST,
      { placements: [placed('Deployment', 'web', 'ClusterPlacementPolicy')], policies: [policy(FAILOVER, '')] },
    ],
    [
      'one of the host whose policy has no failover',
      [ofDeployment('real')],
      undefined,
      { placements: [decided], policies: [policy(undefined)] },
    ],
    [
      'one of the host, and a policy of its name for another namespace',
      [ofDeployment('real')],
      undefined,
      { placements: [decided], policies: [policy(FAILOVER, 'bank')] },
    ],
    [
      'one of the host, and another of its name in another namespace',
      [ofDeployment('real')],
      undefined,
      { placements: [placed('Deployment', 'web', 'PlacementPolicy', 'bank')], policies: [policy(FAILOVER)] },
    ],
    [
      'one of the host that bursts by its namespace',
      [ofDeployment('real')],
      undefined,
      { placements: [placed('Deployment', 'web', 'Namespace')], policies: [policy(FAILOVER)] },
    ],
  ])('%s', (_what, pods, words, { rule = {}, ...more } = {}) => {
    const all = said(rule, pods, more);
    if (words === undefined) expect(all).toEqual([]);
    else expect(all).toEqual([expect.stringMatching(words)]);
  });

  it('is named, with what the budget says', () => {
    expect(said({}, [ofStatefulSet('east'), ofDeployment('east')])[0]).toContain(
      'PodDisruptionBudget shop/web (maxUnavailable: 0, of 3) can spare no pod: pods of StatefulSet/db are never moved',
    );
    expect(said({ spec: { minAvailable: '100%' } }, [ofDeployment('east')])[0]).toContain(
      '(minAvailable: 100%, of 3) can spare no pod: pods of Deployment/web leave',
    );
  });

  it('is not there, and that is well', () => {
    expect(budgetsLetMove({ stuck: [], virtualNodes: new Set(), placements: [], policies: [] })).toMatchObject([
      { check: 'budgets', verdict: 'ok' },
    ]);
  });
});
