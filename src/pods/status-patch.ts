import type { Condition, Pod, PodStatus } from '../kube/core-v1.ts';
import { isJsonObject, jsonEqual } from '../kube/json-equal.ts';
import { MEMBER_OWNED_CONDITIONS } from './host-status.ts';

/** Fields we may take away when the member no longer reports them. All others are only ever set. */
const REMOVABLE_FIELDS = ['reason', 'message', 'podIP', 'podIPs', 'resize', 'allocatedResources', 'resources'] as const;

/** Lists that strategic merge would merge by `ip`; they are meant as a whole. */
const WHOLE_LISTS: ReadonlySet<string> = new Set(['podIPs', 'hostIPs']);

/**
 * The strategic merge patch for `pods/status` that turns the host pod's status into `desired`, or undefined when
 * nothing differs. Carries the host pod's UID, which the API server takes as a precondition (409 for another pod).
 * `annotations` go with it: the status subresource is where a node may write them (null takes one away).
 */
export function statusPatch(
  hostPod: Pod,
  desired: PodStatus,
  annotations: Readonly<Record<string, string | null>> = {},
): Record<string, unknown> | undefined {
  const current: Record<string, unknown> = { ...hostPod.status };
  const status: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(desired)) {
    if (field === 'conditions' || value === undefined || jsonEqual(current[field], value)) continue;
    status[field] = current[field] === undefined ? value : whole(field, value);
  }
  for (const field of REMOVABLE_FIELDS) {
    if (current[field] !== undefined && desired[field] === undefined) status[field] = null;
  }
  const conditions = conditionChanges(hostPod.status?.conditions ?? [], desired.conditions ?? []);
  if (conditions.length > 0) status.conditions = conditions;
  const changed = Object.entries(annotations).filter(
    ([key, value]) => (hostPod.metadata.annotations?.[key] ?? null) !== value,
  );
  if (Object.keys(status).length === 0 && changed.length === 0) return undefined;
  const { uid } = hostPod.metadata;
  const metadata = changed.length === 0 ? { uid } : { uid, annotations: Object.fromEntries(changed) };
  return { metadata, status };
}

/** A strategic merge keeps the entries of maps, and of some lists, that are not named; here the new value is all. */
function whole(field: string, value: unknown): unknown {
  if (Array.isArray(value)) return WHOLE_LISTS.has(field) ? [...(value as unknown[]), { $patch: 'replace' }] : value;
  return isJsonObject(value) ? { ...value, $patch: 'replace' } : value;
}

function conditionChanges(current: readonly Condition[], desired: readonly Condition[]): unknown[] {
  const changes: unknown[] = [];
  for (const wanted of desired) {
    const before = current.find((other) => other.type === wanted.type);
    // API servers keep it where it is taken away (preserveOldObservedGeneration): such a patch would change nothing, again and again.
    const condition =
      before?.observedGeneration === undefined ? wanted : { observedGeneration: before.observedGeneration, ...wanted };
    if (before === undefined || !jsonEqual(before, condition)) changes.push(withRemovals(before, condition));
  }
  for (const { type } of current) {
    if (MEMBER_OWNED_CONDITIONS.has(type) && !desired.some((other) => other.type === type)) {
      changes.push({ type, $patch: 'delete' });
    }
  }
  return changes;
}

/** Strategic merge keeps what is not named: a reason or message that went away has to be nulled. */
function withRemovals(before: Condition | undefined, after: Condition): Record<string, unknown> {
  const patch: Record<string, unknown> = { ...after };
  for (const field of Object.keys(before ?? {})) if (!(field in after)) patch[field] = null;
  return patch;
}
