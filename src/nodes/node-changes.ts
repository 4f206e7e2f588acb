import { DRAIN_TAINT, GROUP } from '../api/marks.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node, Taint } from '../kube/core-v1.ts';
import { jsonEqual, type JsonObject } from '../kube/json-equal.ts';
import type { MergePatch } from '../kube/merge-patch.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { DesiredNode } from './desired-node.ts';
import { CORDONED_ANNOTATION, LABELS_ANNOTATION, POOL_ANNOTATION, poolText, TAINTS_ANNOTATION } from './node-marks.ts';

/** What tells our Node from others of its name. */
export type NodeOwner = Pick<DesiredNode, 'name' | 'member' | 'providerID'>;

/** Why a Node of the wanted name is somebody else's, in words; undefined when it is ours. */
export function whyNotOurs(node: Node, { name, member, providerID }: NodeOwner): string | undefined {
  const { providerID: found = '' } = node.spec ?? {};
  const other = memberOfNode(node);
  if (found === '' ? other === member : found === providerID) return undefined;
  return other === undefined
    ? `a Node named "${name}" exists and was not made for cluster "${member}"`
    : `a Node named "${name}" exists and stands for cluster "${other}"`;
}

/**
 * The merge patch of everything but the status, or undefined when nothing is to do. Only labels, taints and a cordon of
 * our own are touched. Taints are one list, so a patch of them is bound to the resourceVersion it was made for.
 */
export function metadataPatch(node: Node, desired: DesiredNode): MergePatch | undefined {
  const labels: JsonObject = {};
  const annotations: JsonObject = {};
  const spec: JsonObject = {};

  const current = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(desired.labels)) {
    if (!Object.hasOwn(current, key) || current[key] !== value) labels[key] = value;
  }
  const recorded = recordedIn(node, LABELS_ANNOTATION);
  const stale = recorded.filter((key) => !Object.hasOwn(desired.labels, key));
  if (desired.labelsComplete) {
    for (const key of stale) if (Object.hasOwn(current, key)) labels[key] = null;
  }
  const ownKeys = new Set([...Object.keys(desired.labels), ...(desired.labelsComplete ? [] : stale)]);
  record(node, annotations, LABELS_ANNOTATION, ownKeys);

  const taints = mergedTaints(node, desired);
  if (!jsonEqual(node.spec?.taints ?? [], taints.list)) spec['taints'] = taints.list;
  record(node, annotations, TAINTS_ANNOTATION, taints.own);

  recordPool(node, annotations, desired);
  cordon(node, desired, annotations, spec);
  if ((node.spec?.providerID ?? '') === '') spec['providerID'] = desired.providerID;

  const metadata: JsonObject = {};
  if (Object.keys(labels).length > 0) metadata['labels'] = labels;
  if (Object.keys(annotations).length > 0) metadata['annotations'] = annotations;
  const changesSpec = Object.keys(spec).length > 0;
  if (changesSpec) metadata['resourceVersion'] = node.metadata.resourceVersion;
  if (Object.keys(metadata).length === 0) return undefined;
  return { metadata, ...(changesSpec ? { spec } : {}) };
}

/** A new Node. Of a former one that somebody deleted it keeps what others had put there: labels, taints, a cordon. */
export function newNode(desired: DesiredNode, former: Node | undefined, nowMs: number): Node {
  const blank: Node = { metadata: { name: desired.name } };
  const wanted = { ...desired, labelsComplete: true };
  const base = former === undefined ? blank : keptOf(former, desired);
  const recorded = former === undefined ? [] : recordedIn(former, LABELS_ANNOTATION);
  const labels = { ...base.metadata.labels, ...desired.labels };
  if (desired.labelsComplete) {
    for (const key of recorded) if (!Object.hasOwn(desired.labels, key)) delete labels[key];
  }
  const annotations: JsonObject = {};
  const spec: JsonObject = {};
  const kept = desired.labelsComplete ? [] : recorded.filter((key) => Object.hasOwn(labels, key));
  record(blank, annotations, LABELS_ANNOTATION, new Set([...Object.keys(desired.labels), ...kept]));
  const taints = mergedTaints(base, { ...wanted, undecidedTaints: [] });
  record(blank, annotations, TAINTS_ANNOTATION, taints.own);
  recordPool(blank, annotations, desired);
  const pool = former?.metadata.annotations?.[POOL_ANNOTATION];
  if (desired.pool === undefined && pool !== undefined) annotations[POOL_ANNOTATION] = pool;
  cordon(base, desired, annotations, spec);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: desired.name, labels, annotations: annotations as Record<string, string> },
    spec: {
      providerID: desired.providerID,
      ...(base.spec?.unschedulable === true ? { unschedulable: true } : {}),
      ...spec,
      ...(taints.list.length > 0 ? { taints: taints.list } : {}),
    },
    status: newStatus(desired, nowMs),
  };
}

