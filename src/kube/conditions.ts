interface WithConditions<C> {
  status?: { conditions?: readonly C[] | undefined } | undefined;
}

/** The condition of that type of any object that has `status.conditions`. */
export function conditionOf<C extends { type: string }>({ status }: WithConditions<C>, type: string): C | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function isTrue<C extends { type: string; status: string }>(object: WithConditions<C>, type: string): boolean {
  return conditionOf(object, type)?.status === 'True';
}

/** Why a pod has no node, as a scheduler says it, or the API server of one behind gates; undefined: it has one, or nothing is said yet. */
export function unscheduledOf<C extends { type: string; status: string }>(pod: WithConditions<C>): C | undefined {
  const condition = conditionOf(pod, 'PodScheduled');
  return condition?.status === 'False' ? condition : undefined;
}

/** Of a pod, a node or a MemberCluster. */
export function isReady<C extends { type: string; status: string }>(object: WithConditions<C>): boolean {
  return isTrue(object, 'Ready');
}
