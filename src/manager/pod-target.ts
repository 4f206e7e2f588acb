import type { Pod } from '../kube/core-v1.ts';
import type { MemberClient, PodTarget } from '../kubelet/pod-directory.ts';
import { isShownIgnored } from '../pods/daemon-pod.ts';

export interface TargetFacts {
  member: string;
  client: MemberClient;
  /** The pod of the member that runs for exactly this host pod. */
  copy: Pod | undefined;
  /** Why the member cannot be asked about pods now. */
  unavailable: string | undefined;
  /** Pods of its namespace may be in the member, as things are now. */
  hasPlace: boolean;
}

/**
 * Where logs and streams of a host pod come from: from its copy, wherever a new one would be by now. A pod without one must
 * not show what a stranger's pod of its name says.
 */
export function podTarget(hostPod: Pod, facts: TargetFacts): PodTarget | { unavailable: string } {
  const { member, client, copy, unavailable, hasPlace } = facts;
  if (copy === undefined && !hasPlace) {
    return { unavailable: `namespace ${hostPod.metadata.namespace} has no place in cluster "${member}"` };
  }
  if (isShownIgnored(hostPod)) {
    return { unavailable: `it belongs to a DaemonSet, and those do not run in cluster "${member}"` };
  }
  if (unavailable !== undefined) return { unavailable };
  if (copy === undefined) return { unavailable: whyNotThere(hostPod, member) };
  const { namespace = '', name } = copy.metadata;
  return { client, namespace, name };
}

/** What the pod itself says of why it does not run there, or not any more. */
function whyNotThere({ status }: Pod, member: string): string {
  const none = `it has no running copy in cluster "${member}" at the moment`;
  const { reason, message } = status ?? {};
  if (reason === undefined || reason === '') return none;
  return message === undefined || message === ''
    ? `${none}: ${reason}`
    : `${none}: ${reason}: ${message.replace(/\.$/, '')}`;
}
