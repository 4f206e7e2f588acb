import { MEMBER_LABEL } from '../api/marks.ts';
import type { Condition } from '../kube/core-v1.ts';
import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import { cleanText } from '../kube/clean-text.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { compare, parseQuantity } from '../kube/quantity.ts';
import type { ClaimCopy } from './copy.ts';
import type { MemberVolume } from '../api/member-volume.ts';
import { MEMBER_VOLUME_ANNOTATION } from './member-volume.ts';

/** Merge patches that bring the host to what the member says; at least one of them. */
export interface ClaimReport {
  volume?: { name: string; patch: object };
  claim?: object;
  status?: object;
}

const MAX_MESSAGE = 1024;

/** What the host is to show of the member's claim: where the data is, how much room, and how resizing goes. Pure. */
export function reportOf(claim: PersistentVolumeClaim, volume: MemberVolume, copy: ClaimCopy): ClaimReport | undefined {
  const report: ClaimReport = {};
  const { spec, status } = copy.claim;
  const annotations = {
    [MEMBER_LABEL]: volume.member,
    ...(spec.volumeName === undefined ? {} : { [MEMBER_VOLUME_ANNOTATION]: spec.volumeName }),
  };
  const shown = claim.metadata.annotations ?? {};
  if (Object.entries(annotations).some(([key, value]) => shown[key] !== value))
    report.claim = { metadata: { annotations } };
  const storage = status?.phase === 'Bound' ? status.capacity?.['storage'] : undefined;
  if (storage !== undefined && differs(storage, volume.object.spec.capacity?.['storage'])) {
    report.volume = { name: volume.name, patch: { spec: { capacity: { storage } } } };
  }
  const capacity = storage !== undefined && differs(storage, claim.status?.capacity?.['storage']);
  const conditions = status?.conditions?.map(cleaned) ?? [];
  const others = !jsonEqual(conditions, claim.status?.conditions ?? []);
  if (capacity || others) {
    report.status = {
      status: { ...(capacity ? { capacity: { storage } } : {}), ...(others ? { conditions } : {}) },
    };
  }
  return Object.keys(report).length === 0 ? undefined : report;
}

function cleaned(condition: Condition): Condition {
  const { message } = condition;
  return message === undefined ? condition : { ...condition, message: cleanText(message, MAX_MESSAGE) };
}

function differs(a: string | number, b: string | number | undefined): boolean {
  return b === undefined || compare(parseQuantity(a), parseQuantity(b)) !== 0;
}
