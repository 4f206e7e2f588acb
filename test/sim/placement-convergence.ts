import { workloadPlacementName, type WorkloadPlacement } from '../../src/api/workload-placement.ts';
import { revisionOf } from '../../src/placement/owner-chain.ts';
import { deploymentOf } from './deployments.ts';
import { asPod, isFinal } from './pod-shapes.ts';
import type { SimObject } from './sim-cluster.ts';
import type { World } from './world.ts';

const PLACEMENT = '/apis/spillway.dev/v1alpha1';
const KINDS = [
  { kind: 'ReplicaSet', plural: 'replicasets' },
  { kind: 'StatefulSet', plural: 'statefulsets' },
  { kind: 'Deployment', plural: 'deployments' },
] as const;

/**
 * Workloads under rules that have pods, and of which nothing says where these are, or something else than what is so, in words.
 * Whoever may write it may only just have come.
 */
export function unplaced(world: World): string[] {
  const { host } = world;
  if (Array.from(host.list(`${PLACEMENT}/clusterplacementpolicies`)).length === 0) return [];
  const pods = new Map<string, SimObject[]>();
  for (const pod of host.list('/api/v1/pods')) {
    for (const { uid } of pod.metadata.ownerReferences ?? []) pods.set(uid, [...(pods.get(uid) ?? []), pod]);
  }
  // Those of a Deployment are said of that.
  for (const set of host.list('/apis/apps/v1/replicasets')) {
    const uid = deploymentOf(set)?.uid;
    const own = pods.get(set.metadata.uid);
    if (uid === undefined || own === undefined) continue;
    pods.set(uid, [...(pods.get(uid) ?? []), ...own]);
    pods.delete(set.metadata.uid);
  }
  return KINDS.flatMap(({ kind, plural }) =>
    Array.from(host.list(`/apis/apps/v1/${plural}`)).flatMap(({ metadata: { name, namespace, uid } }) => {
      const placement = workloadPlacementName({ apiVersion: 'apps/v1', kind, name });
      const path = `${PLACEMENT}/namespaces/${namespace ?? ''}/workloadplacements/${placement}`;
      const found = host.get(path) as unknown as WorkloadPlacement | undefined;
      const own = pods.get(uid);
      if (own === undefined) return [];
      if (found?.spec.workload.uid !== uid) return [`it is not said where the pods of ${kind} ${name} are`];
      const placed = own.filter((pod) => holdsPlace(pod) && revisionOf(asPod(pod)) === found.status?.revision).length;
      const said = found.status?.placed;
      return said === placed ? [] : [`it is said that ${kind} ${name} has ${said} pods, it has ${placed}`];
    }),
  );
}

function holdsPlace(pod: SimObject): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinal(pod) && asPod(pod).spec.nodeName !== undefined;
}
