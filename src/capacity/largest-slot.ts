import { nanosOf } from './demand.ts';
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
  const rows: number[] = [];
  for (let row = 0; row < table.rows; row++) {
    if (table.node(row) === undefined || table.isElastic(row) || column.verdict(row) !== VERDICT.suits) continue;
    rows.push(row);
  }
  if (rows.length === 0) return;
  const raise = (resource: string, free: Float64Array | undefined): void => {
    let most = 0;
    for (const row of rows) most = Math.max(most, free?.[row] ?? 0);
    const nanos = nanosOf(resource, most);
    const before = largest.get(resource);
    if (before === undefined || nanos > before) largest.set(resource, nanos);
  };
  raise('pods', table.podsFree);
  for (const resource of table.resources()) raise(resource, table.column(resource)?.free);
}
