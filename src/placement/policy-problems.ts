import type { Failover } from '../api/failover.ts';
import type { PlacementTier } from '../api/cluster-tiers.ts';
import type { Placement } from '../api/placement.ts';
import type { ReplicaScheduling } from '../api/replica-scheduling.ts';
import type { PlacementPolicy } from '../api/placement-policy.ts';
import type { ClusterAffinity } from '../api/selectors.ts';
import { isTakenLabel, type StatePreservation, TAKEN_LABEL } from '../api/state-preservation.ts';
import { parseDuration } from './duration.ts';

type Problem = (path: string, message: string) => void;

/**
 * What makes a policy useless beyond the types of its fields, each with the field's path: the rules of the CRD once more,
 * for objects that are older than it, and those that a CRD cannot express. Empty when the policy can be used.
 */
export function policyProblems({ metadata, spec }: PlacementPolicy): string[] {
  const problems: string[] = [];
  const add: Problem = (path, message) => problems.push(`${path}: ${message}`);
  for (const [index, selector] of spec.resourceSelectors.entries()) {
    const path = `spec.resourceSelectors[${String(index)}]`;
    const { namespace } = selector;
    if (metadata.namespace !== undefined && namespace !== undefined && namespace !== metadata.namespace) {
      add(`${path}.namespace`, `must be ${metadata.namespace}, the namespace of the policy, or be left out`);
    }
  }
  checkPlacement(spec.placement, add);
  checkFailover(spec.failover, add);
  return problems;
}

function checkFailover(failover: Failover = {}, add: Problem): void {
  const { onMemberLost, onUnschedulable, repatriate, divisionDrift, spreadViolation } = failover;
  const all = { onMemberLost, onUnschedulable, repatriate, divisionDrift, spreadViolation };
  for (const [field, value] of Object.entries(all)) {
    if (value?.after === undefined || parseDuration(value.after) <= DAY) continue;
    add(`spec.failover.${field}.after`, 'must not be longer than 24h');
  }
  checkState(failover.application?.statePreservation, 'spec.failover.application', add);
  checkState(failover.cluster?.statePreservation, 'spec.failover.cluster', add);
}

function checkState({ rules }: StatePreservation = { rules: [] }, path: string, add: Problem): void {
  const names = new Set<string>();
  for (const [index, { aliasLabelName }] of rules.entries()) {
    const own = `${path}.statePreservation.rules[${String(index)}].aliasLabelName`;
    if (isTakenLabel(aliasLabelName)) add(own, TAKEN_LABEL);
    if (names.has(aliasLabelName)) add(own, `${aliasLabelName} is there twice`);
    names.add(aliasLabelName);
  }
}

function checkPlacement(placement: Placement, add: Problem): void {
  const path = 'spec.placement';
  const { clusterAffinity, clusterAffinities } = placement;
  if (clusterAffinity !== undefined && clusterAffinities !== undefined) {
    add(`${path}.clusterAffinities`, 'is not allowed beside clusterAffinity');
  }
  if (clusterAffinity !== undefined) checkGroup(clusterAffinity, `${path}.clusterAffinity`, add);
  const names = new Set<string>();
  for (const [index, group] of (clusterAffinities ?? []).entries()) {
    const own = `${path}.clusterAffinities[${String(index)}]`;
    if (names.has(group.affinityName)) add(`${own}.affinityName`, `${group.affinityName} is there twice`);
    names.add(group.affinityName);
    checkGroup(group, own, add);
  }
  checkTolerations(placement, add);
  checkSpread(placement, add);
  if (placement.replicaScheduling !== undefined) checkDivision(placement.replicaScheduling, placement, add);
  const avoidForMs = parseDuration(placement.avoidFor);
  if (avoidForMs > DAY) add(`${path}.avoidFor`, 'must not be longer than 24h');
  if (placement.onRefusal === 'TryNext' && avoidForMs < LEAST_TO_TRY_NEXT) {
    const message = 'must be 30s or more with onRefusal TryNext';
    add(`${path}.avoidFor`, `${message}: else the pod that comes instead could go to the same member again`);
  }
}

