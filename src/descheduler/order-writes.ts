import type { KubeClient } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';
import type { Resource } from '../kube/resource.ts';
import { patch, remove } from '../kube/verbs.ts';
import type { Order } from './order.ts';

/**
 * Says what came of an order, as that was looked at. Only of that version: what a process writes that has lost its Lease, or has not seen the last edit,
 * must not take the place of what was found since; above all it must not let one go on that is over. Who loses looks again when the watch shows the other one.
 * @throws what else the host answers
 */
export async function writeOrderStatus(
  host: KubeClient,
  resource: Resource,
  { metadata: { namespace, name, uid, resourceVersion } }: Order,
  status: object,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { uid, resourceVersion }, status: { finishTime: null, ...status } };
  const how = { type: 'merge', subresource: 'status' } as const;
  await patch(host, resource, { namespace, name }, body, how, { signal }).catch(unlessOther);
}

/** Deletes one that is finished, as it was looked at. @throws what else the host answers */
export async function removeFinished(
  host: KubeClient,
  resource: Resource,
  { metadata: { namespace, name, uid, resourceVersion } }: Order,
  signal: AbortSignal,
): Promise<void> {
  await remove(host, resource, { namespace, name }, { uid, resourceVersion }, { signal }).catch(unlessOther);
}

/** Gone, or changed meanwhile: the watch will show it. */
function unlessOther(error: unknown): undefined {
  if (!isNotFound(error) && !isConflict(error)) throw error;
}
