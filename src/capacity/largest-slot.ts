import { nanosOf } from './demand.ts';
import { elasticGroupOf } from './elastic.ts';
import type { FitShape } from './fit-shape.ts';
import { type NodeChoice, nodeChoiceOf, VERDICT } from './node-choice.ts';
import type { NodeTable } from './node-table.ts';
import type { Pool } from './pool.ts';

const ANY_NODE = nodeChoiceOf({});

/** Which nodes pods may use that tolerate nothing but what every pod does that comes to one of the pools. */
export function ordinaryChoices(pools: readonly Pool[]): readonly NodeChoice[] {
  const choices = pools.map(({ taints }) =>
    nodeChoiceOf({ tolerations: taints.map(({ key, value = '', effect }) => ({ key, value, effect })) }),
  );
  return choices.length === 0 ? [ANY_NODE] : [...new Map(choices.map((choice) => [choice.key, choice])).values()];
}

/** Raises `largest` to the most that a node which suits has free, each resource by itself; nodes that do not exist yet are left out. */
export function raiseToSlots(largest: Map<string, bigint>, { column }: FitShape, table: NodeTable): void {
  for (let row = 0; row < table.rows; row++) {
    const node = table.node(row);
    if (node === undefined || elasticGroupOf(node) !== undefined || column.verdict(row) !== VERDICT.suits) continue;
    const raise = (resource: string, amount: number): void => {
      const nanos = nanosOf(resource, Math.max(0, amount));
      const before = largest.get(resource);
      if (before === undefined || nanos > before) largest.set(resource, nanos);
    };
    raise('pods', table.podsFree[row] ?? 0);
    for (const resource of table.resources()) raise(resource, table.column(resource)?.free[row] ?? 0);
  }
}
