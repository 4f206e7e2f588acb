import type { MemberCluster } from '../api/member-cluster.ts';
import type { Node, ResourceList, Taint } from '../kube/core-v1.ts';

/** Nodes that a member can get by itself when pods need them, such as an autoscaled node group. */
export interface ElasticGroup {
  readonly name: string;
  /** Labels that its nodes carry, and by which those that are there are counted. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** What one node offers to pods. */
  readonly resources: ResourceList;
  /** All nodes of the group, those that are there included. */
  readonly maxNodes: number;
  readonly leadTimeSeconds: number;
}

export function elasticGroupsOf({ spec }: MemberCluster): readonly ElasticGroup[] {
  return spec.capacity.elastic;
}

/** A node that does not exist yet. */
export interface ElasticNode extends Node {
  /** No node from an API server has this field. */
  readonly elastic: ElasticGroup;
}

export function elasticGroupOf(node: Node): ElasticGroup | undefined {
  return 'elastic' in node ? (node as ElasticNode).elastic : undefined;
}

export interface ElasticNodesTarget {
  set(node: ElasticNode): void;
  delete(name: string): void;
}

/** Keeps as many nodes that do not exist yet as the groups of a member can still get. */
export class ElasticNodes {
  readonly #target: ElasticNodesTarget;
  #groups: readonly ElasticGroup[] = [];
  /** Groups of each node that is there. */
  readonly #members = new Map<string, readonly string[]>();
  readonly #labels = new Map<string, Readonly<Record<string, string>>>();
  readonly #there = new Map<string, number>();
  /** How many were made, by group. */
  readonly #made = new Map<string, number>();

  constructor(target: ElasticNodesTarget) {
    this.#target = target;
  }

  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  /** The groups as they are declared now. */
  setGroups(groups: readonly ElasticGroup[]): void {
    for (const group of this.#groups) this.#make(group, 0);
    this.#groups = groups;
    this.#there.clear();
    for (const [name, labels] of this.#labels) this.#count(name, labels);
    for (const group of groups) this.#adjust(group);
  }

  noteNode({ metadata: { name, labels = {} } }: Node): void {
    this.#labels.set(name, labels);
    if (this.isEmpty) return;
    const before = this.#members.get(name) ?? [];
    this.#uncount(name);
    this.#count(name, labels);
    const after = this.#members.get(name) ?? [];
    if (before.join() !== after.join()) for (const group of this.#groups) this.#adjust(group);
  }

  noteNodeGone(name: string): void {
    this.#labels.delete(name);
    if (!this.#members.has(name)) return;
    this.#uncount(name);
    for (const group of this.#groups) this.#adjust(group);
  }

  #count(name: string, labels: Readonly<Record<string, string>>): void {
    const groups = this.#groups.filter(({ nodeLabels }) => carries(labels, nodeLabels)).map((group) => group.name);
    if (groups.length === 0) this.#members.delete(name);
    else this.#members.set(name, groups);
    for (const group of groups) this.#there.set(group, (this.#there.get(group) ?? 0) + 1);
  }

  #uncount(name: string): void {
    for (const group of this.#members.get(name) ?? []) this.#there.set(group, (this.#there.get(group) ?? 0) - 1);
    this.#members.delete(name);
  }

  #adjust(group: ElasticGroup): void {
    this.#make(group, Math.max(0, group.maxNodes - (this.#there.get(group.name) ?? 0)));
  }

  #make(group: ElasticGroup, wanted: number): void {
    const made = this.#made.get(group.name) ?? 0;
    for (let index = made; index < wanted; index++) this.#target.set(elasticNode(group, index));
    for (let index = made; index > wanted; index--) this.#target.delete(nameOf(group, index - 1));
    this.#made.set(group.name, wanted);
  }
}

/** A name that no real node can have. */
function nameOf(group: ElasticGroup, index: number): string {
  return `+${group.name}/${String(index)}`;
}

function elasticNode(group: ElasticGroup, index: number): ElasticNode {
  const name = nameOf(group, index);
  return {
    elastic: group,
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...group.nodeLabels } },
    spec: { taints: [...group.taints] },
    status: {
      allocatable: group.resources,
      capacity: group.resources,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

function carries(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
