import { DRAIN_TAINT } from '../api/marks.ts';
import type { Node } from '../kube/core-v1.ts';
import { CORDONED_ANNOTATION } from '../nodes/node-marks.ts';
import { isToBeEmptied } from './member-taints.ts';

/** What people said of single virtual nodes, which letting their member take new pods does not take back; each with what does. */
export function stillKeptOff(nodes: readonly Node[]): string[] {
  return nodes.flatMap((node) => {
    const { name } = node.metadata;
    // One that the manager cordoned it uncordons itself.
    const byOthers =
      node.spec?.unschedulable === true && node.metadata.annotations?.[CORDONED_ANNOTATION] === undefined;
    const stays = `${name} takes no new pods all the same, as`;
    return [
      ...(isToBeEmptied(node)
        ? [`${stays} it is to be emptied (taint ${DRAIN_TAINT}): kubectl taint node ${name} ${DRAIN_TAINT}-`]
        : []),
      ...(byOthers ? [`${stays} somebody cordoned that node: kubectl uncordon ${name}`] : []),
    ];
  });
}
