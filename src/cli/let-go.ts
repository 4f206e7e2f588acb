import { isFinished } from '../api/pod-phase.ts';
import { conditionOf } from '../kube/conditions.ts';
import { counted } from '../kube/counted.ts';
import { isDaemonPod } from '../pods/daemon-pod.ts';
import { CliError } from './cli-error.ts';
import { podsOf } from './drain.ts';
import type { KnownMember } from './joined-member.ts';
import type { Viewer } from './viewer.ts';

/** What the manager says last of a member that leaves in order, and of one that is given up: pods of that are the host's to remove. */
const LAST_WORDS: readonly (string | undefined)[] = ['NothingRemains', 'GivenUp'];

/**
 * Throws CliError where a MemberCluster is gone, and pods are on its virtual nodes: somebody took its finalizer off, as to exchange it for a new
 * one, and the pods need credentials and rights. `last`: what it was at last.
 */
export async function refuseLetGo(host: Viewer, last: KnownMember): Promise<void> {
  // What is there now is of the next one of that name.
  if (LAST_WORDS.includes(conditionOf({ status: last.status }, 'Leaving')?.reason)) return;
  const pods = (await podsOf(host, last)).filter((pod) => !isDaemonPod(pod) && !isFinished(pod));
  if (pods.length === 0) return;
  const are = `${counted(pods.length, 'pod')} ${pods.length === 1 ? 'is' : 'are'}`;
  throw new CliError(`member ${last.metadata.name} was let go, and has not left: ${are} on its virtual nodes`, {
    reason: 'its MemberCluster is gone, and pods that run need its credentials and rights: these stay as they are',
    fix: 'unless another MemberCluster stands for it already, kubectl apply the one that was saved, or join it again by that name',
    page: 'concepts/leaving.md#changed-your-mind',
  });
}
