import { createHash } from 'node:crypto';
import { hostKeyOf } from '../api/host-key.ts';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, MEMBER_LABEL, UID_LABEL } from '../api/marks.ts';
import type { PodDisruptionBudget } from '../kube/policy-v1.ts';
import type { HostBudget } from './host-budget.ts';

/** Longest name of a budget. */
const MAX_NAME = 253;
const HASH_LENGTH = 8;

/** A budget of ours in a member. */
export interface MirroredBudget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Key of the host's budget. */
  readonly hostKey: string;
  /** UIDs of the host pods whose copies it covers. */
  readonly uids: ReadonlySet<string>;
  /** -1: it is not as we made it. */
  readonly minAvailable: number;
  readonly unhealthyPodEvictionPolicy: string | undefined;
}

export interface MirrorPlan {
  budget: HostBudget;
  hostId: string;
  /** Name of the MemberCluster. */
  member: string;
  namespace: string;
  name: string;
  uids: Iterable<string>;
  minAvailable: number;
}

/**
 * The budget in the member. Copies are named one by one: their labels may be others than those of the host pods, and whatever
 * else the namespace holds is not covered. `minAvailable` is a number, as Kubernetes asks for where pods have no controller.
 */
export function mirroredBudget(plan: MirrorPlan): PodDisruptionBudget {
  const { budget, hostId, member, namespace, name, minAvailable } = plan;
  const { unhealthyPodEvictionPolicy } = budget;
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: {
      name,
      namespace,
      labels: { [HOST_LABEL]: hostId, [MEMBER_LABEL]: member },
      annotations: { [HOST_NAMESPACE_ANNOTATION]: budget.namespace, [HOST_NAME_ANNOTATION]: budget.name },
    },
    spec: {
      minAvailable,
      selector: {
        matchLabels: { [HOST_LABEL]: hostId },
        matchExpressions: [{ key: UID_LABEL, operator: 'In', values: [...plan.uids].toSorted() }],
      },
      ...(unhealthyPodEvictionPolicy === undefined ? {} : { unhealthyPodEvictionPolicy }),
    },
  };
}

/** Undefined when it is not one of this MemberCluster. */
export function readMirroredBudget(
  copy: PodDisruptionBudget,
  { hostId, member }: { hostId: string; member: string },
): MirroredBudget | undefined {
  const { spec } = copy;
  const { labels, namespace = '', name, uid = '', resourceVersion = '' } = copy.metadata;
  const hostKey = hostKeyOf(copy);
  if (labels?.[HOST_LABEL] !== hostId || labels[MEMBER_LABEL] !== member || hostKey === undefined) return undefined;
  const { matchLabels = {}, matchExpressions = [] } = spec.selector ?? {};
  const [covered, ...more] = matchExpressions;
  const isOurs = covered?.key === UID_LABEL && covered.operator === 'In' && more.length === 0;
  const isWhole = Object.keys(matchLabels).length === 1 && matchLabels[HOST_LABEL] === hostId && isOurs;
  const { minAvailable } = spec;
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    hostKey,
    uids: new Set(isWhole ? covered.values : []),
    minAvailable: isWhole && Number.isSafeInteger(minAvailable) ? Number(minAvailable) : -1,
    unhealthyPodEvictionPolicy: spec.unhealthyPodEvictionPolicy,
  };
}

/** For where somebody else has the name. */
export function otherName({ namespace, name }: HostBudget, hostId: string, member: string): string {
  const hash = createHash('sha256').update(`${hostId}/${member}/${namespace}/${name}`).digest('hex');
  return `${name.slice(0, MAX_NAME - HASH_LENGTH - 1)}-${hash.slice(0, HASH_LENGTH)}`;
}
