import type { Node, Pod } from '../kube/core-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import { offered, virtualNodeOf } from './allocatable.ts';
import type { Offer } from './allocatable.ts';
import { addTo, NOTHING, parseAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { elasticGroupOf } from './elastic.ts';
import { holdsResources, isUnschedulable, podRequests } from './pod-requests.ts';
import { poolFacts } from './pool-facts.ts';
import type { PoolFacts } from './pool-facts.ts';
import type { Pool } from './pool.ts';
import { type NodeRoom, poolStates, type PoolState, setNodeIn } from './pool-shares.ts';

/** What a pod takes, and for whom. */
export interface Held {
  /** Undefined: the member has no node for the pod. It holds nothing there, but the host counts it on the virtual node. */
  readonly node: string | undefined;
  readonly requests: Amounts;
  readonly virtualNode: string | undefined;
}

interface NodeState extends NodeRoom {
  used: Map<string, bigint>;
  pods: number;
}

/** Pods of one shape share their amounts; more shapes than this start the table anew. */
const MAX_SHAPES = 4_096;

/**
 * Follows a member's nodes and pods and knows at any time what each virtual node can offer. An event costs a few additions
 * on one node, a question only the nodes that changed since the last one; it never goes through all pods. Amounts are
 * exact integers, so nothing drifts, in whatever order events come.
 */
export class CapacityTracker {
  readonly #hostId: string;
  readonly #onChange: (() => void) | undefined;
  readonly #nodes = new Map<string, NodeState>();
  readonly #pods = new Map<string, Held>();
  readonly #ours = new Map<string, Map<string, bigint>>();
  readonly #stuck = new Map<string, Map<string, bigint>>();
  readonly #touched = new Set<string>();
  readonly #shapes = new Map<string, Amounts>();
  #pools: Map<string, PoolState>;

  /** Handlers for the informers of the member's nodes and pods. */
  readonly nodeHandler = {
    added: (node: Node): void => this.setNode(node),
    updated: (node: Node): void => this.setNode(node),
    deleted: (node: Node): void => this.deleteNode(node.metadata.name),
  };
  readonly podHandler = {
    added: (pod: Pod): void => this.setPod(pod),
    updated: (pod: Pod): void => this.setPod(pod),
    deleted: (pod: Pod): void => this.deletePod(pod),
  };

  /** `onChange` is called for each event that changes an answer, so it must be quick; heartbeats and the like change none. */
  constructor(o: { hostId: string; pools?: readonly Pool[]; onChange?: () => void }) {
    this.#hostId = o.hostId;
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

  setPod(pod: Pod): void {
    const virtualNode = virtualNodeOf(pod, this.#hostId);
    const nodeName = pod.spec.nodeName === '' ? undefined : pod.spec.nodeName;
    const counts = nodeName !== undefined || (virtualNode !== undefined && isUnschedulable(pod));
    if (!counts || !holdsResources(pod)) {
      this.deletePod(pod);
      return;
    }
    const id = idOf(pod);
    const requests = this.#share(podRequests(pod));
    const before = this.#pods.get(id);
    if (
      before !== undefined &&
      before.node === nodeName &&
      before.requests === requests &&
      before.virtualNode === virtualNode
    )
      return;
    if (before !== undefined) this.#release(before);
    const held: Held = { node: nodeName, requests, virtualNode };
    this.#pods.set(id, held);
    this.#account(held, 1n);
  }

  deletePod(pod: Pod): void {
    const id = idOf(pod);
    const held = this.#pods.get(id);
    if (held === undefined) return;
    this.#pods.delete(id);
    this.#release(held);
  }

  /** For whoever keeps account of pods himself: one more pod on a node; not to be mixed with {@link setPod} for one pod. */
  hold(held: Held): void {
    this.#account(held, 1n);
  }

  /** The pod that {@link hold} was told of is gone. */
  release(held: Held): void {
    this.#release(held);
  }

  /** What a virtual node can offer now; undefined for one that is not in the pools. */
  offer(virtualNode: string): Offer | undefined {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return undefined;
    const { pool, capacity, free, shares, eligible } = state;
    const ours = this.#ours.get(virtualNode) ?? NOTHING;
    const stuck = this.#stuck.get(virtualNode) ?? NOTHING;
    const nodes = { total: shares.size - state.elastic, eligible };
    return { ...offered({ capacity, free, ours, stuck }, pool), nodes };
  }

  /** What headroom and caps leave of the resources that they speak of, beside the pods that are there. */
  allowance(virtualNode: string): Amounts {
    this.#settle();
    const state = this.#pools.get(virtualNode);
    if (state === undefined) return NOTHING;
    const { pool, free } = state;
    const ours = this.#ours.get(virtualNode) ?? NOTHING;
    const left = new Map<string, bigint>();
    for (const [name, headroom] of pool.headroom) left.set(name, (free.get(name) ?? 0n) - headroom);
    for (const [name, cap] of pool.caps) {
      const rest = cap - (ours.get(name) ?? 0n);
      const known = left.get(name);
      left.set(name, known !== undefined && known < rest ? known : rest);
    }
    return left;
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

  #account({ node, requests, virtualNode }: Held, times: 1n | -1n): void {
    if (virtualNode !== undefined) addFor(node === undefined ? this.#stuck : this.#ours, virtualNode, requests, times);
    if (node === undefined) {
      this.#onChange?.();
      return;
    }
    const state = this.#stateOf(node);
    addTo(state.used, requests, times);
    state.pods += Number(times);
    this.#touch(node);
  }

  #release(held: Held): void {
    this.#account(held, -1n);
    const state = held.node === undefined ? undefined : this.#nodes.get(held.node);
    if (held.node !== undefined && state !== undefined) this.#dropIfEmpty(held.node, state);
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

  #share(requests: Amounts): Amounts {
    const key = [...requests].map(([name, nanos]) => `${name}=${nanos}`).join();
    const known = this.#shapes.get(key);
    if (known !== undefined) return known;
    if (this.#shapes.size >= MAX_SHAPES) this.#shapes.clear();
    this.#shapes.set(key, requests);
    return requests;
  }
}

function addFor(sums: Map<string, Map<string, bigint>>, key: string, amounts: Amounts, times: 1n | -1n): void {
  const sum = sums.get(key) ?? new Map<string, bigint>();
  sums.set(key, sum);
  addTo(sum, amounts, times);
  if (sum.size === 0) sums.delete(key);
}

/** The UID tells a pod from its successor of the same name. */
function idOf(pod: Pod): string {
  return pod.metadata.uid ?? keyOf(pod);
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
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}
