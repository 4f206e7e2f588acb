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

/** Of a pod, a node or a MemberCluster. */
export function isReady<C extends { type: string; status: string }>(object: WithConditions<C>): boolean {
  return isTrue(object, 'Ready');
}
