import { describe, expect, it } from 'vitest';
import { mayChooseAbove } from '../../src/placement/labels-wanted.ts';
import { policyStatus } from '../../src/placement/policy-conditions.ts';
import { compilePolicy } from '../../src/placement/policy-selection.ts';
import { policyWarnings, selectorWarnings } from '../../src/placement/policy-warnings.ts';
import { cluster } from './fleet.ts';
import { policy } from './policies.ts';

const clusters = [cluster('local'), cluster('east', { region: 'eu' }), cluster('west', { region: 'us' })];
const warnings = (placement: object): string[] => policyWarnings(policy('p', { placement }), clusters);
const place = 'spec.placement';
const AGGREGATED = { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } };
const BY_ROOM = { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } };
const PREFERENCES = { replicaScheduling: { clusterPreferences: { clusters: { '*': {} } } } };

describe('contradictions', () => {
  it('are none in an empty policy, nor in a good one', () => {
    expect(warnings({})).toEqual([]);
    expect(
      warnings({
        clusterAffinity: {
          clusterNames: ['local'],
          overflowAffinities: [{ clusterNames: ['east'] }, { clusterNames: ['east', 'west'] }],
        },
        spreadConstraints: [{ minGroups: 3 }],
        replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
      }),
    ).toEqual([]);
  });

  it('are selectors for kinds of Kubernetes that make no pods, as one with a typing error', () => {
    const resourceSelectors = [
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      { apiVersion: 'apps/v1', kind: 'Deploymnet', name: 'web' },
      { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' },
    ];
    expect(policyWarnings(policy('p', { resourceSelectors }), clusters)).toEqual([
      expect.stringMatching(/^spec\.resourceSelectors\[1\]\.kind: nothing is chosen by Deploymnet \(apps\/v1\); /),
    ]);
  });

  it.each<[string, object, object, boolean]>([
    ['repatriate', {}, {}, true],
    ['repatriate', { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{}] } }, {}, false],
    ['repatriate', { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{}] } }, AGGREGATED, true],
    [
      'repatriate',
      { clusterAffinity: { clusterNames: ['local'], tryNextAfter: '1m', overflowAffinities: [{}] } },
      AGGREGATED,
      false,
    ],
    [
      'repatriate',
      { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ tryNextAfter: '1m' }] } },
      AGGREGATED,
      true,
    ],
    ['spreadViolation', {}, {}, true],
    ['spreadViolation', {}, { spreadConstraints: [{ minGroups: 2 }] }, false],
    ['divisionDrift', {}, {}, true],
    ['divisionDrift', {}, { replicaScheduling: {} }, false],
    ['divisionDrift', { clusterAffinity: { max: '50%' } }, {}, false],
    ['divisionDrift', { clusterAffinity: { max: 3 } }, AGGREGATED, false],
    [
      'divisionDrift',
      { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east'], max: 0 }] } },
      {},
      false,
    ],
    ['divisionDrift', { clusterAffinities: [{ affinityName: 'a' }, { affinityName: 'b', max: 2 }] }, BY_ROOM, false],
    ['divisionDrift', { clusterAffinities: [{ affinityName: 'a' }, { affinityName: 'b' }] }, {}, true],
    [
      'divisionDrift',
      {},
      { replicaScheduling: { clusterPreferences: { clusters: { '*': {} }, rebalance: true } } },
      false,
    ],
  ])('failover.%s can do nothing with %j and %j: %s', (field, affinity, division, isVain) => {
    const own = { placement: { ...affinity, ...division }, failover: { [field]: { after: '5m' } } };
    const found = policyWarnings(policy('p', own), clusters).filter((one) => one.startsWith('spec.failover'));
    expect(found).toEqual(isVain ? [expect.stringContaining(`spec.failover.${field}: moves nothing`)] : []);
  });

  it.each([[AGGREGATED], [BY_ROOM], [PREFERENCES]])(
    'failover.divisionDrift with %j is said to move only pods beyond the plan',
    (placement) => {
      const found = policyWarnings(policy('p', { placement, failover: { divisionDrift: { after: '5m' } } }), clusters);
      const words = 'spec.failover.divisionDrift: moves only pods beyond the shares that are planned';
      expect(found).toEqual([expect.stringContaining(words)]);
    },
  );

  it.each<[object, object, string, string | undefined]>([
    [{ onHeal: 'KeepOriginal' }, {}, 'Deployment', undefined],
    [{ onHeal: 'LongestRunning', action: 'Replace' }, {}, 'Pod', undefined],
    [{ onHeal: 'KeepReplacement', action: 'Hold' }, {}, 'StatefulSet', undefined],
    [{ onHeal: 'KeepOriginal', action: 'Hold' }, {}, 'Deployment', 'with action: Hold no pod is replaced'],
    [
      { onHeal: 'KeepOriginal', action: 'ReplaceWhenFenced' },
      {},
      'Deployment',
      'with action: ReplaceWhenFenced no pod',
    ],
    [{ onHeal: 'KeepOriginal' }, { purgeMode: 'Directly' }, 'Deployment', 'it is for purgeMode: Gracefully'],
    [{ onHeal: 'LongestRunning' }, {}, 'StatefulSet', 'it is for pods of Deployments'],
  ])('failover.onMemberLost %j with cluster %j for a %s: %s', (onMemberLost, cluster, kind, why) => {
    const apiVersion = kind === 'Pod' ? 'v1' : 'apps/v1';
    const own = { resourceSelectors: [{ apiVersion, kind }], failover: { onMemberLost, cluster } };
    const found = policyWarnings(policy('p', own), clusters).filter((one) => one.startsWith('spec.failover'));
    const words = `spec.failover.onMemberLost.onHeal: chooses nothing: ${why ?? ''}`;
    expect(found).toEqual(why === undefined ? [] : [expect.stringContaining(words)]);
  });

  const tiers = { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east'] }] } };
  const one = { clusterAffinity: { clusterNames: ['east'] } };
  const only = (kinds: string): string => `resourceSelectors choose only ${kinds}, whose pods are not moved for that`;
  it.each<[object, object, string[], string[]]>([
    // What a policy asks for, all of it.
    [
      {
        onMemberLost: { after: '1m', action: 'Replace', onHeal: 'KeepOriginal' },
        onUnschedulable: { after: '1m' },
        application: {},
        repatriate: { after: '1m' },
        activation: 'Eager',
        cluster: { gracePeriodSeconds: 60, onTimeout: 'Evict' },
      },
      tiers,
      ['Deployment'],
      [],
    ],
    [{ onMemberLost: { action: 'Hold' }, cluster: { purgeMode: 'Never' } }, one, ['Deployment'], []],
    [{ activation: 'Lazy', onMemberLost: { action: 'ReplaceWhenFenced' } }, {}, ['StatefulSet'], []],
    [
      { repatriate: { after: '1m' }, activation: 'Eager', application: {}, cluster: { purgeMode: 'Never' } },
      tiers,
      ['Deployment'],
      ['repatriate', 'activation', 'application'].map(
        (field) => `${field}: moves nothing: spec.failover.cluster.purgeMode is Never`,
      ),
    ],
    [
      { onMemberLost: { after: '1m' }, cluster: { purgeMode: 'Never' } },
      tiers,
      ['Deployment'],
      ['onMemberLost.after: replaces nothing: spec.failover.cluster.purgeMode is Never'],
    ],
    [
      { onMemberLost: { action: 'Replace' }, onUnschedulable: { after: '1m' } },
      one,
      ['Deployment'],
      [
        'onUnschedulable: moves only pods that are not in member east, the one cluster that the placement chooses',
        'onMemberLost.action: replaces only pods that are not in member east, the one cluster that the placement chooses',
      ],
    ],
    [{ onUnschedulable: { after: '1m' } }, one, ['Job'], [`onUnschedulable: moves nothing: ${only('Jobs')}`]],
    [
      { onMemberLost: { after: '1m' }, cluster: { purgeMode: 'Never' } },
      one,
      ['Deployment'],
      ['onMemberLost.after: replaces nothing: spec.failover.cluster.purgeMode is Never'],
    ],
    [
      { onMemberLost: { after: '1m', action: 'Hold' } },
      tiers,
      ['Deployment'],
      ['onMemberLost.after: has no effect: with action: Hold it is not waited for a time'],
    ],
    [
      { onMemberLost: { after: '1m', action: 'Replace' } },
      tiers,
      ['StatefulSet'],
      [`onMemberLost.action: replaces nothing: ${only('StatefulSets')}`],
    ],
    // Jobs are replaced where a policy says so, and else not.
    [
      { onMemberLost: { after: '1m' } },
      tiers,
      ['Job', 'StatefulSet'],
      [`onMemberLost.after: replaces nothing: ${only('Jobs and StatefulSets')}`],
    ],
    [{ onMemberLost: { after: '1m', action: 'Replace' } }, tiers, ['Job', 'StatefulSet'], []],
    [{ onMemberLost: { after: '1m' } }, tiers, ['Deployment', 'StatefulSet'], []],
    [
      { repatriate: { after: '1m' }, activation: 'Eager', application: {}, onUnschedulable: { after: '1m' } },
      tiers,
      ['Job'],
      ['repatriate', 'activation', 'application', 'onUnschedulable'].map(
        (field) => `${field}: moves nothing: ${only('Jobs')}`,
      ),
    ],
    [
      { activation: 'Eager' },
      {},
      ['Deployment'],
      ['activation: moves nothing: the placement chooses every cluster and divides nothing'],
    ],
    [
      { cluster: { purgeMode: 'Directly', gracePeriodSeconds: 60, onTimeout: 'Evict' } },
      {},
      ['Deployment'],
      ['gracePeriodSeconds', 'onTimeout'].map(
        (field) => `cluster.${field}: has no effect: it is for purgeMode: Gracefully, and not for Directly`,
      ),
    ],
  ])('failover %j with %j for %j can do nothing with %j', (failover, placement, kinds, vain) => {
    const selectors = kinds.map((kind) => ({ apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1', kind }));
    const found = policyWarnings(policy('p', { resourceSelectors: selectors, placement, failover }), clusters);
    expect(found).toEqual(vain.map((warning) => `spec.failover.${warning}`));
  });

  it.each([
    [{}, false],
    [{ clusterAffinity: { clusterNames: ['local', 'east'] } }, false],
    [{ clusterAffinity: { clusterNames: ['east'] } }, true],
  ])('failover.application can do next to nothing with %j: %s', (placement, isVain) => {
    const own = { placement, failover: { application: {} } };
    const found = policyWarnings(policy('p', own), clusters).filter((one) => one.startsWith('spec.failover'));
    const words = 'spec.failover.application: moves only pods that are not in member east';
    expect(found).toEqual(isVain ? [expect.stringContaining(words)] : []);
  });

  it('where the placement chooses no cluster that there is, failover goes nowhere', () => {
    const placement = { clusterAffinity: { clusterNames: ['moon'] } };
    const failover = { application: {}, onUnschedulable: { after: '1m' }, onMemberLost: { after: '1m' } };
    const found = policyWarnings(policy('p', { placement, failover }), clusters);
    const why = 'the placement chooses none of the clusters there are';
    expect(found.filter((one) => one.startsWith('spec.failover'))).toEqual([
      `spec.failover.application: moves nothing: ${why}`,
      `spec.failover.onUnschedulable: moves nothing: ${why}`,
      `spec.failover.onMemberLost.after: replaces nothing: ${why}`,
    ]);
  });

  it.each<[object, string | undefined]>([
    [{}, undefined],
    [{ failover: { purgeMode: 'Never' } }, 'spec.failover.cluster.purgeMode is Never'],
    [{ placement: { clusterAffinity: { clusterNames: ['north'] } } }, 'the placement chooses none'],
    [{ resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'DaemonSet' }] }, 'resourceSelectors choose only DaemonSets'],
  ])('failover.cluster.statePreservation hands on nothing with %j', (own, why) => {
    const rules = [{ aliasLabelName: 'example.com/ip', jsonPath: '{.podIP}' }];
    const { failover: cluster = {}, ...rest } = own as { failover?: object };
    const given = { ...rest, failover: { cluster: { ...cluster, statePreservation: { rules } } } };
    const found = policyWarnings(policy('p', given), clusters).filter((one) => one.includes('statePreservation'));
    const words = `spec.failover.cluster.statePreservation: hands on nothing: ${why ?? ''}`;
    expect(found).toEqual(why === undefined ? [] : [expect.stringContaining(words)]);
  });

  it.each<[object, string[]]>([
    [
      { clusterAffinity: { clusterNames: ['est', 'west'], exclude: ['gone'] } },
      [`${place}.clusterAffinity: there is no member est and gone`],
    ],
    [
      { clusterAffinity: { clusterNames: ['east'], exclude: ['east'] } },
      [
        `${place}.clusterAffinity: east is both in clusterNames and in exclude, which wins`,
        `${place}.clusterAffinity: chooses none of the clusters there are`,
      ],
    ],
    [
      { clusterAffinities: [{ affinityName: 'a', labelSelector: { matchLabels: { x: 'y' } } }, { affinityName: 'b' }] },
      [`${place}.clusterAffinities[0]: chooses none of the clusters there are`],
    ],
    [
      { clusterAffinity: { clusterNames: ['east', 'west'], overflowAffinities: [{ clusterNames: ['west'] }] } },
      [`${place}.clusterAffinity.overflowAffinities[0]: never counts: west is in an earlier tier already`],
    ],
    [
      { spreadConstraints: [{ minGroups: 2 }, { spreadByField: 'region', minGroups: 3 }, { spreadByLabel: 'rack' }] },
      [
        `${place}.spreadConstraints[1].minGroups: asks for 3 groups by region, but the clusters it may use have only eu and us`,
        `${place}.spreadConstraints[2].minGroups: asks for 1 groups by label rack, but the clusters it may use have none`,
      ],
    ],
    [
      {
        replicaScheduling: {
          whenFull: 'Wait',
          weightPreference: {
            dynamicWeight: 'AvailableReplicas',
            staticWeightList: [{ targetCluster: {}, weight: 1 }],
          },
        },
      },
      [
        `${place}.replicaScheduling.weightPreference.staticWeightList: is ignored, as dynamicWeight is given`,
        `${place}.replicaScheduling.whenFull: Wait has no effect on a division by free room`,
      ],
    ],
    [
      {
        clusterAffinity: { clusterNames: ['east'] },
        replicaScheduling: {
          weightPreference: { staticWeightList: [{ targetCluster: { clusterNames: ['west'] }, weight: 1 }] },
        },
      },
      [
        `${place}.replicaScheduling.weightPreference.staticWeightList[0]: matches none of the clusters the policy may use`,
      ],
    ],
    [
      {
        clusterAffinity: { exclude: ['local'] },
        replicaScheduling: { clusterPreferences: { clusters: { '*': {}, local: {}, moon: {}, east: {} } } },
      },
      [
        `${place}.replicaScheduling.clusterPreferences.clusters: names local, but the policy does not choose it by its affinity`,
        `${place}.replicaScheduling.clusterPreferences.clusters: names member moon, but it does not exist`,
      ],
    ],
  ])('%j', (placement, expected) => {
    expect(warnings(placement)).toEqual(expected);
  });
});

