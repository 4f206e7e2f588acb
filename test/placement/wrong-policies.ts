/** A spec that nobody should be able to apply. */
export interface WrongPolicy {
  readonly what: string;
  readonly spec: object;
  /** The field, as `policyProblems` and the types name it. */
  readonly field: string;
  /** What the API server says; undefined where a CRD cannot express the rule. */
  readonly refusal: string | undefined;
}

const scheduling = (replicaScheduling: object): object => ({ placement: { replicaScheduling } });
const affinity = (clusterAffinity: object): object => ({ placement: { clusterAffinity } });
const tolerating = (toleration: object): object => ({ placement: { clusterTolerations: [toleration] } });
const spread = (constraint: object): object => ({ placement: { spreadConstraints: [constraint] } });
const podIp = { aliasLabelName: 'example.com/ip', jsonPath: '{.podIP}' };
const stateOf = (field: 'application' | 'cluster', ...rules: object[]): object => ({
  failover: { [field]: { statePreservation: { rules } } },
});
const local = { clusterNames: ['local'] };
const place = 'spec.placement';

export const WRONG_POLICIES: readonly WrongPolicy[] = [
  {
    what: 'no selectors',
    spec: { resourceSelectors: [] },
    field: 'spec.resourceSelectors',
    refusal: 'spec.resourceSelectors: Invalid value: spec.resourceSelectors in body should have at least 1 items',
  },
  {
    what: 'a selector without kind',
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1' }] },
    field: 'spec.resourceSelectors.0.kind',
    refusal: 'spec.resourceSelectors[0].kind: Required value',
  },
  {
    what: 'a selector for another namespace',
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'bank' }] },
    field: 'spec.resourceSelectors[0].namespace: must be shop, the namespace of the policy, or be left out',
    refusal: undefined,
  },
  {
    what: 'a selector with an operator without values',
    spec: {
      resourceSelectors: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          labelSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
        },
      ],
    },
    field: 'labelSelector',
    refusal: 'spec.resourceSelectors[0].labelSelector.matchExpressions[0].values: Invalid value',
  },
  {
    what: 'a priority that is no number',
    spec: { priority: 'high' },
    field: 'spec.priority',
    refusal: 'spec.priority: Invalid value: spec.priority in body must be of type integer',
  },
  {
    what: 'one affinity beside several',
    spec: { placement: { clusterAffinity: local, clusterAffinities: [{ affinityName: 'a', ...local }] } },
    field: `${place}.clusterAffinities: is not allowed beside clusterAffinity`,
    refusal: `${place}.clusterAffinities: Forbidden: is not allowed beside clusterAffinity`,
  },
  {
    what: 'two groups of one name',
    spec: { placement: { clusterAffinities: [{ affinityName: 'a' }, { affinityName: 'a' }] } },
    field: `${place}.clusterAffinities[1].affinityName: a is there twice`,
    refusal: `${place}.clusterAffinities[1]: Duplicate value`,
  },
  {
    what: 'a field that clusters do not have',
    spec: affinity({ fieldSelector: { matchExpressions: [{ key: 'country', operator: 'In', values: ['x'] }] } }),
    field: `${place}.clusterAffinity.fieldSelector.matchExpressions.0.key`,
    refusal: `${place}.clusterAffinity.fieldSelector.matchExpressions[0].key: Unsupported value: "country"`,
  },
  {
    what: 'an operator that fields do not have',
    spec: affinity({ fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'Exists', values: ['x'] }] } }),
    field: `${place}.clusterAffinity.fieldSelector.matchExpressions.0.operator`,
    refusal: `${place}.clusterAffinity.fieldSelector.matchExpressions[0].operator: Unsupported value: "Exists"`,
  },
  {
    what: 'overflow beside all clusters',
    spec: affinity({ overflowAffinities: [local] }),
    field: `${place}.clusterAffinity.overflowAffinities: needs labelSelector`,
    refusal: `${place}.clusterAffinity.overflowAffinities: Invalid value: needs labelSelector`,
  },
  {
    what: 'a tier of all clusters',
    spec: affinity({ ...local, overflowAffinities: [{ max: 3 }] }),
    field: `${place}.clusterAffinity.overflowAffinities[0]: must choose clusters`,
    refusal: `${place}.clusterAffinity.overflowAffinities[0]: Invalid value: must choose clusters`,
  },
  {
    what: 'a negative maximum',
    spec: affinity({ ...local, max: -1 }),
    field: `${place}.clusterAffinity.max`,
    refusal: `${place}.clusterAffinity.max: Invalid value: must not be negative`,
  },
  {
    what: 'a percentage above 100',
    spec: affinity({ ...local, max: '120%' }),
    field: `${place}.clusterAffinity.max`,
    refusal: `${place}.clusterAffinity.max: Invalid value`,
  },
  {
    what: 'a duration without unit',
    spec: affinity({ ...local, tryNextAfter: '90' }),
    field: `${place}.clusterAffinity.tryNextAfter`,
    refusal: `${place}.clusterAffinity.tryNextAfter: Invalid value`,
  },
  {
    what: 'a duration of days',
    spec: { placement: { avoidFor: '25h' } },
    field: `${place}.avoidFor: must not be longer than 24h`,
    refusal: `${place}.avoidFor: Invalid value: must not be longer than 24h`,
  },
  {
    what: 'another try before the first one is over',
    spec: { placement: { onRefusal: 'TryNext', avoidFor: '20s' } },
    field: `${place}.avoidFor: must be 30s or more with onRefusal TryNext`,
    refusal: `${place}.avoidFor: Invalid value: must be 30s or more with onRefusal TryNext`,
  },
  {
    what: 'an answer to refusals that there is not',
    spec: { placement: { onRefusal: 'Retry' } },
    field: `${place}.onRefusal`,
    refusal: `${place}.onRefusal: Unsupported value: "Retry"`,
  },
  {
    what: 'a toleration without key that asks for a value',
    spec: tolerating({ value: 'x' }),
    field: `${place}.clusterTolerations[0].operator: must be Exists when there is no key`,
    refusal: `${place}.clusterTolerations[0].operator: Invalid value: must be Exists when there is no key`,
  },
  {
    what: 'a toleration of every value that names one',
    spec: tolerating({ key: 'a', operator: 'Exists', value: 'x' }),
    field: `${place}.clusterTolerations[0].value: must be empty`,
    refusal: `${place}.clusterTolerations[0].value: Invalid value: must be empty`,
  },
  {
    what: 'a toleration by size',
    spec: tolerating({ key: 'a', operator: 'Gt', value: '3' }),
    field: `${place}.clusterTolerations.0.operator`,
    refusal: `${place}.clusterTolerations[0].operator: Unsupported value: "Gt"`,
  },
  {
    what: 'seconds of tolerance for NoSchedule',
    spec: tolerating({ key: 'a', effect: 'NoSchedule', tolerationSeconds: 5 }),
    field: `${place}.clusterTolerations[0].tolerationSeconds: is only for effect NoExecute`,
    refusal: `${place}.clusterTolerations[0].tolerationSeconds: Invalid value: is only for effect NoExecute`,
  },
  {
    what: 'spread over a field and a label',
    spec: spread({ spreadByField: 'zone', spreadByLabel: 'rack' }),
    field: `${place}.spreadConstraints[0].spreadByLabel: is not allowed beside spreadByField`,
    refusal: `${place}.spreadConstraints[0].spreadByLabel: Forbidden: is not allowed beside spreadByField`,
  },
  {
    what: 'a maximum of groups below the minimum',
    spec: spread({ minGroups: 3, maxGroups: 2 }),
    field: `${place}.spreadConstraints[0].maxGroups: must not be less than minGroups`,
    refusal: `${place}.spreadConstraints[0].maxGroups: Invalid value: must not be less than minGroups`,
  },
  {
    what: 'no groups at all',
    spec: spread({ maxGroups: 0 }),
    field: `${place}.spreadConstraints.0.maxGroups`,
    refusal: `${place}.spreadConstraints[0].maxGroups: Invalid value: ${place}.spreadConstraints[0].maxGroups in body should be greater than`,
  },
  {
    what: 'Duplicated',
    spec: scheduling({ replicaSchedulingType: 'Duplicated' }),
    field: `${place}.replicaScheduling.replicaSchedulingType: Duplicated is not offered`,
    refusal: `${place}.replicaScheduling.replicaSchedulingType: Invalid value: Duplicated is not offered: a pod of the host exists once`,
  },
  {
    what: 'Aggregated by weight',
    spec: scheduling({
      replicaDivisionPreference: 'Aggregated',
      weightPreference: { dynamicWeight: 'AvailableReplicas' },
    }),
    field: `${place}.replicaScheduling.weightPreference: is not allowed with Aggregated`,
    refusal: `${place}.replicaScheduling.weightPreference: Forbidden: is not allowed with Aggregated`,
  },
  {
    what: 'a weight of nothing',
    spec: scheduling({ weightPreference: { staticWeightList: [{ targetCluster: {}, weight: 0 }] } }),
    field: `${place}.replicaScheduling.weightPreference.staticWeightList.0.weight`,
    refusal: `${place}.replicaScheduling.weightPreference.staticWeightList[0].weight: Invalid value: ${place}.replicaScheduling.weightPreference.staticWeightList[0].weight in body`,
  },
  {
    what: 'preferences beside weights',
    spec: scheduling({ clusterPreferences: {}, weightPreference: {} }),
    field: `${place}.replicaScheduling.clusterPreferences: is not allowed with weightPreference or Aggregated`,
    refusal: `${place}.replicaScheduling.clusterPreferences: Forbidden: is not allowed with weightPreference or Aggregated`,
  },
  {
    what: 'a most below the fewest',
    spec: scheduling({ clusterPreferences: { clusters: { east: { minReplicas: 3, maxReplicas: 2 } } } }),
    field: `${place}.replicaScheduling.clusterPreferences.clusters[east].maxReplicas: must not be less than minReplicas`,
    refusal: `${place}.replicaScheduling.clusterPreferences.clusters[east].maxReplicas: Invalid value: must not be less than minReplicas`,
  },
  {
    what: 'overflow by static weights',
    spec: {
      placement: {
        clusterAffinity: { ...local, overflowAffinities: [{ clusterNames: ['a'] }] },
        replicaScheduling: {},
      },
    },
    field: `${place}.replicaScheduling: must be Aggregated, or use dynamicWeight`,
    refusal: `${place}.replicaScheduling: Invalid value: must be Aggregated, or use dynamicWeight`,
  },
  {
    what: 'a weight of scores that is too large',
    spec: { placement: { scoreWeights: { price: 101 } } },
    field: `${place}.scoreWeights.price`,
    refusal: `${place}.scoreWeights.price: Invalid value: ${place}.scoreWeights.price in body should be less than or equal to 100`,
  },
  ...(['onMemberLost', 'onUnschedulable', 'repatriate', 'divisionDrift', 'spreadViolation'] as const).flatMap(
    (field) => [
      {
        what: `a time that is none in ${field}`,
        spec: { failover: { [field]: { after: 'soon' } } },
        field: `spec.failover.${field}.after`,
        refusal: `spec.failover.${field}.after: Invalid value: spec.failover.${field}.after in body should match`,
      },
      {
        what: `more than a day in ${field}`,
        spec: { failover: { [field]: { after: '25h' } } },
        field: `spec.failover.${field}.after: must not be longer than 24h`,
        refusal: `spec.failover.${field}.after: Invalid value: must not be longer than 24h`,
      },
    ],
  ),
  ...(['onUnschedulable', 'repatriate', 'divisionDrift', 'spreadViolation'] as const).map((field) => ({
    what: `${field} without a time`,
    spec: { failover: { [field]: {} } },
    field: `spec.failover.${field}.after`,
    refusal: `spec.failover.${field}.after: Required value`,
  })),
  {
    what: 'an action for lost members that there is not',
    spec: { failover: { onMemberLost: { action: 'Delete' } } },
    field: 'spec.failover.onMemberLost.action',
    refusal:
      'spec.failover.onMemberLost.action: Unsupported value: "Delete": supported values: "Replace", "Hold", "ReplaceWhenFenced"',
  },
  ...(['application', 'cluster'] as const).flatMap((field) => [
    {
      what: `a state of ${field} under a label of Kubernetes`,
      spec: stateOf(field, { ...podIp, aliasLabelName: 'app.kubernetes.io/name' }),
      field: `spec.failover.${field}.statePreservation.rules[0].aliasLabelName: must not be a label of Kubernetes, of a controller of it, or of Spillway`,
      refusal: `spec.failover.${field}.statePreservation.rules[0].aliasLabelName: Invalid value: must not be a label of Kubernetes, of a controller of it, or of Spillway`,
    },
    {
      what: `a state of ${field} at a path that is none`,
      spec: stateOf(field, { ...podIp, jsonPath: '.podIP' }),
      field: `spec.failover.${field}.statePreservation.rules.0.jsonPath`,
      refusal: `spec.failover.${field}.statePreservation.rules[0].jsonPath: Invalid value: spec.failover.${field}.statePreservation.rules[0].jsonPath in body should match`,
    },
  ]),
  {
    what: 'a state under a label by which controllers know their pods',
    spec: stateOf('cluster', { ...podIp, aliasLabelName: 'pod-template-hash' }),
    field: 'spec.failover.cluster.statePreservation.rules[0].aliasLabelName: must not be a label of Kubernetes',
    refusal:
      'spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: must not be a label of Kubernetes',
  },
  {
    what: 'two states under one label',
    spec: stateOf('cluster', podIp, { ...podIp, jsonPath: '{.hostIP}' }),
    field: 'spec.failover.cluster.statePreservation.rules[1].aliasLabelName: example.com/ip is there twice',
    refusal: 'spec.failover.cluster.statePreservation.rules[1]: Duplicate value',
  },
  {
    what: 'more states than eight',
    spec: stateOf(
      'cluster',
      ...Array.from({ length: 9 }, (_, index) => ({ ...podIp, aliasLabelName: `example.com/ip-${String(index)}` })),
    ),
    field: 'spec.failover.cluster.statePreservation.rules',
    refusal: 'spec.failover.cluster.statePreservation.rules: Too many: 9: must have at most 8 items',
  },
  {
    what: 'an activation that there is not',
    spec: { failover: { activation: 'Now' } },
    field: 'spec.failover.activation',
    refusal: 'spec.failover.activation: Unsupported value: "Now": supported values: "Lazy", "Eager"',
  },
  {
    what: 'a way to go that there is not',
    spec: { failover: { cluster: { purgeMode: 'Immediately' } } },
    field: 'spec.failover.cluster.purgeMode',
    refusal:
      'spec.failover.cluster.purgeMode: Unsupported value: "Immediately": supported values: "Gracefully", "Directly", "Never"',
  },
  {
    what: 'no time to be Ready',
    spec: { failover: { cluster: { gracePeriodSeconds: 0 } } },
    field: 'spec.failover.cluster.gracePeriodSeconds',
    refusal:
      'spec.failover.cluster.gracePeriodSeconds: Invalid value: spec.failover.cluster.gracePeriodSeconds in body should be greater than or equal to 1',
  },
  {
    what: 'more than a day to be Ready',
    spec: { failover: { cluster: { gracePeriodSeconds: 86_401 } } },
    field: 'spec.failover.cluster.gracePeriodSeconds',
    refusal:
      'spec.failover.cluster.gracePeriodSeconds: Invalid value: spec.failover.cluster.gracePeriodSeconds in body should be less than or equal to 86400',
  },
  {
    what: 'an end of that time that there is not',
    spec: { failover: { cluster: { onTimeout: 'Wait' } } },
    field: 'spec.failover.cluster.onTimeout',
    refusal: 'spec.failover.cluster.onTimeout: Unsupported value: "Wait": supported values: "GiveBack", "Evict"',
  },
  {
    what: 'more than a day to be ill',
    spec: { failover: { application: { decisionConditions: { tolerationSeconds: 86_401 } } } },
    field: 'spec.failover.application.decisionConditions.tolerationSeconds',
    refusal:
      'spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: spec.failover.application.decisionConditions.tolerationSeconds in body should be less than or equal to 86400',
  },
  {
    what: 'less than no time to be ill',
    spec: { failover: { application: { decisionConditions: { tolerationSeconds: -1 } } } },
    field: 'spec.failover.application.decisionConditions.tolerationSeconds',
    refusal:
      'spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: spec.failover.application.decisionConditions.tolerationSeconds in body should be greater than or equal to 0',
  },
  {
    what: 'a choice on heal that there is not',
    spec: { failover: { onMemberLost: { onHeal: 'KeepBoth' } } },
    field: 'spec.failover.onMemberLost.onHeal',
    refusal:
      'spec.failover.onMemberLost.onHeal: Unsupported value: "KeepBoth": supported values: "KeepReplacement", "KeepOriginal", "LongestRunning"',
  },
  {
    what: 'a dry run that is neither true nor false',
    spec: { failover: { dryRun: 'yes' } },
    field: 'spec.failover.dryRun',
    refusal: 'spec.failover.dryRun: Invalid value: spec.failover.dryRun in body must be of type boolean',
  },
];
