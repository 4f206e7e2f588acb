import { asOwned } from '../api/released.ts';
import { monotonic } from '../kube/clock.ts';
import type { Pod } from '../kube/core-v1.ts';
import { KindDirectory } from '../kube/kind-directory.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { MAX_OWNERS, ownerKind } from '../kube/owner-kinds.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { Resource } from '../kube/resource.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { customKindKey } from '../api/custom-kinds.ts';
import { CliError } from './cli-error.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/**
 * The pod, its controller, the controller of that; of kinds that are not Kubernetes' own by their metadata. What cannot be read ends the chain
 * with what its dependent says of it. A pod that was released from its ReplicaSet counts as one of that, as everywhere.
 */
export async function ownersOf(
  host: Pick<Viewer, 'ask' | 'client' | 'tryGet'>,
  live: Pod,
): Promise<{ chain: OwnerChain; missing: MissingRight | undefined }> {
  const pod = asOwned(live);
  const { namespace } = pod.metadata;
  const chain: [TypedObject, ...TypedObject[]] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
  let above = controllerOf(pod);
  let missing: MissingRight | undefined;
  while (above !== undefined && chain.length <= MAX_OWNERS) {
    const { apiVersion, kind, name, uid } = above;
    const resource = ownerKind(above) ?? (await customResource(host, above));
    const at = resource?.namespaced === false ? { name } : { namespace, name };
    const found = resource === undefined ? undefined : await host.tryGet<KubeObject>(resource, at);
    if (found instanceof MissingRight) missing = found;
    const owner = found instanceof MissingRight || found?.metadata.uid !== uid ? undefined : found;
    const inNamespace = namespace === undefined ? {} : { namespace };
    const metadata = { ...inNamespace, ...(owner?.metadata ?? { name, uid }) };
    chain.push({ ...owner, metadata, apiVersion, kind });
    above = owner === undefined ? undefined : controllerOf(owner);
  }
  return { chain, missing };
}

/** Undefined for what the cluster does not serve, or does not tell. */
async function customResource(
  host: Pick<Viewer, 'ask' | 'client'>,
  { apiVersion, kind }: OwnerReference,
): Promise<Resource | undefined> {
  if (customKindKey({ apiVersion, kind }) === undefined) return undefined;
  const directory = new KindDirectory(host.client, monotonic);
  try {
    return await host.ask(`look up the kind ${kind} (${apiVersion})`, async (signal) => {
      await directory.lookAtGroups(signal);
      const found = await directory.find(apiVersion, kind, signal);
      return found === undefined ? undefined : metadataOnly(found);
    });
  } catch (error) {
    if (error instanceof CliError) return undefined;
    throw error;
  }
}
