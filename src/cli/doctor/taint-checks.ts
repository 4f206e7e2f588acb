import { OUTAGE_TAINTS } from '../../api/outage-tolerations.ts';
import { DRAIN_TAINT, OUT_OF_SERVICE_TAINT } from '../../api/marks.ts';
import { isToBeEmptied } from '../member-taints.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import type { Node } from '../../kube/core-v1.ts';
import { warning, type Finding } from './finding.ts';

/** Kubernetes sets those itself, and the last one is the word of an administrator, which has a condition of its own. */
const KNOWN: ReadonlySet<string> = new Set([...OUTAGE_TAINTS, OUT_OF_SERVICE_TAINT]);

/** Taints of effect NoExecute on virtual nodes: Kubernetes ends all pods there at once that do not tolerate them, wherever they fit. */
export function nothingIsEvictedAtOnce(nodes: readonly Node[]): Finding[] {
  return nodes.flatMap((node) => {
    const member = memberOfNode(node);
    if (member === undefined) return [];
    const { name } = node.metadata;
    const taints = (node.spec?.taints ?? []).filter(({ key, effect }) => effect === 'NoExecute' && !KNOWN.has(key));
    return taints.map(({ key }): Finding =>
      warning(
        'virtual nodes',
        `${name} has the taint ${key}:NoExecute: Kubernetes deletes all pods there that do not tolerate it, at once and wherever they fit`,
        `kubectl taint node ${name} ${key}:NoExecute-; ` +
          (key === DRAIN_TAINT
            ? 'with effect NoSchedule pods are moved one after the other'
            : `in spec.taints of MemberCluster ${member} it has pods moved one after the other, where they fit`),
        'concepts/failover.md',
      ),
    );
  });
}

/** Virtual nodes that are to be emptied, which people may have forgotten: they take no new pods. */
export function nothingIsDrained(nodes: readonly Node[]): Finding[] {
  // Of those with effect NoExecute the check above tells.
  const isAtOnce = ({ spec }: Node): boolean =>
    (spec?.taints ?? []).some(({ key, effect }) => key === DRAIN_TAINT && effect === 'NoExecute');
  const drained = nodes.filter((node) => memberOfNode(node) !== undefined && isToBeEmptied(node) && !isAtOnce(node));
  return drained.map(({ metadata: { name } }) =>
    warning(
      'virtual nodes',
      `${name} is to be emptied (taint ${DRAIN_TAINT}): it takes no new pods, and those that are there are moved where they fit elsewhere`,
      `kubectl taint node ${name} ${DRAIN_TAINT}-, when that is over`,
      'concepts/failover.md#draining-a-virtual-node',
    ),
  );
}
