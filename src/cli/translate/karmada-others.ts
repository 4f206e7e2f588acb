import { type JsonRecord, textOf } from '../../kube/json-fields.ts';
import type { Fields } from './fields.ts';
import type { Remarks } from './remarks.ts';
import { clustersIn } from './selectors.ts';

const NO_EXECUTE =
  'moves pods as soon as the taint stands, one after the other; Karmada takes it only with --allow-no-execute-taint-policy of its webhook, and evicts only with --enable-no-execute-taint-eviction';

/** The spec of a ClusterTaintPolicy. */
export function taintPolicySpec(spec: Fields, remarks: Remarks): JsonRecord {
  const target = spec.within('targetClusters');
  const conditions = (name: string): JsonRecord => {
    const found = spec.each(name).map((condition) => {
      const one = condition.same('conditionType', 'operator', 'statusValues');
      condition.end();
      return one;
    });
    return found.length === 0 ? {} : { [name]: found };
  };
  const taints = spec.each('taints').map((taint) => {
    const one = taint.same('key', 'value', 'effect');
    taint.end('timeAdded');
    if (one['effect'] === 'NoExecute') remarks.differs(taint.of('effect'), NO_EXECUTE);
    return one;
  });
  const made = {
    ...(target === undefined ? {} : { targetClusters: clustersIn(target) }),
    ...conditions('addOnConditions'),
    ...conditions('removeOnConditions'),
    taints,
  };
  spec.end();
  remarks.differs(spec.of('taints'), 'go with the policy when it is deleted');
  return made;
}

/** The spec of a WorkloadRebalancer; undefined when it names no workload in a namespace. */
export function rebalancerSpec(spec: Fields, remarks: Remarks): JsonRecord | undefined {
  const workloads = spec.each('workloads').flatMap((workload): JsonRecord[] => {
    const one = workload.same('apiVersion', 'kind', 'namespace', 'name');
    workload.end();
    if (textOf(one['namespace']) !== undefined) return [one];
    remarks.lost(workload.path, 'is in no namespace, so it has no pods');
    return [];
  });
  const ttl = spec.same('ttlSecondsAfterFinished');
  spec.end();
  return workloads.length === 0 ? undefined : { workloads, ...ttl };
}

/** Kinds of Karmada and KubeFed without a counterpart, by group and kind, and what there is instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  'autoscaling.karmada.io/FederatedHPA': 'a HorizontalPodAutoscaler of the host counts the pods of all clusters',
  'autoscaling.karmada.io/CronFederatedHPA': 'scale the workload of the host by a CronJob',
  'policy.karmada.io/FederatedResourceQuota':
    'a ResourceQuota of the host counts the pods of all clusters; quotas in members are heeded as they are',
  'cluster.karmada.io/Cluster': 'kubectl spillway join makes a MemberCluster',
  'networking.karmada.io/MultiClusterService': 'spec.services of a MemberCluster lets Services of the host stand there',
  'networking.karmada.io/MultiClusterIngress':
    'an Ingress of the host leads to pods in all members whose networks are routed',
  'config.karmada.io/ResourceInterpreterCustomization': 'is not needed: only pods go to members',
  'core.kubefed.io/KubeFedCluster': 'kubectl spillway join makes a MemberCluster',
  'core.kubefed.io/FederatedTypeConfig': 'is not needed: only pods go to members',
  'types.kubefed.io/FederatedNamespace': 'is not needed: namespaces of the host stand for themselves',
};
const GROUPS = /(^|\.)(karmada|kubefed)\.io$/;

/** What there is in place of the object; undefined: it is neither of Karmada nor of KubeFed. */
export function insteadOf(apiVersion: string, kind: string): string | undefined {
  const group = apiVersion.split('/')[0] ?? '';
  if (!GROUPS.test(group)) return undefined;
  const known = INSTEAD[`${group}/${kind}`];
  if (known !== undefined) return known;
  return group === 'types.kubefed.io' ? 'is not needed: what pods refer to goes with them' : 'has no counterpart here';
}
