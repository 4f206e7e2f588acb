import { MEMBER_LABEL, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import type { PatchStep } from './patch-step.ts';
import { requireTerms } from './required-affinity.ts';
import { requiredTerms } from './virtual-node-choice.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const NO_VIRTUAL_NODE = { key: MEMBER_LABEL, operator: 'DoesNotExist' };

/**
 * Keeps a pod on nodes of the host that tolerates virtual nodes only as it tolerates everything: nothing says that it may leave the
 * host, and a scheduler that does not ask Spillway would send it there. A pod that names its nodes can go nowhere else, and is
 * left alone. The same is in manifests/admission. Empty where there is nothing to do.
 */
export function stayOnHost(spec: JsonRecord): PatchStep[] {
  const tolerations = listOf(spec['tolerations']).map((item) => recordOf(item) ?? {});
  if (!tolerations.some(toleratesEverything) || tolerations.some(({ key }) => key === VIRTUAL_NODE_TAINT)) return [];
  const terms = requiredTerms(spec).map((term) => recordOf(term) ?? {});
  if (namesNodes(spec, terms) || (terms.length > 0 && terms.every(leavesVirtualNodesOut))) return [];
  const all = terms.length === 0 ? [{ matchExpressions: [NO_VIRTUAL_NODE] }] : terms.map(withoutVirtualNodes);
  return [requireTerms(spec, all)];
}

function toleratesEverything({ key = '', operator, effect = '' }: JsonRecord): boolean {
  return key === '' && operator === 'Exists' && (effect === '' || effect === 'NoSchedule');
}

function namesNodes(spec: JsonRecord, terms: readonly JsonRecord[]): boolean {
  if (entryOf(recordOf(spec['nodeSelector']), HOSTNAME) !== undefined) return true;
  return terms.some(
    ({ matchExpressions, matchFields }) =>
      listOf(matchFields).some((line) => recordOf(line)?.['operator'] === 'In') ||
      listOf(matchExpressions).some((line) => {
        const { key, operator } = recordOf(line) ?? {};
        return key === HOSTNAME && operator === 'In';
      }),
  );
}

function leavesVirtualNodesOut(term: JsonRecord): boolean {
  return isEmpty(term) || listOf(term['matchExpressions']).some(isThatLine);
}

function isThatLine(line: unknown): boolean {
  const { key, operator } = recordOf(line) ?? {};
  return key === NO_VIRTUAL_NODE.key && operator === NO_VIRTUAL_NODE.operator;
}

/** A term without lines matches no node, and must not begin to. */
function isEmpty({ matchExpressions, matchFields }: JsonRecord): boolean {
  return listOf(matchExpressions).length + listOf(matchFields).length === 0;
}

function withoutVirtualNodes(term: JsonRecord): JsonRecord {
  if (leavesVirtualNodesOut(term)) return term;
  return { ...term, matchExpressions: [...listOf(term['matchExpressions']), NO_VIRTUAL_NODE] };
}
