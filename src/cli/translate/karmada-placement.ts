import { listOf, textOf, type JsonRecord } from '../../kube/json-fields.ts';
import { Fields, given } from './fields.ts';
import { activationRemark, hasStaticWeights } from './karmada-activation.ts';
import { failoverFrom, type LostMemberRule } from './karmada-failover.ts';
import type { Remarks } from './remarks.ts';
import { clustersIn, membersOnly, placesIn, selectorsOfWorkloads } from './selectors.ts';

/** Fields that have no counterpart, each with what there is instead. `lost`: what it did is not done any more. */
const ELSEWHERE: Readonly<Record<string, { says: string; lost: boolean }>> = {
  propagateDeps: { says: 'is not needed: what pods refer to goes with them', lost: false },
  association: { says: 'is not needed', lost: false },
  conflictResolution: { says: 'objects of others in a member are never overwritten', lost: false },
  preemption: { says: 'is not needed: the best policy counts for each pod that comes', lost: false },
  preserveResourcesOnDeletion: {
    says: 'is not needed: pods live as long as their controller in the host',
    lost: false,
  },
  dependentOverrides: { says: 'nothing waits for override policies: apply those before the workload', lost: true },
  schedulePriority: { says: 'give the pods a PriorityClass', lost: true },
  suspension: {
    says: 'no policy can be suspended; spec.unschedulable of a MemberCluster keeps new pods of all workloads away, exclude those of one',
    lost: true,
  },
};

/** The spec of a PlacementPolicy from that of a PropagationPolicy; undefined when it selects nothing that makes pods. */
export function placementSpec(spec: Fields, remarks: Remarks): JsonRecord | undefined {
  const resourceSelectors = selectorsOfWorkloads(spec, remarks);
  const placed = placementFrom(new Fields(spec.take('placement'), spec.of('placement'), remarks), remarks);
  const failover = failoverFrom(spec.within('failover'), placed.lostMember, remarks);
  for (const [name, { says, lost }] of Object.entries(ELSEWHERE)) {
    if (isUnset(spec.take(name))) continue;
    if (lost) remarks.lost(spec.of(name), says);
    else remarks.differs(spec.of(name), says);
  }
  const scheduler = textOf(spec.take('schedulerName')) ?? 'default-scheduler';
  if (scheduler !== 'default-scheduler')
    remarks.lost(spec.of('schedulerName'), `name ${scheduler} in the pods, if the host has such a scheduler`);
  activationRemark(spec, placed.placement, remarks);
  const priority = spec.take('priority');
  spec.end();
  if (resourceSelectors === undefined) {
    remarks.lost(spec.of('resourceSelectors'), 'selects nothing that makes pods, so there is nothing to place');
    return undefined;
  }
  return given({ resourceSelectors, priority, placement: placed.placement, failover });
}

/** Fields that say nothing: false, or an empty list. */
function isUnset(value: unknown): boolean {
  return value === undefined || value === false || (Array.isArray(value) && value.length === 0);
}

function placementFrom(from: Fields, remarks: Remarks): { placement: JsonRecord; lostMember: LostMemberRule } {
  const { tolerations, lostMember } = tolerationsFrom(from, remarks);
  const affinity = from.within('clusterAffinity');
  const groups = from.each('clusterAffinities').map((group) => {
    const tiers = group.each('overflowAffinities').map((tier) => {
      const one = placesIn(tier, 'affinityName');
      tier.end();
      return one;
    });
    const one = placesIn(group, 'affinityName');
    group.end();
    return { ...one, ...(tiers.length === 0 ? {} : { overflowAffinities: tiers }) };
  });
  if (groups.length > 1) {
    remarks.differs(
      from.of('clusterAffinities'),
      'a workload stays in the group that was chosen for it, and pods wait there when it is full; to go on to others use overflowAffinities',
    );
  }
  const clusterAffinity = affinity === undefined ? membersOnly({}) : singleAffinity(affinity);
  if (from.take('workloadAffinity') !== undefined) {
    remarks.lost(from.of('workloadAffinity'), 'give the pods a podAffinity with topologyKey spillway.dev/member');
  }
  const spreadConstraints = spreadFrom(from, remarks);
  const named = groups.length > 0 ? [] : listOf(clusterAffinity['clusterNames']);
  const replicaScheduling = divisionFrom(from, named.length === 1, remarks);
  if (spreadConstraints.length > 0 && hasStaticWeights(replicaScheduling))
    remarks.differs(
      from.of('spreadConstraints'),
      'hold with static weights, too, which Karmada divides by as if there were none: leave them out to keep its division',
    );
  from.end();
  const placement = given({
    ...(groups.length > 0 ? { clusterAffinities: groups } : { clusterAffinity }),
    clusterTolerations: tolerations.length === 0 ? undefined : tolerations,
    spreadConstraints: spreadConstraints.length === 0 ? undefined : spreadConstraints,
    replicaScheduling,
  });
  return { placement, lostMember };
}

