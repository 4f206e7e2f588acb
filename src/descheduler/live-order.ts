import type { KubeClient } from '../kube/client.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import { find } from '../kube/verbs.ts';
import { isSameOrder } from './order.ts';

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

/** Why no move for such an object begins while those of its kind cannot be followed, as `problem` says. */
export function whyNotFollowed({ kind }: Resource, problem: string | undefined): string | undefined {
  return problem === undefined
    ? undefined
    : `it is not known whether it is still wanted, as ${kind}s cannot be followed now (${problem})`;
}
