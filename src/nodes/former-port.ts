import type { Logger } from 'pino';
import type { Node } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import { NODES } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';

/** How long a start may wait for the answer, in ms. */
const READ_MS = 5_000;

/**
 * The kubelet port that a Node says, from an earlier process or another replica; undefined when there is none, and when
 * the host does not tell: a node then gets another port of the range, which is no reason to wait.
 */
export async function formerKubeletPort(
  host: KubeClient,
  name: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    const node = await get<Node>(host, NODES, { name }, { signal, deadlineMs: READ_MS });
    return node.status?.daemonEndpoints?.kubeletEndpoint?.Port;
  } catch (error) {
    if (!isNotFound(error) && !signal.aborted)
      logger.warn({ node: name }, `the former kubelet port is not known: ${describeError(error)}`);
    return undefined;
  }
}
