import type { KubeClient } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import type { KubeObject } from '../kube/object.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import type { Resource } from '../kube/resource.ts';
import { find, remove } from '../kube/verbs.ts';
import { isSameOrder, type Order } from './order.ts';

/**
 * Whether an object by which people order moves is there as it was looked at, past the caches: a watch that has died without a word shows for up to 40 s
 * neither that it was deleted nor that its spec is another one. Its metadata say it, so that little is read however much its status lists, and by the
 * right to list, which who follows it has.
 * @throws what the host answers
 */
export async function isOrdered(
  host: KubeClient,
  resource: Resource,
  asked: KubeObject,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace, name } = asked.metadata;
  const found = await find(host, metadataOnly(resource), { namespace, name }, { signal });
  return found?.metadata.deletionTimestamp === undefined && isSameOrder(asked, found);
}

/**
 * Says what came of an order, as that was looked at. Only of that version: what a process writes that has lost its Lease, or has not seen the last edit,
 * must not take the place of what was found since; above all it must not let one go on that is over. Who loses looks again when the watch shows the other one.
 * @throws what else the host answers
 */
export async function writeOrderStatus(
  host: KubeClient,
  resource: Resource,
  { metadata, status: before }: Order,
  status: object,
  signal: AbortSignal,
): Promise<void> {
  if (jsonEqual(before, status)) return;
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
