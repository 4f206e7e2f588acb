import { parseMemberCluster } from '../../api/member-cluster.ts';
import type { KubeObject } from '../../kube/object.ts';

/** What to say of a pod that is not in this cluster, while members keep copies of pods that vanished; undefined: none does. */
export function heldDeletions(
  members: readonly KubeObject[],
): { reason: string; fix: string; page: string } | undefined {
  const held = members.flatMap((raw) => {
    const parsed = parseMemberCluster(raw);
    if (!('member' in parsed)) return [];
    const found = parsed.member.status?.conditions?.find(
      ({ type, status }) => type === 'DeletionsAllowed' && status === 'False',
    );
    return found === undefined ? [] : [`member ${raw.metadata.name} (${found.reason}): ${found.message}`];
  });
  if (held.length === 0) return undefined;
  return {
    reason: `the pod is not in this cluster, but its copy may run on, as deletions wait for you in ${held.join(' Also in ')}`,
    fix: 'look at what was deleted, then confirm it by that command, or create the pods anew; until then nothing there is deleted',
    page: 'invariants.md#deletions-that-wait-for-you',
  };
}
