import type { Pod } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { MAX_OWNERS, ownerKind } from '../kube/owner-kinds.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { MissingRight, type Viewer } from './viewer.ts';

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
    const resource = ownerKind(above);
    const found = resource === undefined ? undefined : await host.tryGet<KubeObject>(resource, { namespace, name });
    if (found instanceof MissingRight) missing = found;
    const owner = found instanceof MissingRight || found?.metadata.uid !== uid ? undefined : found;
    const inNamespace = namespace === undefined ? {} : { namespace };
    chain.push({ ...(owner ?? { metadata: { name, uid, ...inNamespace } }), apiVersion, kind });
    above = owner === undefined ? undefined : controllerOf(owner);
  }
  return { chain, missing };
}
