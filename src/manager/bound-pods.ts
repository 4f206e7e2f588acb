import { hostKeyOf } from '../api/host-key.ts';
import { isFinished } from '../api/pod-phase.ts';
import { asOwned } from '../api/released.ts';
import { virtualNodeOf } from '../capacity/ledger.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import { isDaemonPod, isShownIgnored } from '../pods/daemon-pod.ts';
import { mirroredNamespace } from '../pods/host-status.ts';
import { VIRTUAL_NODE_INDEX } from '../pods/pod-indexes.ts';
import type { ActingMember } from './acting-member.ts';
import { NAMESPACE_INDEX } from './host-services.ts';
import { LastCopies } from './last-copies.ts';

export interface BoundPodsOptions {
  acting: ActingMember;
  /** With the identity of the node. */
  host: KubeClient;
  nodeName: string;
  /** The Node is seen to be ours. */
  isOurs: () => boolean;
}

/** The host's pods that are bound to one virtual node, and what is left of such in the member. */
export class BoundPods {
  readonly cache: Informer<Pod>;
  readonly #o: BoundPodsOptions;
  readonly #lastCopies: LastCopies;

  constructor(options: BoundPodsOptions) {
    const { acting, host, nodeName } = options;
    const { services, logger } = acting;
    this.#o = options;
    this.#lastCopies = new LastCopies((pod) => virtualNodeOf(pod, services.hostId) === nodeName);
    this.cache = new Informer<Pod>({
      client: host,
      resource: PODS,
      fieldSelector: `spec.nodeName=${nodeName}`,
      // What becomes of a pod that makes way for another one is no matter of its copy.
      transform: (raw) => asOwned(raw as Pod),
      indexes: { [NAMESPACE_INDEX]: (pod) => [pod.metadata.namespace ?? ''] },
      logger,
      metrics: services.informerMetrics,
    });
  }

  get(key: string): Pod | undefined {
    return this.cache.get(key);
  }

  /** One by one. */
  in(namespace: string): Iterable<Pod> {
    return this.cache.eachByIndex(NAMESPACE_INDEX, namespace);
  }

  /** Undefined while they are not known. */
  get size(): number | undefined {
    return this.cache.hasSynced ? this.cache.size : undefined;
  }

  /** Those that run in the member, or are to: pods of DaemonSets that are ignored do not count. */
  counts(): { running: number; pending: number; total: number } {
    const counts = { running: 0, pending: 0, total: 0 };
    for (const pod of this.cache.values()) {
      if (isShownIgnored(pod)) continue;
      counts.total += 1;
      if (pod.status?.phase === 'Running') counts.running += 1;
      else if (pod.status?.phase === 'Pending') counts.pending += 1;
    }
    return counts;
  }

  /** Where their copies are in the member, as the pods themselves tell: `namespace/name`. */
  *copyKeys(): Generator<string> {
    for (const pod of this.cache.values()) {
      const namespace = mirroredNamespace(pod);
      if (namespace !== undefined && !isFinished(pod)) yield keyFor(namespace, pod.metadata.name);
    }
  }

  /**
   * What is on the virtual node; undefined while that is not known. Pods of DaemonSets count apart: they leave only with the Node.
   * Notes copies, which are asked for before the Node goes.
   */
  remains(): { pods: number; daemonPods: number } | undefined {
    const { acting, nodeName, isOurs } = this.#o;
    const { connection } = acting;
    if (!isOurs() || !this.cache.hasSynced || !connection.synced() || !connection.identityOk()) return undefined;
    const remains = { pods: 0, daemonPods: 0 };
    for (const pod of this.cache.values()) remains[isDaemonPod(pod) ? 'daemonPods' : 'pods'] += 1;
    const copies = connection.pods.byIndex(VIRTUAL_NODE_INDEX, nodeName).filter((copy) => {
      const key = hostKeyOf(copy);
      return key === undefined || this.cache.get(key) === undefined;
    });
    this.#lastCopies.seen(copies);
    return { ...remains, pods: remains.pods + copies.length };
  }

  /** Whether the host, asked for it, has none but pods of DaemonSets. @throws what it answers else */
  async onlyDaemonPodsAreLeft(signal: AbortSignal): Promise<boolean> {
    const { host, nodeName } = this.#o;
    const { items } = await list<Pod>(host, PODS, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
    return items.every((pod) => isDaemonPod(pod));
  }

  /** Whether the member, asked for each copy that was left last, has none any more. @throws what it answers else */
  async copiesAreGone(signal: AbortSignal): Promise<boolean> {
    return await this.#lastCopies.areGone(this.#o.acting.connection.client, signal);
  }
}
