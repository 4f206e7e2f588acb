import type { Pod } from '../../kube/core-v1.ts';

/** A pod of the virtual node that runs on a node of the member. */
export interface UsageTarget {
  readonly hostPod: Pod;
  readonly memberPod: Pod;
  /** `namespace/name` in the member. */
  readonly memberKey: string;
  readonly memberNode: string;
}

export function uidOf({ hostPod }: UsageTarget): string {
  return hostPod.metadata.uid ?? '';
}

/** When the member's kubelet took the pod on, in ms; undefined: unknown. */
export function startedAt({ memberPod }: UsageTarget): number | undefined {
  const time = Date.parse(memberPod.status?.startTime ?? '');
  return Number.isFinite(time) ? time : undefined;
}

/** Targets by the member's node they run on. */
export function byNode(targets: Iterable<UsageTarget>): Map<string, UsageTarget[]> {
  const nodes = new Map<string, UsageTarget[]>();
  for (const target of targets) {
    const known = nodes.get(target.memberNode);
    if (known === undefined) nodes.set(target.memberNode, [target]);
    else known.push(target);
  }
  return nodes;
}
