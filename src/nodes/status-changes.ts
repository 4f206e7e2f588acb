import type { Condition, Node, ResourceList } from '../api/wire.ts';
import { jsonEqual, type JsonObject } from '../kube/json-equal.ts';
import { mergePatch } from '../kube/merge-patch.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { DesiredNode } from './desired-node.ts';

/**
 * The strategic merge patch of `nodes/status` with what differs, or undefined when nothing does and the last report is
 * younger than `heartbeatMs`. Conditions are merged by type, so those of others stay. A report that is written anyway
 * carries fresh heartbeats, as node agents do it.
 */
export function statusPatch(
  node: Node,
  desired: DesiredNode,
  nowMs: number,
  heartbeatMs: number,
): JsonObject | undefined {
  const status: JsonObject = {};
  const had = node.status ?? {};
  resources(status, 'capacity', had.capacity, desired.capacity);
  resources(status, 'allocatable', had.allocatable, desired.allocatable);
  if (desired.nodeInfo !== undefined) {
    const nodeInfo = mergePatch(had.nodeInfo ?? {}, desired.nodeInfo);
    if (nodeInfo !== undefined) status['nodeInfo'] = nodeInfo;
  }
  if (had.daemonEndpoints?.kubeletEndpoint?.Port !== desired.kubeletPort) {
    status['daemonEndpoints'] = { kubeletEndpoint: { Port: desired.kubeletPort } };
  }
  if (!jsonEqual(had.addresses, desired.addresses)) {
    // Merging by type would leave addresses of other types behind.
    status['addresses'] = [...desired.addresses, { $patch: 'replace' }];
  }
  const features = desired.declaredFeatures;
  const redeclared = features !== undefined && !jsonEqual(had.declaredFeatures ?? [], features);
  // A host that does not know the field drops it: as a reason to write it would be one for ever.
  const urgent = redeclared && had.declaredFeatures !== undefined;
  const conditions = conditionsOf(had.conditions ?? [], desired, nowMs);
  const due = nowMs >= nextHeartbeat(node, desired, nowMs, heartbeatMs);
  if (Object.keys(status).length === 0 && !conditions.changed && !urgent && !due) return undefined;
  if (redeclared) status['declaredFeatures'] = [...features];
  status['conditions'] = conditions.list;
  return { status };
}

/** When the conditions must be reported again though nothing changed, in wall clock milliseconds. */
export function nextHeartbeat(node: Node, desired: DesiredNode, nowMs: number, heartbeatMs: number): number {
  let oldest = nowMs;
  for (const { type } of desired.conditions) {
    const there = node.status?.conditions?.find((condition) => condition.type === type);
    const at = Date.parse(there?.lastHeartbeatTime ?? '');
    // A time ahead of ours is from a clock that was wrong: report at once.
    oldest = Math.min(oldest, at <= nowMs ? at : 0);
  }
  return oldest + heartbeatMs;
}

function resources(
  status: JsonObject,
  field: 'capacity' | 'allocatable',
  had: ResourceList | undefined,
  wanted: ResourceList | undefined,
): void {
  const patch = wanted === undefined ? undefined : mergePatch(had ?? {}, wanted);
  if (patch !== undefined) status[field] = patch;
}

function conditionsOf(
  had: readonly Condition[],
  desired: DesiredNode,
  nowMs: number,
): { list: Condition[]; changed: boolean } {
  const at = timestamp(nowMs);
  let changed = false;
  const list = desired.conditions.map(({ onlyIfAbsent, ...wanted }) => {
    const there = had.find(({ type }) => type === wanted.type);
    if (there !== undefined && onlyIfAbsent === true) return { ...there, lastHeartbeatTime: at };
    const same = there?.status === wanted.status && there.reason === wanted.reason && there.message === wanted.message;
    changed ||= !same;
    const lastTransitionTime = there?.status === wanted.status ? (there.lastTransitionTime ?? at) : at;
    return { ...wanted, lastHeartbeatTime: at, lastTransitionTime };
  });
  return { list, changed };
}
