import { NODE_LABEL } from '../../../src/api/marks.ts';
import { GPU, standsFor } from '../crowded.ts';
import { asPod, foundNoNode, hostUidOf, isFinal } from '../pod-shapes.ts';
import { memberOf, type Need, needOf } from '../room.ts';
import type { Change, SimCluster, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

/** Whoever answered a scheduler knew by then what others had taken, in ms. */
const KNOWN_MS = 3_000;
/** And a process that has just begun, all that was promised before it. */
const BEGUN_MS = 60_000;

/**
 * What comes behind a virtual node has room beside all that is there. Only together: on which of its nodes a member puts a pod is its own
 * affair. Of two replicas one may be told of what the other one answered when both have answered.
 */
export class OversoldOracle {
  readonly #world: World;
  readonly #report: Report;
  /** When somebody else took room in a member last, in ms, by its name. */
  readonly #othersAt = new Map<string, number>();
  /** When host pods got their nodes, in ms, by their UIDs. */
  readonly #boundAt = new Map<string, number>();
  readonly #begun = new Set<string>();
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed({ object, previous, cluster, at, by, type }: Change): void {
    if (isOfProgram(by) && !this.#begun.has(by)) {
      this.#begun.add(by);
      this.#begunAt = at;
    }
    if (object['kind'] !== 'Pod' || type === 'DELETED') return;
    const isBound = asPod(object).spec.nodeName !== asPod(previous ?? object).spec.nodeName;
    const hostUid = hostUidOf(object);
    if (cluster === this.#world.host) {
      if (isBound) this.#boundAt.set(object.metadata.uid, at);
    } else if (hostUid === undefined) {
      // One that waited for room takes it as soon as there is some.
      if (isBound || type === 'ADDED') this.#othersAt.set(cluster.name, at);
    } else if (isBound && foundNoNode(previous ?? object)) {
      // So does a copy, which held nothing until then.
      this.#othersAt.set(cluster.name, at);
    } else if (type === 'ADDED') {
      this.#came(cluster, object, this.#boundAt.get(hostUid) ?? at);
    }
  }

  #came(cluster: SimCluster, copy: SimObject, boundAt: number): void {
    const alive = [...this.#world.network.processes].filter((one) => one.alive);
    if (alive.length > 1 || boundAt - this.#begunAt < BEGUN_MS) return;
    if (boundAt - (this.#othersAt.get(cluster.name) ?? Number.NEGATIVE_INFINITY) < KNOWN_MS) return;
    const node = copy.metadata.labels?.[NODE_LABEL] ?? '';
    if (memberOf(this.#world, node) !== cluster.name) return;
    const left = this.#leftBehind(node, cluster);
    if (left.cpu >= 0 && left.gpu >= 0) return;
    this.#report(
      'room',
      `with ${copy.metadata.name} there are ${String(-left.cpu)} CPUs and ${String(-left.gpu)} GPUs too many asked for behind ${node}`,
    );
  }

  /**
   * Of all nodes behind the virtual node together. A copy on its way to a node has its room; one that no node was found for holds nothing,
   * and small ones pass by (docs/concepts/capacity.md).
   */
  #leftBehind(virtualNode: string, cluster: SimCluster): Need {
    const nodes = [...cluster.list('/api/v1/nodes')].filter((node) => standsFor(virtualNode, node));
    const names = new Set(nodes.map(({ metadata }) => metadata.name));
    const offered = nodes.map(({ status }) => (status as { allocatable?: Record<string, string> }).allocatable ?? {});
    let cpu = offered.reduce((sum, { cpu: own }) => sum + Number(own ?? 0), 0);
    let gpu = offered.reduce((sum, { [GPU]: own }) => sum + Number(own ?? 0), 0);
    for (const pod of cluster.list('/api/v1/pods')) {
      const { nodeName } = asPod(pod).spec;
      const isComing = pod.metadata.labels?.[NODE_LABEL] === virtualNode && !foundNoNode(pod);
      if (isFinal(pod) || !(nodeName === undefined ? isComing : names.has(nodeName))) continue;
      const need = needOf(pod);
      cpu -= need.cpu;
      gpu -= need.gpu;
    }
    return { cpu, gpu };
  }
}
