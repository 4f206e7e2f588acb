import type { Node } from '../kube/core-v1.ts';
import { parseAmounts } from '../kube/amounts.ts';
import type { Demand } from './demand.ts';
import { scaled } from './demand.ts';
import { elasticGroupOf } from './elastic.ts';
import { TakenPorts } from './host-ports.ts';
import type { HostPort } from './host-ports.ts';

/** One resource on every node, by row. */
export interface Column {
  allocatable: Float64Array;
  /** Allocatable without what pods hold; negative on a node that is overcommitted. */
  free: Float64Array;
}

/** What a pod takes of its node. */
export interface Load {
  readonly demand: Demand;
  readonly hostPorts: readonly HostPort[];
}

const PODS = 'pods';
const FIRST_ROWS = 16;

/**
 * The nodes of a member as columns of numbers, so that asking all of them takes nanoseconds each. A row stays a node's own
 * until the node and the last pod on it are gone, and is then given to another one.
 */
export class NodeTable {
  readonly #rows = new Map<string, number>();
  readonly #names: (string | undefined)[] = [];
  readonly #nodes: (Node | undefined)[] = [];
  readonly #vacant: number[] = [];
  readonly #columns = new Map<string, Column>();
  readonly #ports = new Map<number, TakenPorts>();
  /** Pods on each row, and how many it may have left. */
  #pods: Float64Array = new Float64Array(FIRST_ROWS);
  #podsFree: Float64Array = new Float64Array(FIRST_ROWS);
  /** 1 for nodes that do not exist yet. */
  #elastic: Uint8Array = new Uint8Array(FIRST_ROWS);
  #version = 0;
  #columnsVersion = 0;
  readonly #changed: (row: number, nodeItself: boolean) => void;

  /** `changed` is called after each change of a row; `nodeItself`: not only what is free on it. */
  constructor(changed: (row: number, nodeItself: boolean) => void) {
    this.#changed = changed;
  }

  /** Grows with every change. */
  get version(): number {
    return this.#version;
  }

  /** Grows when a resource is heard of for the first time, and when columns get longer. */
  get columnsVersion(): number {
    return this.#columnsVersion;
  }

  /** Rows are 0 to this number less one; some may be vacant. */
  get rows(): number {
    return this.#names.length;
  }

  /** The node of a row; undefined when there is none, or only pods that name it. */
  node(row: number): Node | undefined {
    return this.#nodes[row];
  }

  /** The node of the row does not exist yet. */
  isElastic(row: number): boolean {
    return this.#elastic[row] === 1;
  }

  rowOf(name: string): number | undefined {
    return this.#rows.get(name);
  }

  /** Undefined: no node has ever had that resource, and no pod used it. */
  column(resource: string): Column | undefined {
    return this.#columns.get(resource);
  }

  resources(): IterableIterator<string> {
    return this.#columns.keys();
  }

  /** How many more pods each row's node may have. */
  get podsFree(): Float64Array {
    return this.#podsFree;
  }

  /** Pods on each row. */
  get pods(): Float64Array {
    return this.#pods;
  }

