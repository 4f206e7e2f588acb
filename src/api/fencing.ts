import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { parsed } from './parse-object.ts';

/** An administrator's word that nothing runs on a virtual node any more. `Refused`: it was given while the member answered. */
export const FENCED = 'Fenced';
export const FENCING_STATES = [FENCED, 'Refused'] as const;
/**
 * For so long nothing must have come from a member before a word about it counts, in ms, as the process has seen that acts on it: one that has
 * just begun, or a moment of a bad network, knows nothing of a cluster that is said to be gone.
 */
export const SILENT_MS = 30_000;
export type FencingState = (typeof FENCING_STATES)[number];

/** Virtual nodes of one member. */
const MOST_FENCED_NODES = 64;
/** Pods of one member that are remembered at a time, at about 100 bytes each: what the API server stores of an object has an end. */
export const MOST_FENCED_PODS = 5_000;
/** Of where a pod ran. */
const MOST_TOLD_BYTES = 600;

export const fencingStatus = z
  .object({
    nodes: z
      .record(z.string(), z.enum(FENCING_STATES))
      .exactOptional()
      .meta({
        description:
          `Virtual nodes with the taint node.kubernetes.io/out-of-service. ${FENCED}: nothing runs there any more, by the word of an administrator, ` +
          'until the member answers. Refused: it was put there, or left, while the member answered; to be taken away and put there anew.',
        maxProperties: MOST_FENCED_NODES,
      }),
    pods: z
      .record(z.string(), z.string().max(MOST_TOLD_BYTES))
      .exactOptional()
      .meta({
        description:
          'UIDs of pods that were ended by that word, and where they ran: virtual node, namespace and name. Their copies, should they come back with the member, are ' +
          'ended before anything else is made there. Each is forgotten once the member has shown that it has none.',
        maxProperties: MOST_FENCED_PODS,
      }),
  })
  .describe('Virtual nodes that an administrator has taken out of service, and what was ended on them.');

export type FencingStatus = z.output<typeof fencingStatus>;

/** Of a MemberCluster as the API server has it, whatever its spec is; what cannot be read is not there. */
export function readFencing(raw: KubeObject): FencingStatus {
  const { status } = raw as { status?: { fencing?: unknown } };
  const found = parsed(fencingStatus, status?.fencing ?? {});
  return found.success ? found.data : {};
}
