import { HOST_NAMESPACE_ANNOTATION, HOST_UID_ANNOTATION } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isCopiedAnnotation, isCopiedLabel } from './translate-metadata.ts';
import { entryOf, type JsonRecord, recordOf, rewriteField, rewriteItems, textOf } from '../kube/json-fields.ts';

/** What the downward API must say although the member pod's own fields say something else. */
export interface HostFacts {
  namespace: string;
  uid: string;
  nodeName: string;
  serviceAccountName: string;
  labels: JsonRecord | undefined;
  annotations: JsonRecord | undefined;
}

export function hostFacts(hostPod: Pod, nodeName: string): HostFacts {
  return {
    namespace: hostPod.metadata.namespace ?? '',
    uid: hostPod.metadata.uid ?? '',
    nodeName: textOf(hostPod.spec.nodeName) ?? nodeName,
    serviceAccountName: textOf(hostPod.spec.serviceAccountName) ?? '',
    labels: recordOf(hostPod.metadata.labels),
    annotations: recordOf(hostPod.metadata.annotations),
  };
}

const SUBSCRIPT = /^metadata\.(labels|annotations)\['(.+)'\]$/;

/**
 * An environment variable with its `fieldRef` as a literal, where the host's value differs from what a kubelet of the
 * member would find. The rest (addresses, the name, labels and annotations that are copied) is left to that kubelet.
 */
export function rewriteVariable(variable: JsonRecord, facts: HostFacts): JsonRecord {
  const valueFrom = recordOf(variable['valueFrom']);
  const path = textOf(recordOf(valueFrom?.['fieldRef'])?.['fieldPath']);
  const value = path === undefined ? undefined : hostValue(path, facts);
  if (value === undefined) return variable;
  const { valueFrom: _, ...rest } = variable;
  return { ...rest, value: literal(value) };
}

function hostValue(path: string, facts: HostFacts): string | undefined {
  switch (path) {
    case 'metadata.namespace':
      return facts.namespace;
    case 'metadata.uid':
      return facts.uid;
    case 'spec.nodeName':
      return facts.nodeName;
    case 'spec.serviceAccountName':
      return facts.serviceAccountName;
    default:
      return keptBack(path, facts);
  }
}

/** The value of a label or annotation that the member pod does not have, or has with a value of our own. */
function keptBack(path: string, facts: HostFacts): string | undefined {
  const [, map, key] = SUBSCRIPT.exec(path) ?? [];
  if (map === undefined || key === undefined) return undefined;
  if (map === 'labels' ? isCopiedLabel(key) : isCopiedAnnotation(key)) return undefined;
  return textOf(entryOf(map === 'labels' ? facts.labels : facts.annotations, key)) ?? '';
}

/** A literal is expanded by the kubelet, a field's value is not: `$$` is how a literal says `$`. */
function literal(value: string): string {
  return value.replaceAll('$', '$$$$');
}

/** Files cannot hold literals, but they can hold an annotation, and the member pod has the host's values as such. */
const FILE_FIELDS = new Map([
  ['metadata.namespace', `metadata.annotations['${HOST_NAMESPACE_ANNOTATION}']`],
  ['metadata.uid', `metadata.annotations['${HOST_UID_ANNOTATION}']`],
]);

/** A `downwardAPI` volume or projected source whose files say what they say in the host. */
export function rewriteDownwardFiles(source: unknown): unknown {
  const record = recordOf(source);
  if (record === undefined) return source;
  return rewriteField(record, 'items', (items) =>
    rewriteItems(items, (item) => rewriteField(item, 'fieldRef', rewriteFileField)),
  );
}

function rewriteFileField(fieldRef: unknown): unknown {
  const record = recordOf(fieldRef);
  const mapped = FILE_FIELDS.get(textOf(record?.['fieldPath']) ?? '');
  return record === undefined || mapped === undefined ? fieldRef : { ...record, fieldPath: mapped };
}
