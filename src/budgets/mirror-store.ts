import { HOST_LABEL, MEMBER_LABEL } from '../api/marks.ts';
import type { PodDisruptionBudget } from '../kube/policy-v1.ts';
import { POD_DISRUPTION_BUDGETS } from '../kube/resource.ts';
import { WrittenObjects, type WrittenObjectsOptions } from '../kube/written-objects.ts';
import { type MirroredBudget, readMirroredBudget } from './mirrored-budget.ts';

/** The subject is the key of the host's budget; one budget stands for it in each namespace of the member, as a rule in one. */
export type MirrorStore = WrittenObjects<PodDisruptionBudget, MirroredBudget>;

interface MirrorStoreOptions extends Omit<
  WrittenObjectsOptions<never, never>,
  'resource' | 'labelSelector' | 'read' | 'keep'
> {
  hostId: string;
  /** Name of the MemberCluster. */
  member: string;
}

/** Our budgets in one member. */
export function mirrorStore({ hostId, member, ...options }: MirrorStoreOptions): MirrorStore {
  return new WrittenObjects<PodDisruptionBudget, MirroredBudget>({
    ...options,
    resource: POD_DISRUPTION_BUDGETS,
    labelSelector: `${HOST_LABEL}=${hostId},${MEMBER_LABEL}=${member}`,
    read: (budget) => {
      const mirror = readMirroredBudget(budget, { hostId, member });
      return mirror === undefined ? undefined : { subject: mirror.hostKey, value: mirror };
    },
  });
}
