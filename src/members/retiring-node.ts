/** A virtual node that the spec does not want any more. It is served, and takes no new pods, until it is empty. */
export interface RetiringNode {
  readonly name: string;
  /** Pods of the host that are bound to it, and copies of such that are gone; undefined while that is not known. */
  readonly pods: number | undefined;
}

/** What users should know of it. */
export function retirementInWords({ name, pods }: RetiringNode): string {
  const count = pods === undefined ? 'it may have pods' : pods === 1 ? '1 pod is on it' : `${pods} pods are on it`;
  return `Virtual node ${name} is not in the spec any more, and ${count}`;
}

export const RETIREMENT_ADVICE =
  'It takes no new pods, those that run go on, and it is removed when they are gone. To move them, run ' +
  'kubectl drain --ignore-daemonsets on it; to keep it, put its pool back into spec.virtualNodes.';
