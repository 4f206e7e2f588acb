import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { manifestObjects } from '../../src/cli/simulate/manifest-objects.ts';
import { translations, type Translation } from '../../src/cli/translate/translation.ts';
import { runProgram } from '../../src/cli/program.ts';
import { policyWarnings } from '../../src/placement/policy-warnings.ts';
import { OVERRIDERS } from '../fixtures/karmada.ts';
import { cluster } from '../placement/fleet.ts';
import { policy as policyOf } from '../placement/policies.ts';
import { FakeTerminal } from './fake-terminal.ts';

const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };

function all(...objects: object[]): Translation[] {
  return translations(manifestObjects(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))).translated;
}

function one(object: object): Translation {
  const [found] = all(object);
  if (found === undefined) throw new Error('nothing was translated');
  return found;
}

function propagation(spec: object, kind = 'PropagationPolicy'): Translation {
  const metadata = { name: 'web', ...(kind === 'PropagationPolicy' ? { namespace: 'shop' } : {}) };
  return one({
    apiVersion: 'policy.karmada.io/v1alpha1',
    kind,
    metadata,
    spec: { resourceSelectors: [DEPLOYMENT], activationPreference: 'Lazy', ...spec },
  });
}

/** The placement that comes of one, with what is said about it. */
function placed(placement: object): {
  placement: unknown;
  lost: string[];
  differs: string[];
  problems: readonly string[];
} {
  const { made, remarks, problems } = propagation({ placement });
  const [policy] = made as unknown as { spec: { placement: unknown } }[];
  return {
    placement: policy?.spec.placement,
    lost: remarks.filter(({ lost }) => lost).map(({ field }) => field),
    differs: remarks.filter(({ lost }) => !lost).map(({ field }) => field),
    problems,
  };
}

const TO_EAST = { clusterNames: ['east'] };
const TO_TWO = { clusterNames: ['east', 'west'] };
/** What is said of each policy that has ill workloads moved. */
const DECISION = ['spec.failover.application.decisionConditions', true];

/** What becomes of one's `failover`, with what is said of it. */
function failover(
  spec: object,
  clusterTolerations: object[] = [],
): Pick<Translation, 'remarks' | 'problems'> & { made: Record<string, unknown> } {
  const placement = { clusterAffinity: TO_TWO, clusterTolerations, replicaScheduling: divided({}) };
  const { made, remarks, problems } = propagation({ placement, failover: spec });
  const [policy] = made as unknown as { spec: { failover?: Record<string, unknown> } }[];
  return { made: policy?.spec.failover ?? {}, remarks, problems };
}

/** What condition Consistent of a policy with such a `failover` says. */
function warned(made: object): string[] {
  const clusters = [cluster('local'), cluster('east'), cluster('west')];
  const placement = { clusterAffinity: TO_TWO, replicaScheduling: {} };
  return policyWarnings(policyOf('web', { resourceSelectors: [DEPLOYMENT], placement, failover: made }), clusters);
}

const divided = (more: object): object => ({ replicaSchedulingType: 'Divided', ...more });

