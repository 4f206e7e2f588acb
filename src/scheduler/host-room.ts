import { MEMBER_LABEL } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Node, Pod } from '../api/wire.ts';
import { fitTogether } from '../capacity/fits-together.ts';
import type { KubeClient } from '../kube/client.ts';
import { NODES, PODS } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import type { HostView } from './host-view.ts';

/**
 * Nodes and pods of the host are read for gangs only. A yes is believed of what is so young, in ms; a no also of what is so old,
 * unless something went that may have made room.
 */
const YES_MS = 1_000;
const NO_MS = 15_000;

export interface HostRoomOptions {
  host: KubeClient;
  view: HostView;
  /** Wall clock in ms. */
  clock: () => number;
}

interface Snapshot {
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly at: number;
}

/**
 * Room for several pods together on the host's own nodes. The scheduler of the host knows no reservations: what is promised
 * here counts for other gangs only.
 */
export class HostRoom {
  readonly #o: HostRoomOptions;
  readonly #promised = new Map<string, { pod: Pod; until: number }>();
  #snapshot: Snapshot | undefined;
  #changes = 0;

  constructor(options: HostRoomOptions) {
    this.#o = options;
    const { view } = options;
    const forget = (): void => {
      this.#snapshot = undefined;
      this.#changes += 1;
    };
    view.onPod({
      changed: (pod) => {
        const promised = pod.spec.nodeName !== undefined && this.#promised.delete(pod.metadata.uid ?? '');
        if (promised || isFinished(pod)) forget();
      },
      gone: ({ metadata, spec }) => {
        this.release(metadata.uid ?? '');
        if (view.nodes.memberOf(spec.nodeName ?? '') === undefined) forget();
      },
    });
    view.nodes.nodes.on({ added: forget, updated: forget });
  }

  /** How many of the pods find a node beside what runs and what was promised. */
  async fits(pods: readonly Pod[]): Promise<number> {
    const old = this.#snapshot;
    const age = old === undefined ? Number.POSITIVE_INFINITY : this.#o.clock() - old.at;
    if (old !== undefined && age < NO_MS) {
      const count = this.#count(pods, old);
      if (count < pods.length || age < YES_MS) return count;
    }
    const changes = this.#changes;
    const fresh = await this.#read();
    this.#snapshot = changes === this.#changes ? fresh : undefined;
    return this.#count(pods, fresh);
  }

  /** `until`: wall clock in ms. */
  promise(pods: readonly Pod[], until: number): void {
    for (const pod of pods) this.#promised.set(pod.metadata.uid ?? '', { pod, until });
  }

  release(podUid: string): void {
    this.#promised.delete(podUid);
  }

  #count(pods: readonly Pod[], { nodes, pods: running }: Snapshot): number {
    const now = this.#o.clock();
    const asking = new Set(pods.map(({ metadata }) => metadata.uid));
    const others = [...this.#promised.values()].filter(
      ({ pod, until }) => until > now && !asking.has(pod.metadata.uid),
    );
    const all = [...others.map(({ pod }) => pod), ...pods];
    return Math.max(0, fitTogether(all, nodes, running) - others.length);
  }

  async #read(): Promise<Snapshot> {
    const { host, view, clock } = this.#o;
    const at = clock();
    const [nodes, pods] = await Promise.all([list<Node>(host, NODES), list<Pod>(host, PODS)]);
    const real = nodes.items.filter(
      ({ metadata }) =>
        metadata.labels?.[MEMBER_LABEL] === undefined && view.nodes.memberOf(metadata.name) === undefined,
    );
    const names = new Set(real.map(({ metadata }) => metadata.name));
    return { nodes: real, pods: pods.items.filter(({ spec }) => names.has(spec.nodeName ?? '')), at };
  }
}
