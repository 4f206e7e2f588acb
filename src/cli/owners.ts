import type { Pod } from '../kube/core-v1.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { apiVersionOf, type Resource } from '../kube/resource.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { MissingRight, type Viewer } from './viewer.ts';

const workload = (group: string, kind: string, plural: string): Resource => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: true,
});

/** Kinds that own pods or their owners. Of other kinds only what their dependents say of them is known. */
const OWNER_KINDS: readonly Resource[] = [
  workload('apps', 'ReplicaSet', 'replicasets'),
  workload('apps', 'Deployment', 'deployments'),
  workload('apps', 'StatefulSet', 'statefulsets'),
  workload('apps', 'DaemonSet', 'daemonsets'),
  workload('batch', 'Job', 'jobs'),
  workload('batch', 'CronJob', 'cronjobs'),
  workload('', 'ReplicationController', 'replicationcontrollers'),
];
/** Job, CronJob is two; custom kinds may have more on top. */
const MAX_OWNERS = 4;

/** The pod, its controller, the controller of that. What cannot be read ends the chain with what its dependent says of it. */
export async function ownersOf(
  host: Viewer,
  pod: Pod,
): Promise<{ chain: OwnerChain; missing: MissingRight | undefined }> {
  const { namespace } = pod.metadata;
  const chain: [TypedObject, ...TypedObject[]] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
  let above = controllerOf(pod);
  let missing: MissingRight | undefined;
  while (above !== undefined && chain.length <= MAX_OWNERS) {
    const { apiVersion, kind, name, uid } = above;
    const resource = OWNER_KINDS.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
    const found = resource === undefined ? undefined : await host.tryGet<KubeObject>(resource, { namespace, name });
    if (found instanceof MissingRight) missing = found;
    const owner = found instanceof MissingRight || found?.metadata.uid !== uid ? undefined : found;
    const inNamespace = namespace === undefined ? {} : { namespace };
    chain.push({ ...(owner ?? { metadata: { name, uid, ...inNamespace } }), apiVersion, kind });
    above = owner === undefined ? undefined : controllerOf(owner);
  }
  return { chain, missing };
}

function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}
