import type { KubeObject } from './object.ts';

/** coordination.k8s.io/v1 Lease: who holds something, and when that was last confirmed. */
export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/**
 * Whether a lease whose record has not changed for `unchangedMs` belongs to somebody else. A record without a duration
 * gets `fallbackMs`. Without an identity it is always somebody else's.
 */
export function leaseIsHeldByOther(
  lease: Lease,
  identity: string | undefined,
  unchangedMs: number,
  fallbackMs: number,
): boolean {
  const holder = lease.spec?.holderIdentity ?? '';
  if (holder === '' || holder === identity) return false;
  const seconds = lease.spec?.leaseDurationSeconds;
  return unchangedMs <= (seconds === undefined ? fallbackMs : seconds * 1_000);
}
