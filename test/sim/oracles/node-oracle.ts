import { MEMBER_LABEL, NODE_LABEL } from '../../../src/api/marks.ts';
import { OWN_COST_ANNOTATION } from '../../../src/placement/deletion-cost.ts';
import { asPod, hostUidOf, isFinal } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

/** A spec that was edited is known to everybody after so long, and what was sent before has arrived, in ms. */
const SETTLED_MS = 60_000;

/** I12, I17, and that nothing is done for the pods of Nodes that are others'. */
export class NodeOracle {
  readonly #world: World;
  readonly #report: Report;
  /** Nodes that were never virtual, by name. */
  readonly #real = new Set<string>();
  readonly #everVirtual = new Set<string>();
  /** Since when each MemberCluster has had its spec, in ms. */
  readonly #specs = new Map<string, number>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
    for (const { metadata } of world.host.list(PATHS.nodes)) this.#real.add(metadata.name);
  }

  changed(change: Change): void {
    const { cluster, object, by, previous } = change;
    if (cluster !== this.#world.host) return;
    if (object['kind'] === 'MemberCluster' && !isOfProgram(by)) {
      if (JSON.stringify(previous?.['spec']) !== JSON.stringify(object['spec'])) {
        this.#specs.set(object.metadata.name, change.at);
      }
    }
    if (object['kind'] === 'Node') this.#node(change);
    if (object['kind'] === 'Pod' && isOfProgram(by) && !isOfWorkload(object, previous)) this.#ofOthers(object, by);
  }

  /** The program makes or changes a copy of that host pod. */
  copied(hostPod: SimObject | undefined, by: string): void {
    if (hostPod !== undefined) this.#ofOthers(hostPod, by);
  }

  #ofOthers(hostPod: SimObject, by: string): void {
    const { nodeName } = asPod(hostPod).spec;
    if (nodeName === undefined || !this.#real.has(nodeName)) return;
    this.#report('whose-node', `${by} acts for ${hostPod.metadata.name} on ${nodeName}, a real node`);
  }

  #node({ object, previous, type, by, path }: Change): void {
    const { name, labels } = object.metadata;
    if (labels?.[MEMBER_LABEL] !== undefined) this.#everVirtual.add(name);
    if (type === 'DELETED' || this.#everVirtual.has(name)) this.#real.delete(name);
    else this.#real.add(name);
    if (!isOfProgram(by) || previous === undefined) return;
    if (previous.metadata.labels?.[MEMBER_LABEL] === undefined && !path.endsWith(`/${previous.metadata.name}/status`)) {
      this.#report('I12', `${by} changes ${path}, which is not ours`);
    }
    if (type === 'DELETED') this.#removed(name, by, previous);
    else this.#taints(object, previous, by);
  }

  /** Only one that is not wanted and empty. */
  #removed(name: string, by: string, node: SimObject): void {
    const member = node.metadata.labels?.[MEMBER_LABEL] ?? '';
    const object = this.#world.host.get(`${PATHS.members}/${member}`);
    const leaves = object?.metadata.deletionTimestamp !== undefined;
    const { virtualNodes = [] } = (object?.['spec'] ?? {}) as { virtualNodes?: { name: string }[] };
    const all = virtualNodes.length === 0 ? [member] : virtualNodes.map((pool) => `${member}-${pool.name}`);
    const wanted = leaves ? [] : all;
    const isSettled = this.#world.loop.now - (this.#specs.get(member) ?? 0) > SETTLED_MS;
    if (wanted.includes(name) && isSettled) this.#report('I17', `${by} deletes Node ${name}, which is wanted`);
    for (const pod of this.#world.host.list('/api/v1/pods')) {
      if (asPod(pod).spec.nodeName !== name) continue;
      this.#report('I17', `${by} deletes Node ${name} with host pod ${pod.metadata.name} on it`);
    }
    for (const pod of this.#world.members.get(member)?.list('/api/v1/pods') ?? []) {
      if (hostUidOf(pod) === undefined || pod.metadata.labels?.[NODE_LABEL] !== name || isFinal(pod)) continue;
      this.#report('I17', `${by} deletes Node ${name} with ${pod.metadata.name} running in ${member}`);
    }
  }

  #taints(object: SimObject, previous: SimObject, by: string): void {
    const now = new Set(taintKeys(object));
    for (const key of taintKeys(previous)) {
      if (now.has(key) || key.startsWith('spillway.dev/')) continue;
      this.#report('I12', `${by} takes taint ${key} off ${object.metadata.name}`);
    }
  }
}

/** Which of its pods goes first is said of all pods of a workload under rules, wherever they are. */
function isOfWorkload({ metadata }: SimObject, previous: SimObject | undefined): boolean {
  return metadata.annotations?.[OWN_COST_ANNOTATION] !== previous?.metadata.annotations?.[OWN_COST_ANNOTATION];
}

function taintKeys(node: SimObject): string[] {
  const { taints = [] } = (node['spec'] ?? {}) as { taints?: { key: string }[] };
  return taints.map(({ key }) => key);
}
