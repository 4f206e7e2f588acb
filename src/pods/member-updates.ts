import { BINDING_LABELS } from '../kube/binding-labels.ts';
import type { Pod } from '../kube/core-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import {
  APPLIED_ANNOTATION,
  type AppliedParts,
  appliedHash,
  appliedParts,
  containersOf,
  isApplied,
  partsOf,
} from './applied.ts';
import { containerContext, type TranslateContext } from './translate.ts';
import { rewriteContainer, withoutExtenderMark } from './translate-containers.ts';
import { entryOf, type JsonRecord, listOf, recordOf, without } from '../kube/json-fields.ts';
import {
  copiedAnnotations,
  copiedKeys,
  COPIED_KEYS_ANNOTATION,
  copiedLabels,
  readCopiedKeys,
} from './translate-metadata.ts';
import { tolerationsForMember } from './translate-constraints.ts';
import { memberTolerations } from './translate-scheduling.ts';
import { injectedTokenVolumes } from './translate-volumes.ts';

/** One request to the member: a strategic merge patch of the pod or of a subresource, with its UID as precondition. */
export interface MemberUpdate {
  kind: 'patch' | 'ephemeralcontainers' | 'resize';
  type: 'strategic';
  subresource?: 'ephemeralcontainers' | 'resize';
  patch: Record<string, unknown>;
}

/**
 * What has to be sent to a running member pod because the host pod changed: nothing, or some of ephemeral containers,
 * a resize, and last a patch that also records what was received. A part is sent when the host's side of it changed
 * since, and only where the member's value differs: what the member changed by itself is left alone.
 */
export function memberUpdates(hostPod: Pod, memberPod: Pod, context: TranslateContext): MemberUpdate[] {
  if (isApplied(hostPod, memberPod)) return [];
  const updates: MemberUpdate[] = [];
  const now = partsOf(hostPod);
  // Without a record of what was received nothing can be told from drift: take the pod as it is, from here on.
  const before = appliedParts(memberPod) ?? now;
  const metadata = { uid: memberPod.metadata.uid };
  const ephemeral = before.ephemeral === now.ephemeral ? [] : newEphemeral(hostPod, memberPod, context);
  if (ephemeral.length > 0) {
    const patch = { metadata, spec: { ephemeralContainers: ephemeral } };
    updates.push({ kind: 'ephemeralcontainers', type: 'strategic', subresource: 'ephemeralcontainers', patch });
  }
  const resize = resizedSpec(hostPod, memberPod, before, now);
  if (resize !== undefined) {
    updates.push({ kind: 'resize', type: 'strategic', subresource: 'resize', patch: { metadata, spec: resize } });
  }
  const spec = {
    ...imagesOf(hostPod, memberPod, before, now),
    ...(before.spec === now.spec ? {} : runLimits(hostPod, memberPod)),
  };
  const patch = {
    metadata: { ...metadata, ...changedMetadata(hostPod, memberPod, before.metadata !== now.metadata) },
    ...(Object.keys(spec).length === 0 ? {} : { spec }),
  };
  updates.push({ kind: 'patch', type: 'strategic', patch });
  return updates;
}

/**
 * The update as it is sent after another one of the same change was refused: without the record of what was received, as not all was.
 * Undefined: there is nothing else in it that the member's pod has not got.
 */
export function withoutRecord(update: MemberUpdate, memberPod: Pod): MemberUpdate | undefined {
  if (update.kind !== 'patch') return update;
  const metadata = recordOf(update.patch['metadata']) ?? {};
  const { [APPLIED_ANNOTATION]: _record, ...others } = recordOf(metadata['annotations']) ?? {};
  const there = memberPod.metadata.annotations ?? {};
  const annotations = Object.fromEntries(
    Object.entries(others).filter(([key, value]) => (value ?? undefined) !== there[key]),
  );
  const isEmpty =
    update.patch['spec'] === undefined && metadata['labels'] === undefined && Object.keys(annotations).length === 0;
  return isEmpty ? undefined : { ...update, patch: { ...update.patch, metadata: { ...metadata, annotations } } };
}

function newEphemeral(hostPod: Pod, memberPod: Pod, context: TranslateContext): JsonRecord[] {
  const known = new Set(listOf(memberPod.spec.ephemeralContainers).map((item) => recordOf(item)?.['name']));
  // Whether the host's token volume is there was settled when the pod was made.
  const present = new Set(listOf(memberPod.spec.volumes).map((item) => recordOf(item)?.['name']));
  const injected = [...injectedTokenVolumes(recordOf(hostPod.spec) ?? {})];
  const removed = new Set(injected.filter((name) => !present.has(name)));
  const rewriting = containerContext(hostPod, removed, context);
  return listOf(hostPod.spec.ephemeralContainers).flatMap((item) => {
    const container = recordOf(item);
    if (container === undefined || known.has(container['name'])) return [];
    return [rewriteContainer(container, rewriting)];
  });
}

const LISTS = ['initContainers', 'containers'] as const;

