import { isJsonObject } from '../../kube/json-equal.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { PODS, type Resource } from '../../kube/resource.ts';

const { managedFields: _left, ...whole } = PODS;
/** Pods with what {@link namesItsNode} reads. */
export const PODS_WITH_FIELDS: Resource = whole;

/**
 * Whether a pod was made with its node (`spec.nodeName`), so that no scheduler was ever asked about it. Of a node that a scheduler bound it to
 * nobody owns the field: a binding leaves no trace in metadata.managedFields, or one of its subresource. False where that is not known.
 */
export function namesItsNode({ metadata }: Pod): boolean {
  const { managedFields } = metadata as { managedFields?: unknown };
  return (Array.isArray(managedFields) ? managedFields : []).some((entry: unknown) => {
    const fields = isJsonObject(entry) && (entry['subresource'] ?? '') === '' ? entry['fieldsV1'] : undefined;
    const spec = isJsonObject(fields) ? fields['f:spec'] : undefined;
    return isJsonObject(spec) && 'f:nodeName' in spec;
  });
}
