import { HOST_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { PODS } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import type { MemberConnection } from '../members/connection.ts';

/** A gang waits for the answer, and asks again soon. */
const DEADLINE_MS = 5_000;

type Member = Pick<MemberConnection, 'client' | 'reachable' | 'identityOk'>;

/**
 * Whether the member has a node for its copy of a host pod: its state now, past all caches, in whatever namespace the copy is.
 * False also without a copy. Undefined: it does not answer, or another cluster does in its place. Never rejects.
 */
export async function copyHasNode(
  member: Member,
  { hostId, podUid }: { hostId: string; podUid: string },
  signal: AbortSignal,
): Promise<boolean | undefined> {
  if (!member.reachable() || !member.identityOk()) return undefined;
  const labelSelector = `${HOST_LABEL}=${hostId},${UID_LABEL}=${podUid}`;
  try {
    const copies = await list<Pod>(member.client, PODS, { labelSelector, signal, deadlineMs: DEADLINE_MS });
    return copies.items.some(
      ({ metadata, spec }) => metadata.labels?.[UID_LABEL] === podUid && (spec.nodeName ?? '') !== '',
    );
  } catch {
    return undefined;
  }
}
