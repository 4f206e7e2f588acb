import type { Node } from '../kube/core-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { addTo, NOTHING, parseAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { conditionOf } from '../kube/conditions.ts';
import { elasticGroupOf } from './elastic.ts';
import { type Coming, type Offer, offered, type PoolSums, roomLeft, withComing } from './ledger.ts';
import { poolFacts } from './pool-facts.ts';
import type { PoolFacts } from './pool-facts.ts';
import type { Pool } from './pool.ts';
import { type NodeRoom, poolStates, type PoolState, setNodeIn } from './pool-shares.ts';

/** What a pod takes, and for whom. */
export interface Held {
  readonly node: string;
  readonly requests: Amounts;
  readonly virtualNode: string | undefined;
}

interface NodeState extends NodeRoom {
  used: Map<string, bigint>;
  pods: number;
}

/**
 * Follows a member's nodes and pods and knows at any time what each virtual node can offer. An event costs a few additions
 * on one node, a question only the nodes that changed since the last one, and the pods on their way; it never goes through all pods. Amounts are
 * exact integers, so nothing drifts, in whatever order events come.
 */
export class CapacityTracker {
  readonly #onChange: (() => void) | undefined;
  readonly #nodes = new Map<string, NodeState>();
  readonly #ours = new Map<string, Map<string, bigint>>();
  readonly #touched = new Set<string>();
  #pools: Map<string, PoolState>;

  /** `onChange` is called for each event that changes an answer, so it must be quick; heartbeats and the like change none. */
  constructor(o: { pools?: readonly Pool[]; onChange?: () => void }) {
    this.#onChange = o.onChange;
    this.#pools = poolStates(o.pools ?? []);
  }

  /** The virtual nodes that answers are wanted for. Takes time in proportion to the nodes. */
  setPools(pools: readonly Pool[]): void {
    this.#pools = poolStates(pools);
    for (const name of this.#nodes.keys()) this.#touched.add(name);
    this.#onChange?.();
  }

  setNode(node: Node): void {
    const state = this.#stateOf(node.metadata.name);
    if (state.node !== undefined && sameForUs(state.node, node)) {
      state.node = node;
      return;
    }
    if (!sameFacts(state.node, node)) this.#forgetFacts();
    state.node = node;
    state.allocatable = parseAmounts(node.status?.allocatable);
    state.capacity = parseAmounts(node.status?.capacity);
    this.#touch(node.metadata.name);
  }

  deleteNode(name: string): void {
    const state = this.#nodes.get(name);
    if (state?.node === undefined) return;
    state.node = undefined;
    this.#forgetFacts();
    this.#touch(name);
    this.#dropIfEmpty(name, state);
  }

  /** One more pod on a node. */
  hold(held: Held): void {
    this.#account(held, 1n);
  }

  /** The pod that {@link hold} was told of is gone. */
  release(held: Held): void {
    this.#account(held, -1n);
    const state = this.#nodes.get(held.node);
    if (state !== undefined) this.#dropIfEmpty(held.node, state);
  }

  /**
   * What a virtual node can offer now; undefined for one that is not in the pools.
   * @param coming pods on their way, as if they were there
   * @param bound what the host's scheduler subtracts for pods on it; without it what the member counts for them
   */
  offer(virtualNode: string, coming: Iterable<Coming> = [], bound?: Amounts): Offer | undefined {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return undefined;
    const sums = this.#sums(state, coming);
    const nodes = { total: state.shares.size - state.elastic, eligible: state.eligible };
    return { ...offered(sums, state.pool, bound ?? sums.ours), nodes };
  }

  /** What headroom and caps leave of the resources that they speak of, beside the pods that are there and those on their way. */
  allowance(virtualNode: string, coming: Iterable<Coming>): Amounts {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return NOTHING;
    const { headroom, caps } = state.pool;
    if (headroom.size + caps.size === 0) return NOTHING;
    return this.roomLeft(virtualNode, coming, [...headroom.keys(), ...caps.keys()]);
  }

  /** What a virtual node has left of these resources, as the member counts, beside the pods that are there and those on their way. */
  roomLeft(virtualNode: string, coming: Iterable<Coming>, resources: Iterable<string>): Amounts {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return NOTHING;
    const sums = this.#sums(state, coming);
    return new Map([...resources].map((name) => [name, roomLeft(sums, state.pool, name)]));
  }

  /** What the nodes behind a virtual node have in common; undefined for one that is not in the pools. */
  facts(virtualNode: string): PoolFacts | undefined {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return undefined;
    if (state.facts === undefined) {
      const nodes = [...state.shares.keys()].map((name) => this.#nodes.get(name)?.node);
      const real = nodes.filter((node) => node !== undefined).filter((node) => elasticGroupOf(node) === undefined);
      state.facts = poolFacts(real);
    }
    return state.facts;
  }

  #sums({ pool, capacity, free, shares }: PoolState, coming: Iterable<Coming>): PoolSums {
    const ours = this.#ours.get(pool.virtualNode) ?? NOTHING;
    return withComing({ capacity, free, ours }, coming, pool, (node) => shares.get(node)?.free !== undefined);
  }

  #account({ node, requests, virtualNode }: Held, times: 1n | -1n): void {
    if (virtualNode !== undefined) addFor(this.#ours, virtualNode, requests, times);
    const state = this.#stateOf(node);
    addTo(state.used, requests, times);
    state.pods += Number(times);
    this.#touch(node);
  }

  #stateOf(name: string): NodeState {
    let state = this.#nodes.get(name);
    if (state === undefined) {
      state = { node: undefined, allocatable: NOTHING, capacity: NOTHING, used: new Map(), pods: 0 };
      this.#nodes.set(name, state);
    }
    return state;
  }

