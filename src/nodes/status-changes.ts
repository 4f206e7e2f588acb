import { conditionOf } from '../kube/conditions.ts';
import type { Condition, Node, ResourceList } from '../kube/core-v1.ts';
import { jsonEqual, type JsonObject } from '../kube/json-equal.ts';
import { mergePatch } from '../kube/merge-patch.ts';
import { parseQuantity } from '../kube/quantity.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { DesiredNode } from './desired-node.ts';

/** How often a Node is reported, in ms. */
export interface ReportTimes {
  /** Longest time between two reports. */
  readonly heartbeatMs: number;
  /** Least time from one report to the next where only little room came or went. */
  readonly littleRoomMs: number;
}

/** A change of any amount by one in so many parts, or more, is told at once. */
const PARTS_THAT_MATTER = 100n;

/**
 * The strategic merge patch of `nodes/status` with what differs, or undefined when nothing does that is due, and the last report is
 * younger than the heartbeat. Conditions are merged by type, so those of others stay. A report that is written anyway
 * carries fresh heartbeats, as node agents do it. Room that changes little waits for a while: a busy member has another sum with each
 * pod that comes and goes, and what really fits there is not taken from the Node by a scheduler that asks.
 */
export function statusPatch(
  node: Node,
  desired: DesiredNode,
  nowMs: number,
  times: ReportTimes,
): JsonObject | undefined {
  const status: JsonObject = {};
  const had = node.status ?? {};
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
  const due = nowMs >= nextReport(node, desired, nowMs, times);
  const room = roomOf(had, desired);
  const muchRoom = room !== undefined && !isLittle(had, desired);
  if (Object.keys(status).length === 0 && !conditions.changed && !urgent && !muchRoom && !due) return undefined;
  if (redeclared) status['declaredFeatures'] = [...features];
  return { status: { ...status, ...room, conditions: conditions.list } };
}

/** Whether such a patch is due for nothing but the room behind the Node. */
export function isOfRoomAlone(node: Node, desired: DesiredNode, nowMs: number, times: ReportTimes): boolean {
  return statusPatch(node, { ...desired, capacity: undefined, allocatable: undefined }, nowMs, times) === undefined;
}

/** When the Node must be reported again though nothing else changes, in wall clock milliseconds. */
export function nextReport(node: Node, desired: DesiredNode, nowMs: number, times: ReportTimes): number {
  const { heartbeatMs, littleRoomMs } = times;
  const pending = roomOf(node.status ?? {}, desired) !== undefined;
  return lastReport(node, desired, nowMs) + (pending ? Math.min(littleRoomMs, heartbeatMs) : heartbeatMs);
}

function lastReport(node: Node, desired: DesiredNode, nowMs: number): number {
  let oldest = nowMs;
  for (const { type } of desired.conditions) {
    const there = conditionOf(node, type);
    const at = Date.parse(there?.lastHeartbeatTime ?? '');
    // A time ahead of ours is from a clock that was wrong: report at once.
    oldest = Math.min(oldest, at <= nowMs ? at : Number.NEGATIVE_INFINITY);
  }
  return oldest;
}

type Room = Pick<NonNullable<Node['status']>, 'capacity' | 'allocatable'>;

/** The parts of the patch that change what the Node offers; undefined when nothing does. */
function roomOf(had: Room, wanted: Pick<DesiredNode, 'capacity' | 'allocatable'>): JsonObject | undefined {
  const parts: JsonObject = {};
  resources(parts, 'capacity', had.capacity, wanted.capacity);
  resources(parts, 'allocatable', had.allocatable, wanted.allocatable);
  return Object.keys(parts).length === 0 ? undefined : parts;
}

/** Every resource that was there still is, none is new, none ran out or came back, and none changed by much. */
function isLittle(had: Room, wanted: Pick<DesiredNode, 'capacity' | 'allocatable'>): boolean {
  return (['capacity', 'allocatable'] as const).every((field) => {
    const [before, after] = [had[field] ?? {}, wanted[field]];
    if (after === undefined) return true;
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].every((resource) =>
      changesLittle(before[resource], after[resource]),
    );
  });
}

function changesLittle(before: string | number | undefined, after: string | number | undefined): boolean {
  if (before === undefined || after === undefined) return false;
  if (before === after) return true;
  const [from, to] = [parseQuantity(before).nanos, parseQuantity(after).nanos];
  if (from === 0n || to === 0n) return from === to;
  const difference = from > to ? from - to : to - from;
  return difference * PARTS_THAT_MATTER < from;
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
