import type { Node } from '../kube/core-v1.ts';
import { addTo, remainder } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { elasticGroupOf } from './elastic.ts';
import { whyNotEligible, whyNotInPool } from './eligible-nodes.ts';
import type { PoolFacts } from './pool-facts.ts';
import type { Pool } from './pool.ts';

/** A node and what is used of it; the node is undefined while only pods name it. */
export interface NodeRoom {
  node: Node | undefined;
  allocatable: Amounts;
  capacity: Amounts;
  used: Amounts;
}

/** What a node adds to the sums of a pool; `free` is undefined while it is not eligible. */
interface Share {
  capacity: Amounts;
  free: Amounts | undefined;
  /** Of a node that does not exist yet. */
  elastic: boolean;
}

/** The sums over the nodes of one pool. */
export interface PoolState {
  readonly pool: Pool;
  /** All of the member. */
  readonly pools: readonly Pool[];
  readonly shares: Map<string, Share>;
  readonly capacity: Map<string, bigint>;
  readonly free: Map<string, bigint>;
  eligible: number;
  elastic: number;
  facts: PoolFacts | undefined;
}

/** Without any nodes, by virtual node. */
export function poolStates(pools: readonly Pool[]): Map<string, PoolState> {
  const empty = { eligible: 0, elastic: 0, facts: undefined };
  return new Map(
    pools.map((pool) => [
      pool.virtualNode,
      { ...empty, pool, pools, shares: new Map(), capacity: new Map(), free: new Map() },
    ]),
  );
}

/** Has the pool count a node as it is now, if it belongs there; undefined: it is gone. */
export function setNodeIn(state: PoolState, name: string, room: NodeRoom | undefined): void {
  const before = state.shares.get(name);
  if (before !== undefined) {
    countShare(state, before, -1n);
    state.shares.delete(name);
  }
  const share = shareOf(room, state);
  if (share !== undefined) {
    countShare(state, share, 1n);
    state.shares.set(name, share);
  }
  // A node that enters or leaves the pool changes what its nodes have in common.
  if ((before === undefined) !== (share === undefined)) state.facts = undefined;
}

function shareOf(room: NodeRoom | undefined, { pool, pools }: PoolState): Share | undefined {
  if (room?.node === undefined || whyNotInPool(room.node, pool, pools) !== undefined) return undefined;
  const eligible = whyNotEligible(room.node, pool, pools) === undefined;
  const elastic = elasticGroupOf(room.node) !== undefined;
  return { capacity: room.capacity, free: eligible ? remainder(room.allocatable, room.used) : undefined, elastic };
}

function countShare(state: PoolState, { capacity, free, elastic }: Share, times: 1n | -1n): void {
  addTo(state.capacity, capacity, times);
  if (free !== undefined) addTo(state.free, free, times);
  if (elastic) state.elastic += Number(times);
  else if (free !== undefined) state.eligible += Number(times);
}
