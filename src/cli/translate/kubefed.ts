import { type JsonRecord, recordOf, textOf } from '../../kube/json-fields.ts';
import { type Fields, given } from './fields.ts';
import type { Remarks } from './remarks.ts';
import { membersOnly } from './selectors.ts';

/** Kinds of KubeFed that hold a workload, each with that. */
export const FEDERATED: Readonly<Record<string, { apiVersion: string; kind: string }>> = {
  FederatedDeployment: { apiVersion: 'apps/v1', kind: 'Deployment' },
  FederatedReplicaSet: { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  FederatedStatefulSet: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  FederatedJob: { apiVersion: 'batch/v1', kind: 'Job' },
};

/** A workload as KubeFed has it: which clusters, and what differs there. */
export interface FederatedWorkload {
  readonly selector: JsonRecord;
  readonly affinity: JsonRecord;
  /** How many replicas each cluster that is named has. */
  readonly replicas: ReadonlyMap<string, number>;
  readonly overrideRules: readonly JsonRecord[];
}

export function federatedWorkload(
  object: { kind: string; metadata: { name: string } },
  spec: Fields,
  remarks: Remarks,
): FederatedWorkload {
  const selector = { ...FEDERATED[object.kind], name: object.metadata.name };
  const template = recordOf(spec.take('template'));
  remarks.differs(spec.of('template'), `apply it as a ${textOf(selector.kind) ?? 'workload'} of the host`);
  const placement = spec.within('placement');
  const names = placement?.each('clusters').map((cluster) => textOf(cluster.take('name')) ?? '') ?? [];
  const labelSelector = placement?.take('clusterSelector');
  const isNamed = placement?.take('clusters') !== undefined;
  placement?.end();
  if (!isNamed && labelSelector === undefined)
    remarks.lost(spec.of('placement'), 'chose no cluster; now all members are meant');
  const usual = replicasOf(template);
  const replicas = new Map(names.map((name) => [name, usual]));
  const overrideRules = spec.each('overrides').flatMap((override): JsonRecord[] => {
    const cluster = textOf(override.take('clusterName')) ?? '';
    const plaintext = override.each('clusterOverrides').flatMap((change): JsonRecord[] => {
      const [path, value] = [textOf(change.take('path')) ?? '', change.take('value')];
      const operator = textOf(change.take('op')) ?? 'replace';
      change.end();
      if (path !== '/spec/replicas') return [given({ path, operator, value })];
      if (replicas.has(cluster) && typeof value === 'number') replicas.set(cluster, value);
      return [];
    });
    override.end();
    return plaintext.length === 0 ? [] : [{ targetCluster: { clusterNames: [cluster] }, overriders: { plaintext } }];
  });
  spec.end('retainReplicas');
  const affinity = membersOnly(isNamed ? { clusterNames: names } : given({ labelSelector }));
  return { selector, affinity, replicas, overrideRules };
}

function replicasOf(template: JsonRecord | undefined): number {
  const replicas = recordOf(template?.['spec'])?.['replicas'];
  return typeof replicas === 'number' ? replicas : 1;
}

/** The spec of the PlacementPolicy of a workload that has no ReplicaSchedulingPreference: each cluster has a number of its own. */
export function placementOfFederated(
  { selector, affinity, replicas }: FederatedWorkload,
  remarks: Remarks,
): JsonRecord {
  const resourceSelectors = [selector];
  const counted = [...replicas].filter(([, count]) => count > 0);
  if (counted.length === 0) {
    remarks.lost(
      'spec.template',
      'every cluster had all replicas, which a workload of the host cannot have: now each pod goes to the best cluster',
    );
    return { resourceSelectors, placement: { clusterAffinity: affinity } };
  }
  const total = counted.reduce((sum, [, count]) => sum + count, 0);
  remarks.differs('spec.template.spec.replicas', `set ${total} in the host: the replicas of all clusters together`);
  if (counted.length === 1) return { resourceSelectors, placement: { clusterAffinity: affinity } };
  const staticWeightList = counted.map(([name, weight]) => ({ targetCluster: { clusterNames: [name] }, weight }));
  const replicaScheduling = {
    replicaSchedulingType: 'Divided',
    replicaDivisionPreference: 'Weighted',
    weightPreference: { staticWeightList },
  };
  return { resourceSelectors, placement: { clusterAffinity: affinity, replicaScheduling } };
}

/** What a ReplicaSchedulingPreference is for: the kind of KubeFed, whose name is its own. */
export function targetKindOf(spec: unknown): string {
  return textOf(recordOf(spec)?.['targetKind']) ?? '';
}

/** The spec of a PlacementPolicy from that of a ReplicaSchedulingPreference; `workload` is its target where that is known. */
export function placementOfPreference(
  name: string,
  spec: Fields,
  workload: FederatedWorkload | undefined,
  remarks: Remarks,
): JsonRecord | undefined {
  const kind = textOf(spec.take('targetKind')) ?? '';
  const target = FEDERATED[kind];
  const total = spec.take('totalReplicas');
  const rebalance = spec.take('rebalance');
  const intersects = spec.take('intersectWithClusterSelector') === true;
  const clusters = spec.within('clusters');
  const preferences = (clusters?.names ?? []).map((cluster) => {
    const one = clusters?.within(cluster);
    const limits = one?.same('minReplicas', 'maxReplicas', 'weight') ?? {};
    one?.end();
    return [cluster, limits] as const;
  });
  spec.end();
  if (target === undefined) {
    remarks.lost(spec.of('targetKind'), `${kind} has no replicas to divide`);
    return undefined;
  }
  remarks.differs(spec.of('totalReplicas'), `set ${String(total)} as replicas of the ${target.kind}`);
  if (intersects && workload === undefined) {
    remarks.lost(
      spec.of('intersectWithClusterSelector'),
      `translate the ${kind} in the same go: without it nobody knows which clusters it chooses`,
    );
  }
  const clusterAffinity = intersects && workload !== undefined ? workload.affinity : membersOnly({});
  const replicaScheduling = {
    clusterPreferences: given({
      rebalance,
      division: 'Remainder',
      clusters: preferences.length === 0 ? undefined : Object.fromEntries(preferences),
    }),
  };
  return { resourceSelectors: [{ ...target, name }], placement: { clusterAffinity, replicaScheduling } };
}