describe('placement of Karmada', () => {
  it.each<[string, object, object, string[], string[]]>([
    ['clusters by name', { clusterAffinity: TO_EAST }, { clusterAffinity: TO_EAST }, [], []],
    [
      'any cluster, which never means the host',
      { replicaScheduling: divided({ replicaDivisionPreference: 'Aggregated' }) },
      {
        clusterAffinity: { exclude: ['local'] },
        replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Aggregated' },
      },
      [],
      [],
    ],
    [
      'clusters by labels and fields, without the host',
      {
        clusterAffinity: {
          exclude: ['west'],
          labelSelector: { matchLabels: { tier: 'gold' } },
          fieldSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['eu'] }] },
        },
        replicaScheduling: divided({}),
      },
      {
        clusterAffinity: {
          labelSelector: { matchLabels: { tier: 'gold' } },
          fieldSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['eu'] }] },
          exclude: ['west', 'local'],
        },
        replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted' },
      },
      [],
      [],
    ],
    [
      'groups, in which pods wait',
      {
        clusterAffinities: [
          { affinityName: 'home', ...TO_EAST, overflowAffinities: [{ affinityName: 'more', clusterNames: ['west'] }] },
          { affinityName: 'away', clusterNames: ['north'] },
        ],
        replicaScheduling: divided({ replicaDivisionPreference: 'Aggregated' }),
      },
      {
        clusterAffinities: [
          { affinityName: 'home', ...TO_EAST, overflowAffinities: [{ affinityName: 'more', clusterNames: ['west'] }] },
          { affinityName: 'away', clusterNames: ['north'] },
        ],
        replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Aggregated' },
      },
      [],
      ['spec.placement.clusterAffinities'],
    ],
    [
      'static weights',
      {
        clusterAffinity: TO_EAST,
        replicaScheduling: divided({
          replicaDivisionPreference: 'Weighted',
          weightPreference: { staticWeightList: [{ targetCluster: TO_EAST, weight: 2 }] },
        }),
      },
      {
        clusterAffinity: TO_EAST,
        replicaScheduling: {
          replicaSchedulingType: 'Divided',
          replicaDivisionPreference: 'Weighted',
          weightPreference: { staticWeightList: [{ targetCluster: TO_EAST, weight: 2 }] },
        },
      },
      [],
      [],
    ],
    [
      'weights beside Aggregated, which say nothing there and are refused here',
      {
        clusterAffinity: TO_EAST,
        replicaScheduling: divided({
          replicaDivisionPreference: 'Aggregated',
          weightPreference: { dynamicWeight: 'AvailableReplicas' },
        }),
      },
      {
        clusterAffinity: TO_EAST,
        replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Aggregated' },
      },
      [],
      ['spec.placement.replicaScheduling.weightPreference'],
    ],
    [
      'all replicas in every cluster',
      { clusterAffinity: { clusterNames: ['east', 'west'] } },
      { clusterAffinity: { clusterNames: ['east', 'west'] } },
      ['spec.placement.replicaScheduling'],
      [],
    ],
    [
      'groups that are spread over',
      {
        clusterAffinity: TO_EAST,
        spreadConstraints: [
          { spreadByField: 'region', minGroups: 2, maxGroups: 0 },
          { spreadByLabel: 'rack', minGroups: 0 },
        ],
      },
      {
        clusterAffinity: TO_EAST,
        spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }, { spreadByLabel: 'rack' }],
      },
      [],
      ['spec.placement.spreadConstraints[0].maxGroups'],
    ],
    [
      'tolerations of people',
      { clusterAffinity: TO_EAST, clusterTolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }] },
      { clusterAffinity: TO_EAST, clusterTolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }] },
      [],
      [],
    ],
    [
      'tolerations of people for a time',
      {
        clusterAffinity: TO_EAST,
        clusterTolerations: [{ key: 'lent', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
      },
      {
        clusterAffinity: TO_EAST,
        clusterTolerations: [{ key: 'lent', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
      },
      [],
      ['spec.placement.clusterTolerations[0].tolerationSeconds'],
    ],
    [
      'groups beside static weights, which Karmada passes over',
      {
        clusterAffinity: TO_EAST,
        spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }],
        replicaScheduling: divided({ replicaDivisionPreference: 'Weighted' }),
      },
      {
        clusterAffinity: TO_EAST,
        spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }],
        replicaScheduling: divided({ replicaDivisionPreference: 'Weighted' }),
      },
      [],
      ['spec.placement.spreadConstraints'],
    ],
    ...[
      { replicaDivisionPreference: 'Aggregated' },
      { replicaDivisionPreference: 'Weighted', weightPreference: { dynamicWeight: 'AvailableReplicas' } },
    ].map((division): [string, object, object, string[], string[]] => {
      const same = {
        clusterAffinity: TO_EAST,
        spreadConstraints: [{ spreadByField: 'cluster', minGroups: 2 }],
        replicaScheduling: divided(division),
      };
      return [`groups beside ${JSON.stringify(division)}`, same, same, [], []];
    }),
    [
      'affinity of workloads',
      { clusterAffinity: TO_EAST, workloadAffinity: { affinity: {} } },
      { clusterAffinity: TO_EAST },
      ['spec.placement.workloadAffinity'],
      [],
    ],
    [
      'a field of a newer version',
      { clusterAffinity: { ...TO_EAST, byMoon: 'full' }, sun: 1 },
      { clusterAffinity: TO_EAST },
      ['spec.placement.clusterAffinity.byMoon', 'spec.placement.sun'],
      [],
    ],
  ])('%s', (_, karmada, placement, lost, differs) => {
    expect(placed(karmada)).toEqual({ placement, lost, differs, problems: [] });
  });

  it.each([
    ['for a time', { tolerationSeconds: 90, effect: 'NoExecute' }, { after: '90s', action: 'Replace' }],
    ['for ever', { operator: 'Exists' }, { action: 'Hold' }],
    [
      'for longer than a rule can say',
      { tolerationSeconds: 90_000, effect: 'NoExecute' },
      { after: '86400s', action: 'Replace' },
    ],
  ])('what Karmada tolerates of its own taints %s is a rule for lost members', (_, toleration, onMemberLost) => {
    const { made, problems } = propagation({
      placement: {
        clusterAffinity: TO_EAST,
        clusterTolerations: [{ key: 'cluster.karmada.io/unreachable', ...toleration }],
      },
    });
    expect(made).toMatchObject([{ spec: { failover: { onMemberLost } } }]);
    expect(problems).toEqual([]);
  });

  it('of its own taints only that of a cluster that does not answer is such a rule, wherever it stands', () => {
    const own = (name: string, tolerationSeconds: number): object => ({
      key: `cluster.karmada.io/${name}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds,
    });
    const translated = (...clusterTolerations: object[]): unknown[] => {
      const { made, remarks, problems } = propagation({
        placement: { clusterAffinity: TO_EAST, clusterTolerations },
      });
      const [policy] = made as unknown as { spec: { failover?: { onMemberLost?: unknown } } }[];
      return [policy?.spec.failover?.onMemberLost, remarks.map(({ field, lost }) => [field, lost]), problems];
    };
    const path = 'spec.placement.clusterTolerations';
    const after = (seconds: number): object => ({ after: `${seconds}s`, action: 'Replace' });
    expect(translated(own('unreachable', 60), own('not-ready', 300))).toEqual([
      after(60),
      [
        [`${path}[0]`, false],
        [`${path}[1]`, true],
      ],
      [],
    ]);
    expect(translated(own('not-ready', 300))).toEqual([undefined, [[`${path}[0]`, true]], []]);
    // Of several that match one taint the shortest counts.
    expect(translated(own('unreachable', 60), own('unreachable', 90))[0]).toEqual(after(60));
    expect(translated(own('unreachable', 100_000))).toEqual([
      after(86_400),
      [
        [`${path}[0]`, false],
        [path, false],
      ],
      [],
    ]);
  });

  it('failover: times that are longer than a day are cut to one', () => {
    const { made, problems, remarks } = propagation({
      placement: { clusterAffinity: TO_EAST },
      failover: {
        application: { decisionConditions: { tolerationSeconds: 100_000 } },
      },
    });
    expect(problems).toEqual([]);
    expect(made).toMatchObject([
      { spec: { failover: { application: { decisionConditions: { tolerationSeconds: 86_400 } } } } },
    ]);
    expect(remarks.map(({ field, lost }) => [field, lost])).toEqual([
      DECISION,
      ['spec.failover.application.decisionConditions.tolerationSeconds', false],
    ]);
  });

  it.each([
    [0, true],
    [14, true],
    [15, false],
  ])('failover: of pods that are ill for %d s it is said whether longer is waited', (tolerationSeconds, isSaid) => {
    const { remarks } = failover({ application: { decisionConditions: { tolerationSeconds } } });
    const fields = remarks.map(({ field }) => field);
    expect(fields.includes('spec.failover.application.decisionConditions.tolerationSeconds')).toBe(isSaid);
  });

  it('failover: how long Karmada keeps ill workloads beside new ones is no time of other moves', () => {
    const { made, remarks, problems } = failover({
      application: { decisionConditions: {}, purgeMode: 'Gracefully', gracePeriodSeconds: 60 },
      cluster: { purgeMode: 'Directly' },
    });
    expect(made).toEqual({
      onMemberLost: { action: 'ReplaceWhenFenced' },
      application: { decisionConditions: {} },
      cluster: { purgeMode: 'Directly' },
    });
    expect(problems).toEqual([]);
    const grace = remarks.find(({ field }) => field === 'spec.failover.application.gracePeriodSeconds');
    expect(grace).toMatchObject({ lost: true, says: expect.stringContaining('evicted at once') });
    // So condition Consistent of what was made names no field that has no effect.
    expect(warned(made)).toEqual([]);
  });

  it('failover: of lost members nothing is made elsewhere with Directly, as in Karmada, before somebody says that they are gone', () => {
    const directly = { cluster: { purgeMode: 'Directly' } };
    const lost = (more: object): object => ({ key: 'cluster.karmada.io/unreachable', operator: 'Exists', ...more });
    const onMemberLost = (spec: object, ...clusterTolerations: object[]): unknown => {
      const { made } = failover(spec, clusterTolerations);
      expect(warned(made)).toEqual([]);
      return made.onMemberLost;
    };
    const fenced = { action: 'ReplaceWhenFenced' };
    expect(onMemberLost(directly)).toEqual(fenced);
    expect(onMemberLost(directly, lost({ tolerationSeconds: 60 }))).toEqual(fenced);
    expect(onMemberLost({ cluster: { purgeMode: 'Immediately' } })).toEqual(fenced);
    expect(onMemberLost(directly, lost({}))).toEqual({ action: 'Hold' });
    expect(onMemberLost({ cluster: {} })).toBeUndefined();
    const [note] = failover(directly).remarks;
    expect(note).toMatchObject({ field: 'spec.failover.cluster.purgeMode', lost: false });
    expect(note?.says).toMatch(/Work.*ReplaceWhenFenced.*as soon as the old one is being deleted.*StatefulSet/);
    expect(failover(directly, [lost({})]).remarks.at(-1)?.says).not.toContain('ReplaceWhenFenced');
  });

  it.each([[{}], [{ purgeMode: 'Gracefully' }]])(
    'failover: what becomes of %j when no other pod is Ready in time',
    (cluster) => {
      const { remarks } = failover({ cluster });
      expect(remarks).toMatchObject([
        { field: 'spec.failover.cluster.purgeMode', lost: false, says: expect.stringContaining('onTimeout: Evict') },
      ]);
    },
  );

  it('failover: pods that do not get well leave their state to those of StatefulSets alone', () => {
    const statePreservation = { rules: [{ aliasLabelName: 'example.com/ip', jsonPath: '{.podIP}' }] };
    const { remarks } = failover({
      application: { decisionConditions: {}, statePreservation },
      cluster: { purgeMode: 'Directly', statePreservation },
    });
    const says = (part: string): string =>
      remarks.find(({ field }) => field === `spec.failover.${part}.statePreservation`)?.says ?? '';
    expect(says('application')).not.toContain('one replica');
    expect(says('cluster')).toContain('one replica');
  });

  const BY_ROOM = divided({ weightPreference: { dynamicWeight: 'AvailableReplicas' } });
  const SPREAD = [{ spreadByField: 'cluster', minGroups: 2 }];
  const TIERS = [
    { affinityName: 'a', ...TO_EAST, overflowAffinities: [{ affinityName: 'b', clusterNames: ['west'] }] },
  ];
  it.each<[string, object, string[]]>([
    ['no division', {}, ['Eager']],
    ['weights', { replicaScheduling: divided({}) }, ['Eager', 'divisionDrift']],
    ['a division by room', { replicaScheduling: BY_ROOM }, ['Eager']],
    ['groups', { spreadConstraints: SPREAD, replicaScheduling: BY_ROOM }, ['Eager', 'spreadViolation']],
    [
      'groups beside weights',
      { spreadConstraints: SPREAD, replicaScheduling: divided({}) },
      ['Eager', 'divisionDrift'],
    ],
    ['tiers', { clusterAffinities: TIERS, replicaScheduling: BY_ROOM }, ['Eager', 'kubectl spillway move']],
  ])('names what moves pods after an edit of a policy with %s, and writes none of it', (_, placement, named) => {
    const { made, remarks } = propagation({ placement, activationPreference: undefined });
    expect(made).toMatchObject([{ spec: expect.not.objectContaining({ failover: expect.anything() }) }]);
    const { says = '' } = remarks.find(({ field }) => field === 'spec.activationPreference') ?? {};
    const all = ['Eager', 'divisionDrift', 'spreadViolation', 'repatriate', 'kubectl spillway move'];
    expect(all.filter((one) => says.includes(one))).toEqual(named);
    expect(propagation({ placement }).remarks.map(({ field }) => field)).not.toContain('spec.activationPreference');
  });

  it('failover: of pods that do not get well, and of clusters', () => {
    const { made, problems, remarks } = propagation({
      placement: { clusterAffinity: TO_EAST },
      failover: {
        application: {
          decisionConditions: { tolerationSeconds: 120 },
          purgeMode: 'Graciously',
          gracePeriodSeconds: 60,
          statePreservation: {
            rules: [
              { aliasLabelName: 'example.com/job', jsonPath: '{.jobStatus.jobID}' },
              { aliasLabelName: 'app.kubernetes.io/part', jsonPath: '{.part}' },
              { aliasLabelName: 'example.com/range', jsonPath: '{range .a[*]}{.b}{end}' },
            ],
          },
        },
        cluster: {
          purgeMode: 'Directly',
          statePreservation: { rules: [{ aliasLabelName: 'example.com/ip', jsonPath: '{.podIP}' }] },
        },
      },
    });
    expect(made).toMatchObject([
      {
        spec: {
          failover: {
            application: {
              decisionConditions: { tolerationSeconds: 120 },
              statePreservation: { rules: [{ aliasLabelName: 'example.com/job', jsonPath: '{.jobStatus.jobID}' }] },
            },
            cluster: {
              purgeMode: 'Directly',
              statePreservation: { rules: [{ aliasLabelName: 'example.com/ip', jsonPath: '{.podIP}' }] },
            },
          },
        },
      },
    ]);
    expect(problems).toEqual([]);
    expect(remarks.map(({ field, lost }) => [field, lost])).toEqual([
      DECISION,
      ['spec.failover.application.purgeMode', false],
      ['spec.failover.application.gracePeriodSeconds', true],
      ['spec.failover.application.statePreservation.rules[1]', true],
      ['spec.failover.application.statePreservation.rules[2]', true],
      ['spec.failover.application.statePreservation', false],
      ['spec.failover.cluster.purgeMode', false],
      ['spec.failover.cluster.statePreservation', false],
    ]);
  });

  it('failover: that Karmada leaves ill pods behind stops no other move', () => {
    const application = { decisionConditions: { tolerationSeconds: 120 }, purgeMode: 'Never' };
    const { made, problems, remarks } = propagation({
      placement: { clusterAffinity: TO_EAST },
      failover: { application },
    });
    const [policy] = made as unknown as { spec: { failover: unknown } }[];
    expect(policy?.spec.failover).toEqual({ application: { decisionConditions: { tolerationSeconds: 120 } } });
    expect(problems).toEqual([]);
    expect(remarks.map(({ field, lost }) => [field, lost])).toEqual([
      DECISION,
      ['spec.failover.application.purgeMode', true],
    ]);
    const both = propagation({
      placement: { clusterAffinity: TO_EAST },
      failover: { application, cluster: { purgeMode: 'Gracefully' } },
    });
    expect(both.made).toMatchObject([{ spec: { failover: { cluster: { purgeMode: 'Gracefully' } } } }]);
  });

  it('only what makes pods is selected; a policy for nothing else has no counterpart', () => {
    const service = { apiVersion: 'v1', kind: 'Service', name: 'web' };
    const rollout = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };
    const agents = { apiVersion: 'apps/v1', kind: 'DaemonSet' };
    const { made, remarks } = propagation({
      resourceSelectors: [DEPLOYMENT, service, rollout, agents],
      placement: { clusterAffinity: TO_EAST },
    });
    expect(made).toMatchObject([{ spec: { resourceSelectors: [DEPLOYMENT, rollout] } }]);
    expect(remarks.map(({ field, lost }) => [field, lost])).toEqual([
      ['spec.resourceSelectors[1]', false],
      ['spec.resourceSelectors[2]', false],
      ['spec.resourceSelectors[3]', true],
    ]);
    expect(propagation({ resourceSelectors: [service] }).made).toEqual([]);
  });

  it('a cluster-wide policy has no namespace, and marks of Karmada are left behind', () => {
    const { made, of } = one({
      apiVersion: 'policy.karmada.io/v1alpha1',
      kind: 'ClusterPropagationPolicy',
      metadata: {
        name: 'all',
        labels: { team: 'a', 'propagationpolicy.karmada.io/name': 'x' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      },
      spec: { resourceSelectors: [DEPLOYMENT], placement: { clusterAffinity: TO_EAST } },
    });
    expect(of).toBe('ClusterPropagationPolicy all');
    expect(made).toMatchObject([{ kind: 'ClusterPlacementPolicy', metadata: { name: 'all', labels: { team: 'a' } } }]);
    expect(made[0]?.metadata.annotations).toBeUndefined();
  });
});

it('what is no object or no list is named, not passed over', () => {
  const { lost } = placed({
    clusterAffinity: 'east',
    clusterTolerations: { key: 'gpu' },
    spreadConstraints: ['region'],
  });
  expect(lost).toEqual([
    'spec.placement.clusterTolerations',
    'spec.placement.clusterAffinity',
    'spec.placement.spreadConstraints[0]',
    'spec.placement.replicaScheduling',
  ]);
});

describe('overrides of Karmada', () => {
  it('keeps every overrider of Karmada', () => {
    const { made, remarks, problems } = one({
      apiVersion: 'policy.karmada.io/v1alpha1',
      kind: 'OverridePolicy',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { resourceSelectors: [DEPLOYMENT], overrideRules: [{ targetCluster: TO_EAST, overriders: OVERRIDERS }] },
    });
    expect(made).toMatchObject([
      { kind: 'OverridePolicy', spec: { overrideRules: [{ targetCluster: TO_EAST, overriders: OVERRIDERS }] } },
    ]);
    expect([remarks, problems]).toEqual([[], []]);
  });

  it('the deprecated single rule is one of the rules; a number of replicas is none', () => {
    const { made, remarks } = one({
      apiVersion: 'policy.karmada.io/v1alpha1',
      kind: 'ClusterOverridePolicy',
      metadata: { name: 'all' },
      spec: {
        targetCluster: TO_EAST,
        overriders: {
          plaintext: [{ path: '/spec/replicas', operator: 'replace', value: 3 }],
          labelsOverrider: OVERRIDERS.labelsOverrider,
        },
      },
    });
    expect(made).toMatchObject([
      {
        spec: {
          overrideRules: [{ targetCluster: TO_EAST, overriders: { labelsOverrider: OVERRIDERS.labelsOverrider } }],
        },
      },
    ]);
    expect(remarks.map(({ field, lost }) => [field, lost])).toEqual([['spec.overriders.plaintext[0]', true]]);
  });
});

describe('other kinds', () => {
  it('taint policies and rebalancers keep their fields', () => {
    const [taints, rebalancer] = all(
      {
        apiVersion: 'policy.karmada.io/v1alpha1',
        kind: 'ClusterTaintPolicy',
        metadata: { name: 'sick' },
        spec: {
          targetClusters: TO_EAST,
          addOnConditions: [{ conditionType: 'Ready', operator: 'In', statusValues: ['False'] }],
          taints: [
            { key: 'sick', effect: 'NoSchedule' },
            { key: 'sick', effect: 'NoExecute' },
          ],
        },
      },
      {
        apiVersion: 'apps.karmada.io/v1alpha1',
        kind: 'WorkloadRebalancer',
        metadata: { name: 'again' },
        spec: { workloads: [{ ...DEPLOYMENT, namespace: 'shop' }, { ...DEPLOYMENT }], ttlSecondsAfterFinished: 60 },
      },
    );
    expect(taints?.problems).toEqual([]);
    expect(taints?.made).toMatchObject([{ kind: 'ClusterTaintPolicy', spec: { targetClusters: TO_EAST } }]);
    expect(taints?.remarks.map(({ field, lost }) => [field, lost])).toEqual([
      ['spec.taints[1].effect', false],
      ['spec.taints', false],
    ]);
    expect(rebalancer?.problems).toEqual([]);
    expect(rebalancer?.made).toMatchObject([
      { spec: { workloads: [{ namespace: 'shop' }], ttlSecondsAfterFinished: 60 } },
    ]);
  });

  it('what has no counterpart is named, what is not needed is no loss, and others are passed over', () => {
    const { translated, others } = translations(
      manifestObjects(
        ['autoscaling.karmada.io/v1alpha1 FederatedHPA', 'types.kubefed.io/v1beta1 FederatedConfigMap', 'v1 Service']
          .map((text) => text.split(' '))
          .map(([apiVersion, kind]) => JSON.stringify({ apiVersion, kind, metadata: { name: 'x' } }))
          .join('\n---\n'),
      ),
    );
    expect(translated.map(({ of, remarks }) => [of, remarks[0]?.lost])).toEqual([
      ['FederatedHPA x', true],
      ['FederatedConfigMap x', false],
    ]);
    expect(others).toEqual(['Service x']);
  });
});

describe('KubeFed', () => {
  const federated = (placement: object, overrides: object[] = []): object => ({
    apiVersion: 'types.kubefed.io/v1beta1',
    kind: 'FederatedDeployment',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { template: { spec: { replicas: 3 } }, placement, overrides },
  });
  const preference = (more: object): object => ({
    apiVersion: 'scheduling.kubefed.io/v1alpha1',
    kind: 'ReplicaSchedulingPreference',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { targetKind: 'FederatedDeployment', totalReplicas: 9, ...more },
  });
  const named = { clusters: [{ name: 'east' }, { name: 'west' }] };

  it('numbers of replicas in each cluster are weights, other overrides an override policy', () => {
    const { made, problems, remarks } = one(
      federated(named, [
        {
          clusterName: 'west',
          clusterOverrides: [
            { path: '/spec/replicas', value: 6 },
            { path: '/spec/template/spec/containers/0/image', value: 'web:2' },
            { path: '/metadata/annotations', op: 'add', value: { a: 'b' } },
          ],
        },
      ]),
    );
    expect(problems).toEqual([]);
    const weight = (name: string, value: number): object => ({
      targetCluster: { clusterNames: [name] },
      weight: value,
    });
    expect(made).toMatchObject([
      {
        kind: 'PlacementPolicy',
        spec: {
          resourceSelectors: [DEPLOYMENT],
          placement: {
            clusterAffinity: { clusterNames: ['east', 'west'] },
            replicaScheduling: { weightPreference: { staticWeightList: [weight('east', 3), weight('west', 6)] } },
          },
        },
      },
      {
        kind: 'OverridePolicy',
        spec: {
          overrideRules: [
            {
              targetCluster: { clusterNames: ['west'] },
              overriders: {
                plaintext: [
                  { path: '/spec/template/spec/containers/0/image', operator: 'replace', value: 'web:2' },
                  { path: '/metadata/annotations', operator: 'add', value: { a: 'b' } },
                ],
              },
            },
          ],
        },
      },
    ]);
    expect(remarks.map(({ says }) => says)).toContain('set 9 in the host: the replicas of all clusters together');
  });

  it('a preference is a division of the same numbers, among the clusters of its workload where it says so', () => {
    const clusters = { east: { weight: 2, minReplicas: 1 }, '*': { weight: 1, maxReplicas: 4 } };
    const [workload, divided] = all(
      federated({ clusterSelector: { matchLabels: { tier: 'gold' } } }),
      preference({ rebalance: true, intersectWithClusterSelector: true, clusters }),
    );
    expect(workload?.made).toEqual([]);
    expect(divided?.problems).toEqual([]);
    expect(divided?.made).toMatchObject([
      {
        kind: 'PlacementPolicy',
        metadata: { name: 'web', namespace: 'shop' },
        spec: {
          resourceSelectors: [DEPLOYMENT],
          placement: {
            clusterAffinity: { labelSelector: { matchLabels: { tier: 'gold' } }, exclude: ['local'] },
            replicaScheduling: { clusterPreferences: { rebalance: true, division: 'Remainder', clusters } },
          },
        },
      },
    ]);
    expect(divided?.remarks.some(({ lost }) => lost)).toBe(false);
    const alone = one(preference({ intersectWithClusterSelector: true }));
    expect(alone.remarks.filter(({ lost }) => lost).map(({ field }) => field)).toEqual([
      'spec.intersectWithClusterSelector',
    ]);
    expect(alone.problems).toEqual([]);
  });
});

const PAGE = readFileSync('docs/guides/from-karmada.md', 'utf8');
const blocks = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);

it('makes of the example in the guide what the guide makes of it', async () => {
  const [karmada = '', ours = ''] = blocks;
  const [made] = translations(manifestObjects(karmada)).translated.flatMap((one) => one.made);
  expect(made).toEqual(parse(ours));
});

/** What stands in fields that are objects. */
const SAMPLES: Readonly<Record<string, object>> = {
  'placement.clusterAffinities[]': { affinityName: 'MARK' },
  'placement.clusterAffinities[].overflowAffinities[]': { affinityName: 'MARK' },
  'placement.clusterTolerations[]': { key: 'MARK' },
  'placement.replicaScheduling.weightPreference.staticWeightList[]': { weight: 'MARK' },
  failover: { cluster: { purgeMode: 'MARK' } },
};

/** Fields of Karmada that the guide has a row for. */
function guideFields(): string[] {
  const section = PAGE.slice(PAGE.indexOf('## Placement')).split('\n## ')[0] ?? '';
  const cells = section.split('\n').flatMap((line) => (line.startsWith('| `') ? [line.split('|')[1] ?? ''] : []));
  const codes = cells.flatMap((cell) => [...cell.matchAll(/`([a-zA-Z.[\]]+)`/g)].map(([, code = '']) => code));
  return codes.filter((code) => !code.startsWith('.'));
}

it.each(guideFields())('%s of the guide is taken over or named', (field) => {
  const parts = field.split('.').map((part) => part.replace('[]', ''));
  const isList = (index: number): boolean => field.split('.')[index]?.endsWith('[]') === true;
  const value = parts.reduceRight<unknown>((inner, part, index) => {
    const type = part === 'replicaScheduling' ? { replicaSchedulingType: 'Divided' } : {};
    const within = typeof inner === 'object' ? { ...type, ...inner } : inner;
    return { [part]: isList(index) ? [within] : within };
  }, SAMPLES[field] ?? 'MARK');
  const { made, remarks } = propagation(value as object);
  const path = `spec.${parts.join('.')}`;
  const isNamed = remarks.some(({ field: of }) => {
    const plain = of.replaceAll(/\[\d+\]/g, '');
    return path === plain || path.startsWith(`${plain}.`);
  });
  expect(JSON.stringify(made).includes('MARK') || isNamed).toBe(true);
  expect(remarks.filter(({ says }) => /is not known|is no (object|list)/.test(says))).toEqual([]);
});

it('prints policies, says on stderr what differs, and ends with 5 when something is lost', async () => {
  const terminal = new FakeTerminal();
  const folder = mkdtempSync(join(tmpdir(), 'translate-'));
  try {
    const file = join(folder, 'policies.yaml');
    writeFileSync(file, `${blocks[0] ?? ''}---\napiVersion: v1\nkind: Service\nmetadata: { name: web }\n`);
    const code = await runProgram(['translate', '-f', file], terminal);
    const [document] = parseAllDocuments(terminal.stdout);
    expect(document?.toJS()).toEqual(parse(blocks[1] ?? ''));
    expect(terminal.notes.join('\n')).toMatch(/note: PropagationPolicy shop\/web, spec.propagateDeps: is not needed/);
    expect(terminal.notes.at(-1)).toBe('1 object read, 1 object made');
    expect(code).toBe(0);
    writeFileSync(
      file,
      '{"apiVersion":"autoscaling.karmada.io/v1alpha1","kind":"FederatedHPA","metadata":{"name":"x"}}',
    );
    expect(await runProgram(['translate', '-f', file, '-o', 'json'], new FakeTerminal())).toBe(5);
    writeFileSync(file, '{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}');
    expect(await runProgram(['translate', '-f', file], new FakeTerminal())).toBe(2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