  /** Nothing on the row stands in another one's way: no resource is overcommitted, and nobody takes host ports. */
  hasRoomForAll(row: number): boolean {
    if ((this.#podsFree[row] ?? 0) < 0 || this.#ports.has(row)) return false;
    for (const { free } of this.#columns.values()) if ((free[row] ?? 0) < 0) return false;
    return true;
  }

  ports(row: number): TakenPorts | undefined {
    return this.#ports.get(row);
  }

  /** A node as it is now. */
  setNode(node: Node): void {
    const row = this.#rowFor(node.metadata.name);
    this.#setAllocatable(row, node);
    this.#nodes[row] = node;
    this.#elastic[row] = elasticGroupOf(node) === undefined ? 0 : 1;
    this.#touch(row, true);
  }

  /** The same node with a change that matters to nobody here. */
  renewNode(node: Node): void {
    const row = this.#rows.get(node.metadata.name);
    if (row !== undefined) this.#nodes[row] = node;
  }

  deleteNode(name: string): void {
    const row = this.#rows.get(name);
    if (row === undefined || this.#nodes[row] === undefined) return;
    this.#setAllocatable(row, undefined);
    this.#nodes[row] = undefined;
    this.#touch(row, true);
    this.#leaveIfEmpty(row);
  }

  /** Puts a pod on a node, which need not be known yet. Returns the row. */
  addPod(nodeName: string, load: Load): number {
    const row = this.#rowFor(nodeName);
    this.#account(row, load, 1);
    return row;
  }

  /** Takes a pod off the row that {@link addPod} returned. */
  removePod(row: number, load: Load): void {
    this.#account(row, load, -1);
    this.#leaveIfEmpty(row);
  }

  /** Takes a pod off its row for as long as a question about that row takes. Nobody is told: {@link putBack} has to follow. */
  lift(row: number, load: Load): void {
    this.#count(row, load, -1);
  }

  putBack(row: number, load: Load): void {
    this.#count(row, load, 1);
  }

  #account(row: number, load: Load, times: 1 | -1): void {
    this.#count(row, load, times);
    this.#touch(row, false);
  }

  #count(row: number, { demand, hostPorts }: Load, times: 1 | -1): void {
    for (const { resource, amount } of demand.amounts) {
      const { free } = this.#columnFor(resource);
      free[row] = (free[row] ?? 0) - times * amount;
    }
    this.#pods[row] = (this.#pods[row] ?? 0) + times;
    this.#podsFree[row] = (this.#podsFree[row] ?? 0) - times;
    if (hostPorts.length > 0) this.#accountPorts(row, hostPorts, times);
  }

  #accountPorts(row: number, hostPorts: readonly HostPort[], times: 1 | -1): void {
    const taken = this.#ports.get(row) ?? new TakenPorts();
    for (const port of hostPorts) {
      if (times === 1) taken.add(port);
      else taken.remove(port);
    }
    if (taken.isEmpty) this.#ports.delete(row);
    else this.#ports.set(row, taken);
  }

  #setAllocatable(row: number, node: Node | undefined): void {
    const amounts = parseAmounts(node?.status?.allocatable);
    for (const name of amounts.keys()) if (name !== PODS) this.#columnFor(name);
    for (const [name, { allocatable, free }] of this.#columns) {
      const now = scaled(name, amounts.get(name) ?? 0n);
      free[row] = (free[row] ?? 0) + now - (allocatable[row] ?? 0);
      allocatable[row] = now;
    }
    this.#podsFree[row] = scaled(PODS, amounts.get(PODS) ?? 0n) - (this.#pods[row] ?? 0);
  }

  #rowFor(name: string): number {
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const row = this.#vacant.pop() ?? this.#names.length;
    this.#names[row] = name;
    this.#nodes[row] = undefined;
    this.#rows.set(name, row);
    if (row >= this.#pods.length) this.#grow();
    return row;
  }

  #leaveIfEmpty(row: number): void {
    const name = this.#names[row];
    if (name === undefined || this.#nodes[row] !== undefined || (this.#pods[row] ?? 0) > 0) return;
    this.#rows.delete(name);
    this.#names[row] = undefined;
    this.#vacant.push(row);
  }

  #columnFor(resource: string): Column {
    let column = this.#columns.get(resource);
    if (column === undefined) {
      const length = this.#pods.length;
      column = { allocatable: new Float64Array(length), free: new Float64Array(length) };
      this.#columns.set(resource, column);
      this.#columnsVersion += 1;
    }
    return column;
  }

  #grow(): void {
    const length = this.#pods.length * 2;
    this.#pods = longer(this.#pods, length);
    this.#podsFree = longer(this.#podsFree, length);
    const elastic = new Uint8Array(length);
    elastic.set(this.#elastic);
    this.#elastic = elastic;
    for (const column of this.#columns.values()) {
      column.allocatable = longer(column.allocatable, length);
      column.free = longer(column.free, length);
    }
    this.#columnsVersion += 1;
  }

  #touch(row: number, nodeItself: boolean): void {
    this.#version += 1;
    this.#changed(row, nodeItself);
  }
}

function longer(values: Float64Array, length: number): Float64Array {
  const copy = new Float64Array(length);
  copy.set(values);
  return copy;
}
