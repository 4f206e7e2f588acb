import { GROUP } from '../api/marks.ts';
import { isDefaultToleration, isOutageToleration } from '../api/outage-tolerations.ts';
import type { Pod } from '../kube/core-v1.ts';
import {
  fieldsOf,
  entryOf,
  type JsonRecord,
  keepSome,
  recordOf,
  rewriteField,
  rewriteItems,
  rewriteObject,
  without,
} from '../kube/json-fields.ts';
import { isHostOnlyKey, memberNodeAffinity, type NodeChoice, withExclusion } from './translate-node-affinity.ts';
import { memberPodAffinity, memberSpread, type NamespaceMap } from './translate-pod-affinity.ts';

export interface SchedulingContext extends NodeChoice {
  /** Labels of the member's nodes that belong to this virtual node. */
  poolSelector?: Readonly<Record<string, string>> | undefined;
  memberNamespaceOf: NamespaceMap;
}

/** What the member's scheduler gets to see of where the pod may run; see docs/pod-translation.md. */
export function rewriteScheduling(spec: JsonRecord, context: SchedulingContext): JsonRecord {
  const affinity = memberAffinity(spec['affinity'], context);
  const nodeSelector = memberNodeSelector(spec['nodeSelector'], context);
  const spread = rewriteField(spec, 'topologySpreadConstraints', memberSpread);
  const tolerations = rewriteField(spread, 'tolerations', memberTolerations);
  return replace(replace(tolerations, 'affinity', affinity), 'nodeSelector', nodeSelector);
}

/** A translated pod whose affinity was changed afterwards, kept away from the excluded nodes as before. */
export function excludingNodes(pod: Pod, translated: Pod, excludedNodes: SchedulingContext['excludedNodes']): Pod {
  const spec = fieldsOf(pod.spec);
  if (excludedNodes === undefined || spec['affinity'] === fieldsOf(translated.spec)['affinity']) return pod;
  const affinity = recordOf(spec['affinity']) ?? {};
  const nodeAffinity = withExclusion(recordOf(affinity['nodeAffinity']) ?? {}, excludedNodes);
  return { ...pod, spec: rewriteObject(pod.spec, (own) => ({ ...own, affinity: { ...affinity, nodeAffinity } })) };
}

function replace(record: JsonRecord, key: string, value: unknown): JsonRecord {
  if (record[key] === value) return record;
  return value === undefined ? without(record, [key]) : { ...record, [key]: value };
}

/** The keys of the user's selector that contradict the pool's, which can only be when labels changed after scheduling. */
export function poolConflicts(spec: JsonRecord, poolSelector: Readonly<Record<string, string>> | undefined): string[] {
  const selector = recordOf(spec['nodeSelector']);
  return Object.entries(poolSelector ?? {}).flatMap(([key, value]) => {
    const asked = entryOf(selector, key);
    return asked === undefined || asked === value ? [] : [key];
  });
}

function memberNodeSelector(value: unknown, context: SchedulingContext): unknown {
  const pool = context.poolSelector ?? {};
  const selector = recordOf(value);
  if (selector === undefined) return Object.keys(pool).length === 0 ? value : pool;
  const hostOnly = Object.keys(selector).filter((key) => isHostOnlyKey(key, context));
  const rest = without(selector, hostOnly);
  const after = Object.entries(pool).every(([key, wanted]) => entryOf(rest, key) === wanted)
    ? rest
    : { ...rest, ...pool };
  return after !== selector && Object.keys(after).length === 0 ? undefined : after;
}

function memberAffinity(value: unknown, context: SchedulingContext): unknown {
  const affinity = recordOf(value);
  if (affinity === undefined && value !== undefined && value !== null) return value;
  const before = affinity ?? {};
  const node = replace(before, 'nodeAffinity', memberNodeAffinity(before['nodeAffinity'], context));
  const namespaceOf = context.memberNamespaceOf;
  const near = rewriteField(node, 'podAffinity', (part) => memberPodAffinity(part, namespaceOf));
  const after = rewriteField(near, 'podAntiAffinity', (part) => memberPodAffinity(part, namespaceOf));
  if (after === before) return value;
  return Object.keys(after).length === 0 ? undefined : after;
}

/**
 * Tolerations of the member pod: without those of our own taints, which only virtual nodes carry, without the two that every host
 * adds, so that the member can add its own, and without those of a virtual node that nobody serves. The rest goes down,
 * however many there are.
 */
export function memberTolerations(tolerations: unknown): unknown {
  const after = rewriteItems(tolerations, (item) => (isHostToleration(item) ? undefined : item));
  return keepSome(after, tolerations);
}

function isHostToleration(item: JsonRecord): boolean {
  const { key } = item;
  if (typeof key !== 'string') return false;
  return key.startsWith(`${GROUP}/`) || isDefaultToleration(item) || isOutageToleration(item);
}