const DAY = 24 * 3_600_000;
const LEAST_TO_TRY_NEXT = 30_000;

function checkGroup(
  group: PlacementTier & { overflowAffinities?: readonly PlacementTier[] },
  path: string,
  add: Problem,
): void {
  checkTier(group, path, add);
  const tiers = group.overflowAffinities ?? [];
  if (tiers.length > 0 && !choosesClusters(group)) {
    const message =
      'needs labelSelector, fieldSelector or clusterNames beside it: nothing is left over by all clusters';
    add(`${path}.overflowAffinities`, message);
  }
  for (const [index, tier] of tiers.entries()) {
    const own = `${path}.overflowAffinities[${String(index)}]`;
    if (!choosesClusters(tier)) add(own, 'must choose clusters by labelSelector, fieldSelector or clusterNames');
    checkTier(tier, own, add);
  }
}

function checkTier(tier: PlacementTier, path: string, add: Problem): void {
  if (tier.tryNextAfter !== undefined && parseDuration(tier.tryNextAfter) > DAY) {
    add(`${path}.tryNextAfter`, 'must not be longer than 24h');
  }
}

function choosesClusters({ labelSelector, fieldSelector, clusterNames }: ClusterAffinity): boolean {
  return labelSelector !== undefined || fieldSelector !== undefined || clusterNames !== undefined;
}

function checkTolerations({ clusterTolerations = [] }: Placement, add: Problem): void {
  for (const [index, { key, operator, value = '', effect, tolerationSeconds }] of clusterTolerations.entries()) {
    const path = `spec.placement.clusterTolerations[${String(index)}]`;
    if (key === undefined && operator !== 'Exists') add(`${path}.operator`, 'must be Exists when there is no key');
    if (value !== '' && operator === 'Exists') add(`${path}.value`, 'must be empty when operator is Exists');
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      add(`${path}.tolerationSeconds`, 'is only for effect NoExecute');
    }
  }
}

function checkSpread({ spreadConstraints = [] }: Placement, add: Problem): void {
  for (const [index, { spreadByField, spreadByLabel, minGroups, maxGroups }] of spreadConstraints.entries()) {
    const path = `spec.placement.spreadConstraints[${String(index)}]`;
    if (spreadByField !== undefined && spreadByLabel !== undefined) {
      add(`${path}.spreadByLabel`, 'is not allowed beside spreadByField');
    }
    if (maxGroups !== undefined && maxGroups < minGroups) add(`${path}.maxGroups`, 'must not be less than minGroups');
  }
}

function checkDivision(scheduling: ReplicaScheduling, placement: Placement, add: Problem): void {
  const path = 'spec.placement.replicaScheduling';
  const { replicaSchedulingType, replicaDivisionPreference, weightPreference, clusterPreferences } = scheduling;
  const aggregated = replicaDivisionPreference === 'Aggregated';
  if (replicaSchedulingType === 'Duplicated') add(`${path}.replicaSchedulingType`, 'Duplicated is not offered');
  if (weightPreference !== undefined && aggregated) {
    add(`${path}.weightPreference`, 'is not allowed with Aggregated, which divides by free room');
  }
  if (clusterPreferences !== undefined && (weightPreference !== undefined || aggregated)) {
    add(`${path}.clusterPreferences`, 'is not allowed with weightPreference or Aggregated');
  }
  for (const [name, { minReplicas, maxReplicas }] of Object.entries(clusterPreferences?.clusters ?? {})) {
    if (maxReplicas !== undefined && maxReplicas < minReplicas) {
      add(`${path}.clusterPreferences.clusters[${name}].maxReplicas`, 'must not be less than minReplicas');
    }
  }
  const overflows = [placement.clusterAffinity, ...(placement.clusterAffinities ?? [])].some(
    (group) => group?.overflowAffinities !== undefined,
  );
  if (overflows && !aggregated && weightPreference?.dynamicWeight === undefined) {
    const message = 'must be Aggregated, or use dynamicWeight, or be left out when there are overflowAffinities';
    add(path, `${message}: static weights do not ask for room, so nothing would ever overflow`);
  }
}
