import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import { conditionOf, isTrue } from '../kube/conditions.ts';
import {
  BUDGETS_MIRRORED,
  DELETIONS_ALLOWED,
  IDENTITY_PINNED,
  REACHABLE,
  SERVICES_EXCHANGED,
  SERVICES_MIRRORED,
} from './member-status.ts';

/** Reasons of `ServicesMirrored` while none can. */
const CANNOT_BE_WRITTEN: ReadonlySet<string> = new Set(['NotMirrored', 'ServiceRightMissing', 'HostServicesUnknown']);

/** Whether deletions were held back when this status was written: a start must not let go what a former process kept. */
export function wasBreakerOpen(status: MemberClusterStatus | undefined): boolean {
  const before = conditionOf({ status }, DELETIONS_ALLOWED);
  return before?.status === 'False';
}

/** Whether there were Services of the host in the member when this status was written, or may have been. */
export function servicesWereMirrored(status: MemberClusterStatus | undefined): boolean {
  const before = conditionOf({ status }, SERVICES_MIRRORED);
  return before !== undefined && before.reason !== 'NotMirrored';
}

/** Whether Services of the host can be written in the member, as that status has it. */
export function servicesCanBeWritten(status: MemberClusterStatus | undefined): boolean {
  const { reason } = conditionOf({ status }, SERVICES_MIRRORED) ?? {};
  if (reason === undefined || CANNOT_BE_WRITTEN.has(reason)) return false;
  return isTrue({ status }, REACHABLE) && isTrue({ status }, IDENTITY_PINNED);
}

/** Whether anything that other clusters export stood in the member when this status was written, or may have. */
export function servicesWereExchanged(status: MemberClusterStatus | undefined): boolean {
  const before = conditionOf({ status }, SERVICES_EXCHANGED);
  return before !== undefined && before.reason !== 'NotExchanged';
}

/** The same of disruption budgets. */
export function budgetsWereMirrored(status: MemberClusterStatus | undefined): boolean {
  const before = conditionOf({ status }, BUDGETS_MIRRORED);
  return before !== undefined && before.reason !== 'Ignored';
}
