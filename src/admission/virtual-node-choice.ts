import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../pods/translate-json.ts';

const TYPE_LABEL = 'type';
const VIRTUAL_TYPE = 'virtual-kubelet';
const HOSTNAME = 'kubernetes.io/hostname';

/** Whether a node of that name is one of the virtual nodes. */
export type IsVirtualNode = (name: string) => boolean;

/** The terms of a pod's required node affinity; of several, one must hold. */
export function requiredTerms(spec: JsonRecord): readonly unknown[] {
  const affinity = recordOf(recordOf(spec['affinity'])?.['nodeAffinity']);
  return listOf(recordOf(affinity?.['requiredDuringSchedulingIgnoredDuringExecution'])?.['nodeSelectorTerms']);
}

/**
 * Whether a pod asks for a virtual node, by its name or by the labels that only virtual nodes have: in its nodeSelector, or
 * in any of the ORed terms of its required node affinity. The same words are in manifests/admission.
 */
export function asksForVirtualNode(spec: JsonRecord, isVirtualNode: IsVirtualNode): boolean {
  const means = (key: string, operator: unknown, values: readonly unknown[]): boolean => {
    if (operator !== 'In' && operator !== 'Exists') return false;
    if (key === NODE_LABEL || key === MEMBER_LABEL) return true;
    if (operator !== 'In') return false;
    if (key === TYPE_LABEL) return values.includes(VIRTUAL_TYPE);
    return key === HOSTNAME && values.some((value) => typeof value === 'string' && isVirtualNode(value));
  };
  const selector = recordOf(spec['nodeSelector']);
  const keys = [NODE_LABEL, MEMBER_LABEL, TYPE_LABEL, HOSTNAME];
  if (
    keys.some(
      (key) => selector !== undefined && Object.hasOwn(selector, key) && means(key, 'In', [entryOf(selector, key)]),
    )
  )
    return true;
  return requiredTerms(spec).some((term) => {
    const { matchExpressions, matchFields } = recordOf(term) ?? {};
    // The only field is metadata.name.
    const lines = [
      ...listOf(matchExpressions).map((line) => ({ key: undefined, ...recordOf(line) })),
      ...listOf(matchFields).map((line) => ({ ...recordOf(line), key: HOSTNAME })),
    ] as JsonRecord[];
    return lines.some(({ key, operator, values }) => means(String(key), operator, listOf(values)));
  });
}
