import { workloadPlacementName } from '../../src/api/workload-placement.ts';
import type { World } from './world.ts';

const PLACEMENT = '/apis/spillway.dev/v1alpha1';
const KINDS = [
  { kind: 'ReplicaSet', plural: 'replicasets' },
  { kind: 'StatefulSet', plural: 'statefulsets' },
] as const;

/** Workloads under rules that have pods, and of which nothing says where these are, in words. Whoever may write it may only just have come. */
export function unplaced(world: World): string[] {
  const { host } = world;
  if (Array.from(host.list(`${PLACEMENT}/clusterplacementpolicies`)).length === 0) return [];
  const owners = new Set<string>();
  for (const { metadata } of host.list('/api/v1/pods')) {
    for (const { uid } of metadata.ownerReferences ?? []) owners.add(uid);
  }
  return KINDS.flatMap(({ kind, plural }) =>
    Array.from(host.list(`/apis/apps/v1/${plural}`)).flatMap(({ metadata: { name, namespace, uid } }) => {
      const placement = workloadPlacementName({ apiVersion: 'apps/v1', kind, name });
      const found = host.get(`${PLACEMENT}/namespaces/${namespace ?? ''}/workloadplacements/${placement}`);
      const of = (found?.['spec'] as { workload: { uid: string } } | undefined)?.workload.uid;
      return owners.has(uid) && of !== uid ? [`it is not said where the pods of ${kind} ${name} are`] : [];
    }),
  );
}
