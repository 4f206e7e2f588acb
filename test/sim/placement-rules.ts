import type { JsonObject } from '../../src/kube/json-equal.ts';
import type { Random } from './random.ts';
import type { SimObject } from './sim-cluster.ts';

interface Rules {
  readonly path: string;
  readonly policy: JsonObject;
}

/** Rules that find a place for every pod in the end, as long as the members are well. */
const PLACEMENTS: readonly JsonObject[] = [
  {},
  { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } },
  {
    clusterAffinities: [
      { affinityName: 'first', clusterNames: ['west'] },
      { affinityName: 'second', clusterNames: ['east'] },
    ],
  },
  { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } },
  {
    replicaScheduling: {
      weightPreference: {
        staticWeightList: [
          { targetCluster: { clusterNames: ['east'] }, weight: 1 },
          { targetCluster: { clusterNames: ['west'] }, weight: 2 },
        ],
      },
      whenFull: 'TryNext',
    },
  },
  { replicaScheduling: { clusterPreferences: { rebalance: true } } },
  { spreadConstraints: [{ spreadByField: 'cluster', minGroups: 2, whenUnsatisfiable: 'ScheduleAnyway' }] },
];

function somePlacement(random: Random): JsonObject {
  return {
    ...random.pick(PLACEMENTS),
    onRefusal: random.chance(0.5) ? 'TryNext' : 'Stay',
    avoidFor: random.chance(0.5) ? '30s' : '5m',
  };
}

/** The policy as somebody has edited it: what else it says stays as it is. */
export function edited(policy: SimObject, random: Random): JsonObject {
  const { spec, ...rest } = policy as SimObject & { spec: JsonObject };
  return { ...rest, spec: { ...spec, placement: somePlacement(random) } };
}

/** A policy for all pods and perhaps one for the ReplicaSets of a namespace, by path of their kind. */
export function placementRules(random: Random): Rules[] {
  const spec = (selector: JsonObject): JsonObject => ({
    resourceSelectors: [selector],
    placement: somePlacement(random),
    failover: {
      ...(random.chance(0.3) ? {} : { onMemberLost: { after: random.pick(['1s', '10s', '1m']) ?? '1m' } }),
      ...(random.chance(0.5) ? {} : { spreadViolation: { after: random.pick(['5s', '30s']) ?? '5s' } }),
      ...(random.chance(0.5)
        ? {}
        : { application: { decisionConditions: { tolerationSeconds: random.pick([0, 20, 60]) ?? 60 } } }),
    },
  });
  const apiVersion = 'spillway.dev/v1alpha1';
  const path = `/apis/${apiVersion}`;
  const forAll = {
    path: `${path}/clusterplacementpolicies`,
    policy: {
      apiVersion,
      kind: 'ClusterPlacementPolicy',
      metadata: { name: 'all' },
      spec: spec({ apiVersion: 'v1', kind: 'Pod' }),
    },
  };
  if (random.chance(0.5)) return [healing(forAll, random)];
  const forSome = {
    path: `${path}/namespaces/shop/placementpolicies`,
    policy: {
      apiVersion,
      kind: 'PlacementPolicy',
      metadata: { name: 'some', namespace: 'shop' },
      spec: spec({ apiVersion: 'apps/v1', kind: 'ReplicaSet' }),
    },
  };
  return [healing(forAll, random), healing(forSome, random)];
}

/** The label under which pods hand on whether they were Ready. */
export const HANDED_ON = 'example.com/was-ready';

/** What pods showed is handed on, by each of these rules. */
export function handingOn(rules: readonly Rules[]): Rules[] {
  const state = {
    statePreservation: {
      rules: [{ aliasLabelName: HANDED_ON, jsonPath: '{.conditions[?(@.type=="Ready")].status}' }],
    },
  };
  return rules.map(({ path, policy }) => {
    const spec = policy['spec'] as { failover: { application?: JsonObject } };
    const { application } = spec.failover;
    const failover = {
      ...spec.failover,
      cluster: state,
      ...(application === undefined ? {} : { application: { ...application, ...state } }),
    };
    return { path, policy: { ...policy, spec: { ...spec, failover } } };
  });
}

/** Which of the two stays when a member that was lost answers again. */
function healing(rules: Rules, random: Random): Rules {
  const onHeal = random.pick([undefined, 'KeepOriginal', 'LongestRunning']);
  const spec = rules.policy['spec'] as { failover: { onMemberLost?: JsonObject } };
  if (onHeal !== undefined) spec.failover.onMemberLost = { ...spec.failover.onMemberLost, onHeal };
  return rules;
}
