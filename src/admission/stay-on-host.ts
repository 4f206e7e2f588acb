import { MEMBER_LABEL, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { requiredTerms } from '../api/virtual-node-choice.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import type { PatchStep } from './patch-step.ts';
import { requireTerms } from './required-affinity.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const NO_VIRTUAL_NODE = { key: MEMBER_LABEL, operator: 'DoesNotExist' };

/**
 * Keeps a pod on nodes of the host that tolerates virtual nodes only as it tolerates everything: nothing says that it may leave the
 * host, and a scheduler that does not ask Spillway would send it there. What names its nodes, a pod or one of its ORed terms, can go
 * nowhere else, and is left alone. The same is in manifests/admission. Empty where there is nothing to do.
 */
export function stayOnHost(spec: JsonRecord): PatchStep[] {
  const tolerations = listOf(spec['tolerations']).map((item) => recordOf(item) ?? {});
  if (!tolerations.some(toleratesEverything) || tolerations.some(({ key }) => key === VIRTUAL_NODE_TAINT)) return [];
  const terms = requiredTerms(spec).map((term) => recordOf(term) ?? {});
  const isNamed = entryOf(recordOf(spec['nodeSelector']), HOSTNAME) !== undefined;
  if (isNamed || (terms.length > 0 && terms.every(isSettled))) return [];
  const all = terms.length === 0 ? [{ matchExpressions: [NO_VIRTUAL_NODE] }] : terms.map(withoutVirtualNodes);
  return [requireTerms(spec, all)];
}

function toleratesEverything({ key = '', operator, effect = '' }: JsonRecord): boolean {
  return key === '' && operator === 'Exists' && (effect === '' || effect === 'NoSchedule');
}

/** It leaves virtual nodes out, or means nodes by their names. */
function isSettled(term: JsonRecord): boolean {
  const { matchExpressions, matchFields } = term;
  return (
    isEmpty(term) ||
    listOf(matchFields).some((line) => recordOf(line)?.['operator'] === 'In') ||
    listOf(matchExpressions).some((line) => {
      const { key, operator } = recordOf(line) ?? {};
      return (
        (key === HOSTNAME && operator === 'In') ||
        (key === NO_VIRTUAL_NODE.key && operator === NO_VIRTUAL_NODE.operator)
      );
    })
  );
}

/** A term without lines matches no node, and must not begin to. */
function isEmpty({ matchExpressions, matchFields }: JsonRecord): boolean {
  return listOf(matchExpressions).length + listOf(matchFields).length === 0;
}

function withoutVirtualNodes(term: JsonRecord): JsonRecord {
  if (isSettled(term)) return term;
  return { ...term, matchExpressions: [...listOf(term['matchExpressions']), NO_VIRTUAL_NODE] };
}
