import { wantedNodesOf } from '../api/member-cluster.ts';
import { childSignal, type ChildSignal } from '../kube/child-signal.ts';
import type { Pod } from '../kube/core-v1.ts';
import { describeError } from '../kube/errors.ts';
import { pause } from '../kube/timers.ts';
import type { ActingMember } from './acting-member.ts';
import type { NodeIdentities, OwnNode } from './node-identities.ts';
import type { VirtualNodeScope } from './virtual-node.ts';

/** Restart delay of a virtual node that failed (ms). */
const RESTART_MS = 5000;

interface RunningNode {
  scope: VirtualNodeScope | undefined;
  /** The deletion breaker as the scope before left it, or the process before. */
  breakerOpen: boolean;
  stop: ChildSignal;
  ended: Promise<void>;
}

export interface VirtualNodesOptions {
  acting: ActingMember;
  identities: NodeIdentities;
  /** The deletion breaker of the member as a virtual node that starts now finds it. */
  breakerOpen: () => boolean;
  makeScope: (nodeName: string, own: OwnNode, breakerOpen: boolean) => VirtualNodeScope;
  signal: AbortSignal;
}

/** The virtual nodes of one member: each starts, ends and fails alone, and one that fails is started anew. */
export class VirtualNodes {
  readonly #o: VirtualNodesOptions;
  readonly #nodes = new Map<string, RunningNode>();
  /** Labels that choose the member's nodes behind each virtual node, of those that retire as they were last. */
  readonly #pools = new Map<string, Record<string, string>>();

  constructor(options: VirtualNodesOptions) {
    this.#o = options;
  }

  /** By name; undefined: not started yet. A new array each time. */
  all(): [string, VirtualNodeScope | undefined][] {
    return [...this.#nodes].map(([name, { scope }]) => [name, scope]);
  }

  /** Those at work. */
  scopes(): VirtualNodeScope[] {
    return [...this.#nodes.values()].flatMap(({ scope }) => scope ?? []);
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(nodeName: string): VirtualNodeScope | undefined {
    return this.#nodes.get(nodeName)?.scope;
  }

  pool(nodeName: string): Record<string, string> | undefined {
    return this.#pools.get(nodeName);
  }

  hostPod(podKey: string): Pod | undefined {
    return this.#with(podKey)?.bound.get(podKey);
  }

  /** One by one: who asks whether there is any does so at each change of a pod. */
  *hostPodsIn(namespace: string): Generator<Pod> {
    for (const scope of this.scopes()) yield* scope.bound.in(namespace);
  }

  /** Looks at a pod of the host again. */
  requeue(podKey: string): void {
    this.#with(podKey)?.pods.requeue(podKey);
  }

  #with(podKey: string): VirtualNodeScope | undefined {
    return this.scopes().find((scope) => scope.bound.get(podKey) !== undefined);
  }

  /** Every host pod of each of them is known. */
  get synced(): boolean {
    return [...this.#nodes].every(([name, { scope }]) => scope?.synced === true || this.#o.identities.isOthers(name));
  }

  /** Starts those that the spec wants. Those that it does not want any more retire. */
  adjust(): void {
    for (const { name, nodeSelector } of wantedNodesOf(this.#o.acting.member())) {
      this.#pools.set(name, nodeSelector);
      if (this.#nodes.get(name)?.stop.signal.aborted !== false) this.#start(name);
    }
  }

  /** Begins to serve one that a former process left behind. */
  serve(nodeName: string, pool: Record<string, string> | undefined): void {
    if (pool !== undefined) this.#pools.set(nodeName, pool);
    this.#start(nodeName);
  }

  /** Ends one of which nothing is left. */
  drop(nodeName: string): void {
    this.#nodes.get(nodeName)?.stop.abort();
  }

  #start(name: string): void {
    const former = this.#nodes.get(name)?.ended;
    const node: RunningNode = {
      scope: undefined,
      breakerOpen: this.#o.breakerOpen(),
      stop: childSignal(this.#o.signal),
      ended: Promise.resolve(),
    };
    node.ended = this.#run(name, node, former);
    this.#nodes.set(name, node);
  }

  async #run(name: string, node: RunningNode, former: Promise<void> | undefined): Promise<void> {
    await former;
    const { acting, identities, makeScope } = this.#o;
    const { signal } = node.stop;
    const own = identities.start(name);
    await own.identity.ready(signal);
    while (!signal.aborted) {
      node.scope = makeScope(name, own, node.breakerOpen);
      try {
        await node.scope.run(signal);
        if (!signal.aborted)
          acting.logger.warn({ node: name }, `the virtual node pauses: ${own.standing.problem ?? ''}`);
      } catch (error) {
        acting.logger.error({ node: name, err: error }, `the virtual node is started anew: ${describeError(error)}`);
        await pause(RESTART_MS, signal);
      }
      node.breakerOpen = node.scope.pods.orphanedPods.open;
    }
    node.stop.release();
    if (!this.#o.signal.aborted) await identities.end(name);
    if (this.#nodes.get(name) === node) this.#nodes.delete(name);
  }

  /** Waits for the signal and then for the end of all of them, those that came later too. */
  async ended(): Promise<void> {
    const { signal } = this.#o;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all([...this.#nodes.values()].map(({ ended }) => ended));
  }
}