function newStatus(desired: DesiredNode, nowMs: number): NonNullable<Node['status']> {
  const at = timestamp(nowMs);
  const { capacity, allocatable, nodeInfo, declaredFeatures } = desired;
  return {
    addresses: [...desired.addresses],
    daemonEndpoints: { kubeletEndpoint: { Port: desired.kubeletPort } },
    conditions: desired.conditions.map(({ type, status, reason, message }) => ({
      type,
      status,
      reason,
      message,
      lastHeartbeatTime: at,
      lastTransitionTime: at,
    })),
    ...(nodeInfo === undefined ? {} : { nodeInfo }),
    ...(capacity === undefined ? {} : { capacity }),
    ...(allocatable === undefined ? {} : { allocatable }),
    ...(declaredFeatures === undefined ? {} : { declaredFeatures: [...declaredFeatures] }),
  };
}

/** Others' labels, taints and cordon; not the taints that controllers derive from conditions, they come by themselves. */
function keptOf(former: Node, desired: DesiredNode): Node {
  const taints = (former.spec?.taints ?? []).filter(
    ({ key }) => !/^node\.(cloudprovider\.)?kubernetes\.io\//.test(key),
  );
  const recorded = former.metadata.annotations?.[TAINTS_ANNOTATION];
  const cordonedByUs = former.metadata.annotations?.[CORDONED_ANNOTATION] !== undefined;
  return {
    metadata: {
      name: desired.name,
      ...(former.metadata.labels === undefined ? {} : { labels: former.metadata.labels }),
      ...(recorded === undefined ? {} : { annotations: { [TAINTS_ANNOTATION]: recorded } }),
    },
    spec: { taints, ...(former.spec?.unschedulable === true && !cordonedByUs ? { unschedulable: true } : {}) },
  };
}

function mergedTaints(node: Node, desired: DesiredNode): { list: Taint[]; own: Set<string> } {
  const recorded = new Set(recordedIn(node, TAINTS_ANNOTATION));
  const current = node.spec?.taints ?? [];
  const wanted = desired.taints.filter(({ key }) => !desired.undecidedTaints.includes(key));
  const isOwn = (taint: Taint): boolean =>
    isOfOurs(taint) || recorded.has(taintId(taint)) || wanted.some((one) => taintId(one) === taintId(taint));
  const keep = current.filter((taint) => !isOwn(taint) || desired.undecidedTaints.includes(taint.key));
  const own = wanted.map((taint) => {
    // The same taint keeps the time it was added at.
    const there = current.find((one) => taintId(one) === taintId(taint) && (one.value ?? '') === (taint.value ?? ''));
    return there ?? taint;
  });
  const undecided = current.filter(({ key }) => desired.undecidedTaints.includes(key));
  const list = [...keep, ...own];
  // The order has no meaning: a list that only differs in it is left as it is.
  const same = list.length === current.length && list.every((taint) => current.some((one) => jsonEqual(one, taint)));
  return { list: same ? current : list, own: new Set([...own, ...undecided].map((taint) => taintId(taint))) };
}

/** Taints of others that a patch of ours would remove: there must never be one. */
export function foreignTaintsLost(node: Node, patch: MergePatch): string[] {
  const after = (patch as { spec?: { taints?: Taint[] } }).spec?.taints;
  if (after === undefined) return [];
  const recorded = new Set(recordedIn(node, TAINTS_ANNOTATION));
  return (node.spec?.taints ?? [])
    .filter((taint) => !isOfOurs(taint) && !recorded.has(taintId(taint)))
    .map((taint) => taintId(taint))
    .filter((id) => !after.some((taint) => taintId(taint) === id));
}

/** Keys of our group are ours, but for the one by which somebody says that the node is to be emptied. */
function isOfOurs({ key }: Taint): boolean {
  return key.startsWith(`${GROUP}/`) && key !== DRAIN_TAINT;
}

function taintId({ key, effect }: Taint): string {
  return `${key}:${effect}`;
}

function cordon(node: Node, desired: DesiredNode, annotations: JsonObject, spec: JsonObject): void {
  const cordoned = node.spec?.unschedulable === true;
  const byUs = node.metadata.annotations?.[CORDONED_ANNOTATION] !== undefined;
  if (desired.unschedulable && !cordoned) {
    spec['unschedulable'] = true;
    if (!byUs) annotations[CORDONED_ANNOTATION] = 'true';
  } else if (!desired.unschedulable && byUs) {
    if (cordoned) spec['unschedulable'] = null;
    annotations[CORDONED_ANNOTATION] = null;
  }
}

function recordedIn(node: Node, annotation: string): string[] {
  return (node.metadata.annotations?.[annotation] ?? '').split(',').filter((entry) => entry !== '');
}

function recordPool(node: Node, annotations: JsonObject, { pool }: DesiredNode): void {
  if (pool !== undefined) record(node, annotations, POOL_ANNOTATION, new Set(poolText(pool).split(',')));
}

function record(node: Node, annotations: JsonObject, annotation: string, entries: ReadonlySet<string>): void {
  const text = [...entries].sort((a, b) => (a < b ? -1 : 1)).join(',');
  if ((node.metadata.annotations?.[annotation] ?? '') !== text) annotations[annotation] = text === '' ? null : text;
}
