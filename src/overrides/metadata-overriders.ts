import type { Overrider } from '../api/overriders.ts';
import { isLabelValue, isQualifiedName } from '../kube/label-selector.ts';
import { type JsonRecord, recordOf } from '../kube/json-fields.ts';
import { withEntries } from './list-fields.ts';
import { OverrideError } from './override-error.ts';

/** Labels or annotations of the object itself. What they come to is checked here, because values may hold variables. */
export function overrideMetadata(
  object: JsonRecord,
  field: 'labels' | 'annotations',
  { operator, value: entries }: Overrider<'labelsOverrider'>,
): JsonRecord {
  for (const [key, value] of Object.entries(entries)) {
    const where = `metadata.${field}`;
    if (!isQualifiedName(key)) throw new OverrideError(where, `"${key}" is not a key for ${field}`);
    if (field === 'labels' && operator !== 'remove' && !isLabelValue(value)) {
      throw new OverrideError(where, `"${value}" is not a label value (key "${key}")`);
    }
  }
  const before = recordOf(object['metadata']) ?? {};
  const after = withEntries(before, field, operator, entries);
  return after === before ? object : { ...object, metadata: after };
}