describe('the status of a policy', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const status = (problems: string[], warnings: string[], before?: ReturnType<typeof policyStatus>, at = now) =>
    policyStatus({ generation: 3, problems, warnings, scheduler: 'asks', before, now: at });

  it('says that it is in use', () => {
    expect(status([], [])).toEqual({
      observedGeneration: 3,
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          observedGeneration: 3,
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'Accepted',
          message: 'the policy is in use',
        },
        {
          type: 'Consistent',
          status: 'True',
          observedGeneration: 3,
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'Consistent',
          message: 'no contradictions were found',
        },
        {
          type: 'Effective',
          status: 'True',
          observedGeneration: 3,
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'SchedulerAsks',
          message: 'kube-scheduler asks Spillway where pods go',
        },
      ],
    });
  });

  it('shows contradictions and problems', () => {
    const words = (one: ReturnType<typeof policyStatus>) =>
      one.conditions?.slice(0, 2).map(({ type, status, message }) => [type, status, message]);
    expect(words(status([], ['a: b']))).toEqual([
      ['Accepted', 'True', 'the policy is in use'],
      ['Consistent', 'False', 'a: b'],
    ]);
    expect(words(status(['x: y'], ['a: b']))).toEqual([
      ['Accepted', 'False', 'the policy is not used until this is put right: x: y'],
      ['Consistent', 'False', 'x: y; a: b'],
    ]);
  });

  it('changes the time of a condition only with its status', () => {
    const before = status([], ['a: b']);
    const after = status([], [], before, now + 5_000);
    expect(after.conditions?.slice(0, 2).map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:05Z',
    ]);
  });
});

describe('a policy that chooses by labels of a kind', () => {
  const labelSelector = { matchLabels: { tier: 'front' } };
  const byRollout = policy('p', {
    placement: {},
    resourceSelectors: [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', labelSelector }],
  });

  it.each([
    ['that may not be read matches none', false, 'this matches none: for this reason'],
    ['that cannot be read now holds pods up', true, 'new pods of such objects wait: for this reason'],
  ])('%s', (_, holds, words) => {
    const known = { whyUnread: () => 'for this reason', holds: () => holds, isAbsent: () => false };
    expect(selectorWarnings(byRollout, known)).toEqual([expect.stringContaining(words)]);
  });

  it('may mean what owns another such kind, and nothing of its own', () => {
    const compiled = compilePolicy(byRollout);
    const policies = 'placement' in compiled ? [compiled] : [];
    const above = (kind: string): unknown => mayChooseAbove({ apiVersion: 'argoproj.io/v1alpha1', kind }, policies);
    expect([above('Rollout'), above('Canary')]).toEqual([undefined, policies[0]]);
  });
});
