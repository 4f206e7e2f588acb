import type { Pod } from '../../kube/core-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import { OWNER_KINDS } from '../../kube/owner-kinds.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import { apiVersionOf, PODS, type Resource } from '../../kube/resource.ts';
import type { OwnerChain } from '../../placement/owner-chain.ts';
import { manifestObject } from '../simulate/manifest-objects.ts';
import { podsOf } from '../simulate/workload-pods.ts';

/** A workload of the host, with a pod as its controller would make it. */
export interface HostWorkload {
  namespace: string;
  /** `Deployment/web` */
  of: string;
  pod: Pod;
  chain: OwnerChain;
}

/** Workloads that no other one makes; what goes where its nodes are is left out. `list`: none where they may not be listed. */
export async function hostWorkloads(list: (resource: Resource) => Promise<KubeObject[]>): Promise<HostWorkload[]> {
  const workloads: HostWorkload[] = [];
  for (const resource of [...OWNER_KINDS, PODS]) {
    for (const object of await list(resource)) {
      const workload = hostWorkload(object, resource);
      if (workload !== undefined) workloads.push(workload);
    }
  }
  return workloads;
}

function hostWorkload(raw: KubeObject, resource: Resource): HostWorkload | undefined {
  if (controllerOf(raw) !== undefined) return undefined;
  const { namespace = '' } = raw.metadata;
  const made = podsOf(manifestObject({ ...raw, apiVersion: apiVersionOf(resource), kind: resource.kind }), namespace);
  if (made === undefined) return undefined;
  const { of, pod, owners } = made;
  return { namespace, of, pod, chain: [{ ...pod, apiVersion: 'v1', kind: 'Pod' }, ...owners] };
}
