import type { MemberClusterSpec } from '../api/member-cluster.ts';
import { AFTER_LIMIT } from '../kube/limit-error.ts';

/** What is to be said of budgets on the MemberCluster. */
export interface BudgetsFinding {
  status: 'True' | 'False';
  reason: 'Mirrored' | 'Ignored' | 'BudgetRightMissing' | 'CacheLimit' | 'HostBudgetsUnknown';
  message: string;
}

interface Facts {
  readonly member: string;
  readonly mode: MemberClusterSpec['disruptionBudgets'];
  /** Why budgets of the host cannot be read; undefined once they were. */
  readonly hostProblem: string | undefined;
  /** Budgets of the host that cover copies in the member. */
  readonly concerned: number;
  /** What the member said when it refused to show or to keep them. */
  readonly problem: string | undefined;
  /** Which limit of memory keeps them from being followed, or brought up to date, in words. */
  readonly limit: string | undefined;
  /** Those in the member are known. */
  readonly synced: boolean;
}

/** The condition `BudgetsMirrored` of a MemberCluster; undefined while there is nothing to say. */
export function budgetsFinding({
  member,
  mode,
  hostProblem,
  concerned,
  problem,
  limit,
  synced,
}: Facts): BudgetsFinding | undefined {
  if (mode === 'Ignore') {
    const message = 'Evictions made in the member do not wait for PodDisruptionBudgets of the host.';
    return { status: 'False', reason: 'Ignored', message };
  }
  if (hostProblem !== undefined) {
    const message = `PodDisruptionBudgets of the host are not known in the member, as they cannot be read: ${hostProblem}. Apply manifests/rbac.yaml in the host. It is tried again by itself.`;
    return { status: 'False', reason: 'HostBudgetsUnknown', message };
  }
  if (concerned === 0) return undefined;
  if (limit !== undefined) {
    const message =
      'Evictions made in the member do not wait for PodDisruptionBudgets of the host as these are now, which are not brought up to date ' +
      `there: ${limit}. ${AFTER_LIMIT}`;
    return { status: 'False', reason: 'CacheLimit', message };
  }
  if (problem !== undefined) {
    const message =
      `Evictions made in the member do not wait for PodDisruptionBudgets of the host: cluster "${member}" refuses to keep them (${problem}). ` +
      'Its owner applies manifests/member/read.yaml anew, or set spec.disruptionBudgets: Ignore. It is tried again by itself.';
    return { status: 'False', reason: 'BudgetRightMissing', message };
  }
  const message = 'Evictions made in the member wait for PodDisruptionBudgets of the host.';
  return synced ? { status: 'True', reason: 'Mirrored', message } : undefined;
}
