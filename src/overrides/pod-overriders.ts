import type { Overrider } from '../api/overriders.ts';
import { type JsonRecord, listOf, recordOf, rewriteField, rewriteItems, textOf, without } from '../kube/json-fields.ts';
import { editPodSpec } from './edit-containers.ts';
import { withEntries, withList } from './list-fields.ts';

/** Pull secrets by name; none twice. */
export function overridePullSecrets(
  object: JsonRecord,
  { operator, value: names }: Overrider<'imagePullSecretsOverrider'>,
): JsonRecord {
  return editPodSpec(object, (spec) => {
    const before = listOf(spec['imagePullSecrets']);
    const present = new Set(before.map((item) => textOf(recordOf(item)?.['name'])));
    const entries = [...new Set(names)].map((name) => ({ name }));
    switch (operator) {
      case 'add':
        return withList(spec, 'imagePullSecrets', [...before, ...entries.filter(({ name }) => !present.has(name))]);
      case 'remove': {
        const rest = before.filter((item) => !names.includes(textOf(recordOf(item)?.['name']) ?? ''));
        return withList(spec, 'imagePullSecrets', rest);
      }
      case 'replace':
        return withList(spec, 'imagePullSecrets', entries);
    }
  });
}

const TOLERATION_KEY = ['key', 'operator', 'value', 'effect'] as const;
/** What the API server fills in where nothing is given. */
const TOLERATION_DEFAULTS: JsonRecord = { key: '', operator: 'Equal', value: '', effect: '' };

export function overrideTolerations(
  object: JsonRecord,
  { operator, value: tolerations }: Overrider<'tolerationsOverrider'>,
): JsonRecord {
  return editPodSpec(object, (spec) =>
    withList(spec, 'tolerations', changedTolerations(listOf(spec['tolerations']), operator, tolerations)),
  );
}

function changedTolerations(
  before: readonly unknown[],
  operator: Overrider<'tolerationsOverrider'>['operator'],
  tolerations: readonly JsonRecord[],
): readonly unknown[] {
  switch (operator) {
    case 'replace':
      return tolerations;
    case 'remove':
      return before.filter((item) => !tolerations.some((given) => agrees(recordOf(item) ?? {}, given)));
    case 'add': {
      const after = [...before];
      for (const toleration of tolerations) {
        const place = after.findIndex((item) => sameToleration(recordOf(item) ?? {}, toleration));
        if (place < 0) after.push(toleration);
        else after[place] = toleration;
      }
      return after;
    }
  }
}

function field(toleration: JsonRecord, name: string): unknown {
  return toleration[name] ?? TOLERATION_DEFAULTS[name];
}

function sameToleration(a: JsonRecord, b: JsonRecord): boolean {
  return TOLERATION_KEY.every((name) => field(a, name) === field(b, name));
}

/** Every field that is given is the same. Nothing given agrees with nothing: that would take out all of them. */
function agrees(toleration: JsonRecord, given: JsonRecord): boolean {
  const names = Object.keys(given);
  return names.length > 0 && names.every((name) => field(toleration, name) === given[name]);
}

export function overrideNodeSelector(
  object: JsonRecord,
  { operator, value }: Overrider<'nodeSelectorOverrider'>,
): JsonRecord {
  return editPodSpec(object, (spec) => withEntries(spec, 'nodeSelector', operator, value));
}

/** The service account of the member that pods run as, without its token. */
export function overrideServiceAccount(
  object: JsonRecord,
  { value }: Overrider<'serviceAccountOverrider'>,
): JsonRecord {
  return editPodSpec(object, (spec) => withName(spec, 'serviceAccountName', { operator: 'add', value }));
}

export function overrideRuntimeClass(object: JsonRecord, overrider: Overrider<'runtimeClassOverrider'>): JsonRecord {
  return editPodSpec(object, (spec) => withName(spec, 'runtimeClassName', overrider));
}

type NameOverrider = { operator: 'add' | 'remove' | 'replace'; value?: string };

function withName(record: JsonRecord, name: string, { operator, value }: NameOverrider): JsonRecord {
  const present = record[name] !== undefined && record[name] !== null;
  if (operator === 'remove') return without(record, [name]);
  return (operator === 'replace' && !present) || record[name] === value ? record : { ...record, [name]: value };
}

/** Storage classes of a claim, or of the claims that are made for a pod's generic ephemeral volumes. */
export function overrideStorageClass(object: JsonRecord, overrider: Overrider<'storageClassOverrider'>): JsonRecord {
  if (object['kind'] === 'PersistentVolumeClaim') {
    return rewriteField(object, 'spec', (spec) => claimSpec(spec, overrider));
  }
  return editPodSpec(object, (spec) =>
    rewriteField(spec, 'volumes', (volumes) =>
      rewriteItems(volumes, (volume) =>
        inField(volume, 'ephemeral', (ephemeral) =>
          inField(ephemeral, 'volumeClaimTemplate', (template) =>
            rewriteField(template, 'spec', (claim) => claimSpec(claim, overrider)),
          ),
        ),
      ),
    ),
  );
}

function inField(record: JsonRecord, name: string, edit: (value: JsonRecord) => JsonRecord): JsonRecord {
  return rewriteField(record, name, (value) => {
    const inner = recordOf(value);
    return inner === undefined ? value : edit(inner);
  });
}

function claimSpec(value: unknown, overrider: Overrider<'storageClassOverrider'>): unknown {
  const spec = recordOf(value);
  if (spec === undefined) return value;
  if (overrider.from !== undefined && spec['storageClassName'] !== overrider.from) return spec;
  return withName(spec, 'storageClassName', overrider);
}
