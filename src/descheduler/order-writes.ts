import type { KubeClient } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import type { Resource } from '../kube/resource.ts';
import { remove } from '../kube/verbs.ts';
import type { Order } from './order.ts';

/**
 * Says what came of an order, as that was looked at. Only of that version: what a process writes that has lost its Lease, or has not seen the last edit,
 * must not take the place of what was found since; above all it must not let one go on that is over. Who loses looks again when the watch shows the other one.
 * @throws what else the host answers
 */
export async function writeOrderStatus(
  host: KubeClient,
  resource: Resource,
  { metadata }: Order,
  status: object,
  signal: AbortSignal,
): Promise<void> {
  await patchStatusAsRead(host, resource, metadata, { finishTime: null, ...status }, { signal });
}

/** Deletes one that is finished, as it was looked at. @throws what else the host answers */
export async function removeFinished(
  host: KubeClient,
  resource: Resource,
  { metadata: { namespace, name, uid, resourceVersion } }: Order,
  signal: AbortSignal,
): Promise<void> {
  try {
    await remove(host, resource, { namespace, name }, { uid, resourceVersion }, { signal });
  } catch (error) {
    // Gone, or changed meanwhile: the watch will show it.
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}
