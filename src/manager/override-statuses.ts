import { type Cluster, clusterOf } from '../api/cluster.ts';
import { virtualNodesOf } from '../api/member-cluster.ts';
import { OverridePolicyStatuses } from '../host/override-policy-statuses.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { MemberClusterController } from '../members/member-cluster-controller.ts';
import { identitiesOfPod, tellsOwners } from '../overrides/owners.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { HostServices } from './host-services.ts';

/** What is said on override policies, by what this process knows of the members and, of those it acts for, of their pods. */
export function overridePolicyStatuses(
  services: HostServices,
  controller: Pick<MemberClusterController, 'members' | 'named'>,
): OverridePolicyStatuses {
  const { host, overridePolicies, ownerKinds, podOwners, boundPods, logger } = services;
  const podsIn = (member: string, namespace: string | undefined): readonly Pod[] | undefined => {
    const found = controller.named(member);
    if (found === undefined) return undefined;
    const pods: Pod[] = [];
    for (const { name } of virtualNodesOf(found)) {
      const bound = boundPods.get(name);
      if (bound === undefined || !bound.cache.hasSynced) return undefined;
      for (const pod of namespace === undefined ? bound.cache.values() : bound.in(namespace)) pods.push(pod);
    }
    return pods;
  };
  /** Owners that have to be read are known at one of the next looks. */
  const identitiesOf = (pod: Pod): OverrideSubject['identities'] | undefined => {
    const known = podOwners.known(pod);
    if (known === undefined) podOwners.want(pod);
    return known;
  };
  return new OverridePolicyStatuses({
    host,
    policies: overridePolicies,
    members: (): Cluster[] | undefined => controller.members?.map((member) => clusterOf(member)),
    kinds: ownerKinds,
    podsIn,
    identitiesOf: (pod, policy) => (tellsOwners(pod, [policy]) ? identitiesOfPod(pod) : identitiesOf(pod)),
    logger,
  });
}
