import { MEMBER_LABEL } from '../../api/marks.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { ifThere } from '../../kube/if-there.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../kube/resource.ts';
import { list, remove } from '../../kube/verbs.ts';

/** Removes the requests for certificates of a member's virtual nodes, which Kubernetes would keep for an hour. */
export async function removeSigningRequests(host: KubeClient, member: string, signal: AbortSignal): Promise<void> {
  try {
    const { items } = await list(host, CERTIFICATE_SIGNING_REQUESTS, {
      labelSelector: `${MEMBER_LABEL}=${member}`,
      signal,
    });
    for (const { metadata } of items)
      await ifThere(remove(host, CERTIFICATE_SIGNING_REQUESTS, metadata, { uid: metadata.uid }, { signal }));
  } catch (error) {
    // Rights of an older version: Kubernetes sees to it.
    if (!isForbidden(error)) throw error;
  }
}
