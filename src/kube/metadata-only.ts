import type { KubeRequest } from './request.ts';
import type { Resource } from './resource.ts';

const KIND = 'PartialObjectMetadata';

/** The same objects without all that is not metadata: of kinds of which nothing else is to be known, and none of it to be held. */
export function metadataOnly({ group, version, plural, namespaced }: Resource): Resource {
  return { group, version, plural, namespaced, kind: KIND, metadataOnly: true };
}

/**
 * What a request for a resource says it takes, and what of the answer is read. Without another choice: who cannot leave the rest out
 * is not to send it.
 */
export function acceptOf(resource: Resource, what: 'one' | 'list'): Pick<KubeRequest, 'accept' | 'managedFields'> {
  const { metadataOnly: isPart, managedFields = true } = resource;
  if (isPart !== true) return { managedFields };
  return { accept: `application/json;as=${KIND}${what === 'list' ? 'List' : ''};g=meta.k8s.io;v=v1`, managedFields };
}
