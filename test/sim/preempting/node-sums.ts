import type { Node } from '../../../src/kube/core-v1.ts';
import { asPod, isFinal } from '../pod-shapes.ts';
import { freeOn, holds, type Need, needOf, suits } from '../room.ts';
import type { SimCluster, SimObject } from '../sim-cluster.ts';
import { PATHS } from '../world.ts';

/** What kube-scheduler knows of nodes: taints, selectors, and sums of what they offer and of what pods ask for. */
export class NodeSums {
  readonly #host: SimCluster;
  /** Bound in a moment: nodes by the UIDs of their pods. */
  readonly #assumed = new Map<string, { pod: SimObject; node: string }>();

  constructor(host: SimCluster) {
    this.#host = host;
  }

  assume(pod: SimObject, node: string): void {
    this.#assumed.set(pod.metadata.uid, { pod, node });
  }

  forget(uid: string): void {
    this.#assumed.delete(uid);
  }

  /** By taints, selectors and sums, pods counted that others of no lower priority are nominated for. */
  passing(pod: SimObject, names: readonly string[]): { nodes: string[]; mayBeFreed: Set<string> } {
    const mayBeFreed = new Set<string>();
    const nodes = names.filter((name) => {
      const node = this.#host.get(`${PATHS.nodes}/${name}`);
      if (node === undefined || !isReady(node) || !suits(asPod(pod), node)) return false;
      const isFitting = holds(this.#freeOn(node, pod), needOf(pod));
      if (!isFitting) mayBeFreed.add(name);
      return isFitting;
    });
    return { nodes, mayBeFreed };
  }

  #freeOn(node: SimObject, pod: SimObject, without?: ReadonlySet<string>): Need {
    const free = freeOn(this.#host, node, without);
    let { cpu, gpu } = free;
    const take = (other: SimObject): void => {
      const need = needOf(other);
      cpu -= need.cpu;
      gpu -= need.gpu;
    };
    for (const assumed of this.#assumed.values()) if (assumed.node === node.metadata.name) take(assumed.pod);
    for (const other of this.#host.list('/api/v1/pods')) {
      const { spec, status } = asPod(other);
      if (spec.nodeName !== undefined || other.metadata.uid === pod.metadata.uid) continue;
      if (this.#assumed.has(other.metadata.uid) || status?.nominatedNodeName !== node.metadata.name) continue;
      if (priorityOf(other) >= priorityOf(pod)) take(other);
    }
    return { cpu, gpu };
  }

  lowerOn(node: string, pod: SimObject): SimObject[] {
    return this.#host
      .list('/api/v1/pods')
      .filter((other) => asPod(other).spec.nodeName === node && !isFinal(other) && priorityOf(other) < priorityOf(pod));
  }

  /** By the sums of the node. Undefined: not even without all of them is there room. */
  victimsOn(name: string, pod: SimObject): string[] | undefined {
    const node = this.#host.get(`${PATHS.nodes}/${name}`);
    if (node === undefined) return undefined;
    const lower = this.lowerOn(name, pod).toSorted((a, b) => priorityOf(b) - priorityOf(a));
    const out = new Set(lower.map(({ metadata }) => metadata.uid));
    const isFitting = (): boolean => holds(this.#freeOn(node, pod, out), needOf(pod));
    if (lower.length === 0 || !isFitting()) return undefined;
    for (const { metadata } of lower) {
      out.delete(metadata.uid);
      if (!isFitting()) out.add(metadata.uid);
    }
    return out.size === 0 ? undefined : [...out];
  }
}

export function priorityOf(pod: SimObject): number {
  return asPod(pod).spec.priority ?? 0;
}

function isReady(node: SimObject): boolean {
  const { spec, status } = node as unknown as Node;
  const isUp = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
  return isUp && spec?.unschedulable !== true;
}
