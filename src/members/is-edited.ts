import { FORCE_LEAVE_ANNOTATION } from '../api/marks.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { jsonEqual } from '../kube/json-equal.ts';

/**
 * Whether an administrator changed what scopes go by. The generation counts edits of the spec alone, and policies choose
 * members by the labels of the object, too; and somebody may have deleted it,
 * or given it up. Status and other annotations come and go all the time and
 * are none of a scope's business.
 */
export function isEdited(before: MemberCluster | undefined, { metadata }: MemberCluster): boolean {
  if (before?.metadata.generation !== metadata.generation) return true;
  if (before?.metadata.deletionTimestamp !== metadata.deletionTimestamp) return true;
  const said = FORCE_LEAVE_ANNOTATION;
  if (before?.metadata.annotations?.[said] !== metadata.annotations?.[said]) return true;
  return !jsonEqual(before?.metadata.labels ?? {}, metadata.labels ?? {});
}