  #dropIfEmpty(name: string, state: NodeState): void {
    if (state.node === undefined && state.pods === 0) this.#nodes.delete(name);
  }

  #touch(name: string): void {
    this.#touched.add(name);
    this.#onChange?.();
  }

  #forgetFacts(): void {
    for (const state of this.#pools.values()) state.facts = undefined;
  }

  /** Brings the sums of all pools up to date with the nodes that changed. */
  #settle(): void {
    for (const name of this.#touched) {
      const state = this.#nodes.get(name);
      for (const pool of this.#pools.values()) setNodeIn(pool, name, state);
    }
    this.#touched.clear();
  }
}

function addFor(sums: Map<string, Map<string, bigint>>, key: string, amounts: Amounts, times: 1n | -1n): void {
  const sum = sums.get(key) ?? new Map<string, bigint>();
  sums.set(key, sum);
  addTo(sum, amounts, times);
  if (sum.size === 0) sums.delete(key);
}

/** Heartbeats change a node all the time; few changes matter for what it can take. */
export function sameForUs(a: Node, b: Node): boolean {
  return (
    sameFacts(a, b) &&
    a.metadata.deletionTimestamp === b.metadata.deletionTimestamp &&
    (a.spec?.unschedulable ?? false) === (b.spec?.unschedulable ?? false) &&
    readyStatus(a) === readyStatus(b) &&
    jsonEqual(a.spec?.taints, b.spec?.taints) &&
    jsonEqual(a.status?.allocatable, b.status?.allocatable) &&
    jsonEqual(a.status?.capacity, b.status?.capacity)
  );
}

function sameFacts(a: Node | undefined, b: Node): boolean {
  return (
    a !== undefined &&
    jsonEqual(a.metadata.labels, b.metadata.labels) &&
    jsonEqual(a.status?.nodeInfo, b.status?.nodeInfo) &&
    jsonEqual(a.status?.declaredFeatures, b.status?.declaredFeatures)
  );
}

function readyStatus(node: Node): string | undefined {
  return conditionOf(node, 'Ready')?.status;
}