function singleAffinity(from: Fields): JsonRecord {
  const one = placesIn(from);
  from.end();
  return one;
}

/** Taints that Karmada puts on a Cluster by itself. For the first one a rule of failover stands here, for the second one nothing. */
const UNREACHABLE = 'cluster.karmada.io/unreachable';
const NOT_READY = 'cluster.karmada.io/not-ready';

function tolerationsFrom(from: Fields, remarks: Remarks): { tolerations: JsonRecord[]; lostMember: LostMemberRule } {
  let lostMember: LostMemberRule = undefined;
  const tolerations = from.each('clusterTolerations').flatMap((toleration): JsonRecord[] => {
    const one = toleration.same('key', 'operator', 'value', 'effect', 'tolerationSeconds');
    toleration.end();
    const key = textOf(one['key']);
    const { effect, tolerationSeconds } = one;
    const isForATime = typeof tolerationSeconds === 'number';
    if (key !== UNREACHABLE && key !== NOT_READY) {
      if (isForATime)
        remarks.differs(
          toleration.of('tolerationSeconds'),
          'lets pods stay for so long; new ones do not come, as they would be moved out again',
        );
      return [one];
    }
    if (effect === 'NoSchedule') {
      remarks.lost(toleration.path, 'no new pods are sent to a member that does not answer, or is not ready');
    } else if (key === UNREACHABLE) {
      lostMember = sooner(lostMember, isForATime ? { after: tolerationSeconds } : 'stays');
      remarks.differs(toleration.path, 'is what failover.onMemberLost says');
    } else if (isForATime) {
      remarks.lost(toleration.path, 'pods stay in a member that answers and is not ready, for however long');
    } else {
      remarks.differs(toleration.path, 'is not needed: pods stay in a member that answers and is not ready');
    }
    return [];
  });
  return { tolerations, lostMember };
}

/** Of several tolerations of one taint the shortest counts. */
function sooner(a: LostMemberRule, b: LostMemberRule): LostMemberRule {
  if (a === undefined || a === 'stays') return b ?? a;
  return b === undefined || b === 'stays' || a.after <= b.after ? a : b;
}

function spreadFrom(from: Fields, remarks: Remarks): JsonRecord[] {
  return from.each('spreadConstraints').map((constraint) => {
    const { maxGroups, minGroups, ...by } = constraint.same('spreadByField', 'spreadByLabel', 'maxGroups', 'minGroups');
    constraint.end();
    if (maxGroups === 0) remarks.differs(constraint.of('maxGroups'), '0 is no limit, which is said by leaving it out');
    return given({
      ...by,
      minGroups: minGroups === 0 ? undefined : minGroups,
      maxGroups: maxGroups === 0 ? undefined : maxGroups,
    });
  });
}

/** Undefined: each pod goes to the best cluster, which of one cluster is the same as all replicas there. */
function divisionFrom(from: Fields, oneCluster: boolean, remarks: Remarks): JsonRecord | undefined {
  const found = from.within('replicaScheduling');
  const type = textOf(found?.take('replicaSchedulingType')) ?? 'Duplicated';
  const path = from.of('replicaScheduling');
  const preference = textOf(found?.take('replicaDivisionPreference'));
  const weights = found?.within('weightPreference');
  const staticWeightList = (weights?.each('staticWeightList') ?? []).map((weight) => {
    const target = weight.within('targetCluster');
    const one = { targetCluster: target === undefined ? {} : clustersIn(target), weight: weight.take('weight') };
    weight.end();
    return one;
  });
  const dynamicWeight = weights?.take('dynamicWeight');
  weights?.end();
  found?.end();
  if (type === 'Duplicated') {
    if (!oneCluster)
      remarks.lost(
        path,
        'Duplicated gives every cluster all replicas, which a workload of the host cannot have: now each pod goes to the best cluster; ' +
          'make a workload for each cluster, or divide with Divided',
      );
    return undefined;
  }
  if (preference === 'Aggregated') {
    if (weights !== undefined) remarks.differs(`${path}.weightPreference`, 'says nothing beside Aggregated: left out');
    return { replicaSchedulingType: type, replicaDivisionPreference: preference };
  }
  return given({
    replicaSchedulingType: type,
    replicaDivisionPreference: preference ?? 'Weighted',
    weightPreference:
      staticWeightList.length === 0 && dynamicWeight === undefined
        ? undefined
        : given({
            staticWeightList: staticWeightList.length === 0 ? undefined : staticWeightList,
            dynamicWeight,
          }),
  });
}
