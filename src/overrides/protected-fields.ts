import { GROUP } from '../api/marks.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { entryOf, type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { isPod } from './edit-containers.ts';

const FREE_METADATA = new Set(['labels', 'annotations']);
/** A copy of another type would be deleted and made again for ever. */
const FIXED: Readonly<Record<string, readonly string[]>> = { Secret: ['type'] };

/**
 * The first thing that policies must leave alone and that differs: what an object is, who it belongs to, where it runs,
 * and what its mirror relies on. Undefined when all is well. Looked at after every rule, whatever it used to change things.
 *
 * `pool`: labels of the nodes that the pod must stay on.
 */
export function changedProtectedField(
  before: JsonRecord,
  after: JsonRecord,
  pool: Readonly<Record<string, string>>,
): string | undefined {
  const top = differing(before, after, [
    'apiVersion',
    'kind',
    'status',
    ...(FIXED[textOf(before['kind']) ?? ''] ?? []),
  ]);
  if (top !== undefined) return `/${top}`;
  const [own, changed] = [recordOf(before['metadata']) ?? {}, recordOf(after['metadata'])];
  if (changed === undefined) return '/metadata';
  const names = Object.keys({ ...own, ...changed }).filter((name) => !FREE_METADATA.has(name));
  const field = differing(own, changed, names);
  if (field !== undefined) return `/metadata/${field}`;
  for (const map of FREE_METADATA) {
    const mark = changedMark(own[map], changed[map]);
    if (mark !== undefined) return `/metadata/${map}${mark}`;
  }
  if (before['kind'] === 'PersistentVolumeClaim') return changedClaimField(before, after);
  return isPod(before) ? changedPodField(before, after, pool) : undefined;
}

/** Which volume a claim gets, and its content, is between its user and the member. */
const FREE_OF_CLAIMS = new Set(['storageClassName', 'volumeAttributesClassName']);

function changedClaimField(before: JsonRecord, after: JsonRecord): string | undefined {
  const [had, has] = [recordOf(before['spec']) ?? {}, recordOf(after['spec'])];
  if (has === undefined) return '/spec';
  const names = Object.keys({ ...had, ...has }).filter((name) => !FREE_OF_CLAIMS.has(name));
  const field = differing(had, has, names);
  return field === undefined ? undefined : `/spec/${field}`;
}

function differing(before: JsonRecord, after: JsonRecord, names: readonly string[]): string | undefined {
  return names.find((name) => !jsonEqual(entryOf(before, name), entryOf(after, name)));
}

/** Our own keys tell whose an object is. */
function changedMark(before: unknown, after: unknown): string | undefined {
  if (before === after) return undefined;
  const [had, has] = [recordOf(before) ?? {}, recordOf(after)];
  if (has === undefined && after !== undefined) return '';
  const keys = Object.keys({ ...had, ...has }).filter((key) => key.startsWith(`${GROUP}/`));
  const changed = differing(had, has ?? {}, keys);
  return changed === undefined ? undefined : `/${changed.replaceAll('/', '~1')}`;
}

function changedPodField(
  before: JsonRecord,
  after: JsonRecord,
  pool: Readonly<Record<string, string>>,
): string | undefined {
  const [had, has] = [recordOf(before['spec']) ?? {}, recordOf(after['spec'])];
  if (has === undefined) return '/spec';
  if (had === has) return undefined;
  if (differing(had, has, ['nodeName']) !== undefined) return '/spec/nodeName';
  // The status of containers, logs and exec go by these names.
  const [names, left] = [namesOf(had), new Set(namesOf(has))];
  if (names.some((name) => !left.has(name))) return '/spec/containers';
  const selector = recordOf(has['nodeSelector']);
  const lost = Object.entries(pool).find(([key, value]) => entryOf(selector, key) !== value);
  return lost === undefined ? undefined : `/spec/nodeSelector/${lost[0].replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function namesOf(spec: JsonRecord): unknown[] {
  return listOf(spec['containers']).map((container) => recordOf(container)?.['name']);
}