/** For each container that changed: its name and what is to be set. Keyed by list, for a strategic merge by name. */
function perContainer(
  hostPod: Pod,
  memberPod: Pod,
  changed: (index: number) => boolean,
  difference: (host: JsonRecord, member: JsonRecord) => JsonRecord | undefined,
): JsonRecord {
  const members = new Map(
    containersOf(recordOf(memberPod.spec) ?? {}).map((container) => [container['name'], container]),
  );
  const result: Record<string, unknown> = {};
  let index = 0;
  for (const list of LISTS) {
    const entries: JsonRecord[] = [];
    for (const item of listOf(hostPod.spec[list])) {
      const host = recordOf(item);
      const member = members.get(host?.['name']);
      if (changed(index++) && host !== undefined && member !== undefined) {
        const set = difference(host, member);
        if (set !== undefined) entries.push({ name: host['name'], ...set });
      }
    }
    if (entries.length > 0) result[list] = entries;
  }
  return result;
}

function imagesOf(hostPod: Pod, memberPod: Pod, before: AppliedParts, now: AppliedParts): JsonRecord {
  const changed = (index: number): boolean => before.containers[index]?.image !== now.containers[index]?.image;
  return perContainer(hostPod, memberPod, changed, (host, member) =>
    host['image'] === member['image'] ? undefined : { image: host['image'] },
  );
}

/** The body of a resize: only the amounts that differ. Amounts cannot be taken back, only changed (KEP-1287). */
function resizedSpec(hostPod: Pod, memberPod: Pod, before: AppliedParts, now: AppliedParts): JsonRecord | undefined {
  const changed = (index: number): boolean => before.containers[index]?.resources !== now.containers[index]?.resources;
  const containers = perContainer(hostPod, memberPod, changed, (host, member) => {
    const resources = changedAmounts(withoutExtenderMark(host['resources']), member['resources']);
    return resources === undefined ? undefined : { resources };
  });
  const own =
    before.resources === now.resources ? undefined : changedAmounts(hostPod.spec.resources, memberPod.spec.resources);
  const spec = own === undefined ? containers : { ...containers, resources: own };
  return Object.keys(spec).length === 0 ? undefined : spec;
}

function changedAmounts(host: unknown, member: unknown): JsonRecord | undefined {
  const result: Record<string, unknown> = {};
  for (const kind of ['requests', 'limits']) {
    const has = recordOf(recordOf(member)?.[kind]);
    const wants = Object.entries(recordOf(recordOf(host)?.[kind]) ?? {});
    const differing = wants.filter(([resource, amount]) => !jsonEqual(entryOf(has, resource), amount));
    if (differing.length > 0) result[kind] = Object.fromEntries(differing);
  }
  return Object.keys(result).length === 0 ? undefined : result;
}

/** activeDeadlineSeconds and tolerations. */
function runLimits(hostPod: Pod, memberPod: Pod): JsonRecord {
  const deadline = hostPod.spec.activeDeadlineSeconds;
  const tolerations = mergedTolerations(
    listOf(memberTolerations(tolerationsForMember(hostPod))),
    listOf(memberPod.spec.tolerations),
  );
  return {
    ...(deadline === undefined || jsonEqual(deadline, memberPod.spec.activeDeadlineSeconds)
      ? {}
      : { activeDeadlineSeconds: deadline }),
    ...(tolerations === undefined ? {} : { tolerations }),
  };
}

/** The API takes new tolerations and new seconds of old ones, so the list is the member's with those; undefined: no change. */
function mergedTolerations(wanted: readonly unknown[], present: readonly unknown[]): readonly unknown[] | undefined {
  const merged = [...present];
  for (const toleration of wanted) {
    const place = merged.findIndex((item) => sameToleration(item, toleration));
    if (place < 0) merged.push(toleration);
    else merged[place] = toleration;
  }
  return jsonEqual(merged, present) ? undefined : merged;
}

function sameToleration(a: unknown, b: unknown): boolean {
  const [left, right] = [recordOf(a) ?? {}, recordOf(b) ?? {}];
  return ['key', 'operator', 'value', 'effect'].every((field) => (left[field] ?? '') === (right[field] ?? ''));
}

function changedMetadata(hostPod: Pod, memberPod: Pod, changed: boolean): JsonRecord {
  const applied = { [APPLIED_ANNOTATION]: appliedHash(hostPod) };
  if (!changed) return { annotations: applied };
  const known = readCopiedKeys(memberPod);
  const present = recordOf(memberPod.metadata.labels);
  // Each cluster says in which zone the pod is by the node that it has there.
  const ofItsNode = BINDING_LABELS.filter((key) => entryOf(present, key) !== undefined);
  const labels = without(changedEntries(copiedLabels(hostPod), present, known.labels), ofItsNode);
  const annotations = changedEntries(
    copiedAnnotations(hostPod),
    recordOf(memberPod.metadata.annotations),
    known.annotations,
  );
  return {
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    annotations: { ...annotations, [COPIED_KEYS_ANNOTATION]: copiedKeys(hostPod), ...applied },
  };
}

/** Entries to set, and null for those that we copied once and the host has no more. */
function changedEntries(host: JsonRecord, member: JsonRecord | undefined, copied: readonly string[]): JsonRecord {
  const gone = copied.filter((key) => !Object.hasOwn(host, key) && entryOf(member, key) !== undefined);
  const set = Object.entries(host).filter(([key, value]) => entryOf(member, key) !== value);
  return Object.fromEntries([...gone.map((key): [string, unknown] => [key, null]), ...set]);
}
