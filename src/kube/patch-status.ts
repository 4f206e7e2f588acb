import type { KubeClient } from './client.ts';
import { isConflict, isNotFound } from './errors.ts';
import type { Resource } from './resource.ts';
import { type ObjectRef, patch } from './verbs.ts';

type AsRead = ObjectRef & { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/**
 * Merges fields into the status of an object as it was read. Returns whether it was so still: else it is gone, or another one or another version
 * by now, which the watch will show. @throws what else the API server answers
 */
export async function patchStatusAsRead(
  client: KubeClient,
  resource: Resource,
  { namespace, name, uid, resourceVersion }: AsRead,
  status: object,
  { signal, ...manager }: { signal: AbortSignal; fieldManager?: string },
): Promise<boolean> {
  const how = { type: 'merge', subresource: 'status', ...manager } as const;
  try {
    await patch(client, resource, { namespace, name }, { metadata: { uid, resourceVersion }, status }, how, { signal });
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
