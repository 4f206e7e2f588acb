import { MEMBER_LABEL, NODE_LABEL } from './marks.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';

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
  const means = meaningOf(isVirtualNode, [NODE_LABEL, MEMBER_LABEL, TYPE_LABEL, HOSTNAME]);
  return selects(spec, means) || requiredTerms(spec).some((term) => linesOf(term).some(means));
}

/**
 * Whether a pod can run on no other node than one of ours: by its nodeSelector, or by each term of its required node affinity.
 * The label `type` does not count: virtual nodes of other programs have it, too.
 */
export function goesOnlyToVirtualNodes(spec: JsonRecord, isVirtualNode: IsVirtualNode): boolean {
  const means = meaningOf(isVirtualNode, [NODE_LABEL, MEMBER_LABEL]);
  const terms = requiredTerms(spec);
  return (
    selects(spec, meaningOf(isVirtualNode, [NODE_LABEL, MEMBER_LABEL, HOSTNAME])) ||
    (terms.length > 0 && terms.every((term) => linesOf(term).some(means)))
  );
}

interface Line {
  readonly key?: unknown;
  readonly operator?: unknown;
  readonly values?: unknown;
}
type IsMeant = (line: Line) => boolean;

/** Which lines speak of virtual nodes, by these keys. */
function meaningOf(isVirtualNode: IsVirtualNode, keys: readonly string[]): IsMeant {
  return ({ key, operator, values }) => {
    if (typeof key !== 'string' || !keys.includes(key)) return false;
    if (operator !== 'In' && operator !== 'Exists') return false;
    if (key === NODE_LABEL || key === MEMBER_LABEL) return true;
    if (operator !== 'In') return false;
    if (key === TYPE_LABEL) return listOf(values).includes(VIRTUAL_TYPE);
    return listOf(values).some((value) => typeof value === 'string' && isVirtualNode(value));
  };
}

function selects(spec: JsonRecord, means: IsMeant): boolean {
  const selector = recordOf(spec['nodeSelector']) ?? {};
  return Object.keys(selector).some((key) => means({ key, operator: 'In', values: [entryOf(selector, key)] }));
}

/** The lines of a term, all of which must hold. The only field is metadata.name. */
function linesOf(term: unknown): Line[] {
  const { matchExpressions, matchFields } = recordOf(term) ?? {};
  return [
    ...listOf(matchExpressions).map((line): Line => recordOf(line) ?? {}),
    ...listOf(matchFields).map((line): Line => ({ ...recordOf(line), key: HOSTNAME })),
  ];
}
