import { MEMBER_LABEL, OUT_OF_SERVICE_TAINT } from '../../src/api/marks.ts';
import type { JsonObject } from '../../src/kube/json-equal.ts';
import { asPod, isFinal } from './pod-shapes.ts';
import type { Random } from './random.ts';
import type { SimCluster, SimObject } from './sim-cluster.ts';
import { podPath } from './workload-controllers.ts';
import { PATHS } from './world.ts';

const LOOK_MS = 5_000;
/** A Node whose Lease nobody has renewed for so long is not ready. */
const GRACE_MS = 40_000;
/** Pods of a Node that is not there are let be for so long. */
const QUARANTINE_MS = 40_000;
const TAINT = 'node.kubernetes.io/unreachable';

interface Toleration {
  key?: string;
  effect?: string;
  tolerationSeconds?: number;
}

/**
 * What kube-controller-manager does about Nodes: those that are silent become NotReady and tainted, pods that do not tolerate that are
 * deleted, and so are pods of Nodes that are gone.
 */
export class NodeLifecycle {
  readonly #host: SimCluster;
  readonly #random: Random;
  /** When each Lease was seen to change last: the clocks of those who write it are not believed. */
  readonly #renewed = new Map<string, { renewTime: unknown; at: number }>();
  readonly #taintedSince = new Map<string, number>();
  readonly #missingSince = new Map<string, number>();

  constructor(host: SimCluster, random: Random) {
    this.#host = host;
    this.#random = random;
  }

  begin(): void {
    const again = (): void => {
      this.#look();
      this.#host.loop.later(LOOK_MS + this.#random.between(0, 500), again);
    };
    this.#host.loop.later(LOOK_MS, again);
  }

  #look(): void {
    const { now } = this.#host.loop;
    /** By name, whether all have to leave at once. */
    const nodes = new Map<string, boolean>();
    for (const node of this.#host.list(PATHS.nodes)) {
      const isOut = ({ key, effect }: { key: string; effect: string }): boolean =>
        key === OUT_OF_SERVICE_TAINT && effect === 'NoExecute';
      nodes.set(node.metadata.name, taintsOf(node).some(isOut));
      if (node.metadata.labels?.[MEMBER_LABEL] !== undefined) this.#judge(node, now);
    }
    for (const pod of this.#host.list('/api/v1/pods')) {
      const { nodeName } = asPod(pod).spec;
      if (nodeName === undefined) continue;
      if (nodes.has(nodeName)) this.#evict(pod, nodeName, now, nodes.get(nodeName) === true);
      else this.#collect(pod, now);
    }
  }

  #judge(node: SimObject, now: number): void {
    const { name } = node.metadata;
    const lease = this.#host.get(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`);
    const { renewTime } = (lease?.['spec'] ?? {}) as { renewTime?: unknown };
    const before = this.#renewed.get(name);
    if (before === undefined || before.renewTime !== renewTime) this.#renewed.set(name, { renewTime, at: now });
    const { conditions = [] } = (node['status'] ?? {}) as { conditions?: { type: string; status: string }[] };
    const ready = conditions.find(({ type }) => type === 'Ready')?.status;
    if (now - (this.#renewed.get(name)?.at ?? now) > GRACE_MS && ready !== 'Unknown') {
      const unknown = conditions.map((one) =>
        one.type === 'Ready' ? { ...one, status: 'Unknown', reason: 'NodeStatusUnknown' } : one,
      );
      this.#host.patch('node-lifecycle', `${PATHS.nodes}/${name}/status`, { status: { conditions: unknown } });
    }
    const isTainted = taintsOf(node).some(({ key }) => key === TAINT);
    if (ready === 'Unknown' && !isTainted) this.#taint(node, [{ key: TAINT, effect: 'NoExecute' }]);
    if (ready === 'True' && isTainted) this.#taint(node, []);
    if (ready !== 'Unknown') this.#taintedSince.delete(name);
    else if (!this.#taintedSince.has(name)) this.#taintedSince.set(name, now);
  }

  #taint(node: SimObject, taints: JsonObject[]): void {
    const others = taintsOf(node).filter(({ key }) => key !== TAINT);
    const path = `${PATHS.nodes}/${node.metadata.name}`;
    this.#host.patch('node-lifecycle', path, { spec: { taints: [...others, ...taints] } });
  }

  /** What tolerates it for a while only is deleted after that. */
  #evict(pod: SimObject, nodeName: string, now: number, isOut: boolean): void {
    if (pod.metadata.deletionTimestamp !== undefined) return;
    if (isOut) {
      this.#remove(pod);
      return;
    }
    const since = this.#taintedSince.get(nodeName);
    if (since === undefined) return;
    const tolerations = (asPod(pod).spec.tolerations ?? []) as Toleration[];
    const fitting = tolerations.filter(
      ({ key = TAINT, effect = 'NoExecute' }) => key === TAINT && effect === 'NoExecute',
    );
    const seconds = fitting.map(({ tolerationSeconds = Infinity }) => tolerationSeconds);
    if (now - since < Math.min(...(seconds.length === 0 ? [0] : seconds)) * 1_000) return;
    this.#remove(pod);
  }

  #remove(pod: SimObject): void {
    const path = podPath(pod);
    const conditions = [
      ...(asPod(pod).status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget'),
      { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' },
    ] as JsonObject[];
    this.#host.patch('taint-manager', `${path}/status`, { status: { conditions } });
    this.#host.remove('taint-manager', path);
  }

  /** Twice missing, then by force. */
  #collect(pod: SimObject, now: number): void {
    const { uid } = pod.metadata;
    const since = this.#missingSince.get(uid) ?? now;
    this.#missingSince.set(uid, since);
    if (now - since < QUARANTINE_MS) return;
    this.#missingSince.delete(uid);
    const path = podPath(pod);
    if (!isFinal(pod)) this.#host.patch('podgc', `${path}/status`, { status: { phase: 'Failed' } });
    this.#host.remove('podgc', path, { gracePeriodSeconds: 0, preconditions: { uid } });
  }
}

function taintsOf(node: SimObject): { key: string; effect: string }[] {
  return ((node['spec'] ?? {}) as { taints?: { key: string; effect: string }[] }).taints ?? [];
}
