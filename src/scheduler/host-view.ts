import type { Logger } from 'pino';
import type { Namespace, Node, Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';
import { controllerKeyOf, ownerKeyOf } from '../kube/owner-references.ts';
import { isOlder } from '../kube/resource-version.ts';
import { NAMESPACES, PODS } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import type { Selection } from '../placement/policy-selection.ts';
import { asksForItself } from './node-demands.ts';
import { HostNodes } from './host-nodes.ts';
import { kindAbove } from '../api/custom-kinds.ts';
import { OwnerDirectory } from './owner-directory.ts';
import { PodSeats } from './pod-seats.ts';
import { PodWaits } from './pod-waits.ts';
import { keysOfPodOut, keysOfPodsOut } from './pods-out.ts';
import { PolicyCache } from './policy-cache.ts';
import { hostPodProjection, namespaceProjection } from './projections.ts';
import { UnseenPods } from './unseen-pods.ts';

export interface HostViewOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** In ms. */
  monotonic: () => number;
}

export interface PodHandlers {
  changed: (pod: Pod) => void;
  gone: (pod: Pod) => void;
}

/** Indexes of pods: the node they are bound to, their controller, the ReplicaSet that they are out of. */
const NODE = 'node';
const CONTROLLER = 'controller';
const OUT = 'out';
/** The kind of the controller, if it is not Kubernetes' own. */
const ABOVE = 'above';
/** Poll interval while caches sync, in ms. */
const SYNC_POLL_MS = 100;

/** What the scheduler room knows of the host, all of it from caches. */
export class HostView {
  readonly owners: OwnerDirectory;
  readonly policies: PolicyCache;
  readonly nodes: HostNodes;
  readonly seats: PodSeats;
  readonly waits: PodWaits;
  readonly pods: Informer<Pod>;
  readonly namespaces: Informer<Namespace>;
  readonly #unseen: UnseenPods;
  readonly #podHandlers = new Set<PodHandlers>();

  constructor({ host, logger, metrics, monotonic }: HostViewOptions) {
    const common = { client: host, logger, metrics };
    this.owners = new OwnerDirectory({
      host,
      logger,
      metrics,
      monotonic,
      namedByPods: () => this.pods.indexValues(ABOVE),
      chosen: () => this.policies.customKinds(),
      chosenForAll: () => this.policies.customKindsForAll(),
      isComplete: () => this.pods.hasSynced && this.policies.hasSynced,
    });
    this.policies = new PolicyCache({ host, logger, metrics, monotonic });
    this.nodes = new HostNodes({ host, logger, metrics });
    this.seats = new PodSeats({ clusterOf: (node) => this.nodes.clusterOf(node), monotonic });
    this.waits = new PodWaits(monotonic);
    this.namespaces = new Informer<Namespace>({ ...common, resource: NAMESPACES, transform: namespaceProjection });
    this.pods = new Informer<Pod>({
      ...common,
      resource: PODS,
      transform: hostPodProjection((node) => this.nodes.memberOf(node) !== undefined),
      indexes: {
        [NODE]: ({ spec }) => (spec.nodeName === undefined ? [] : [spec.nodeName]),
        [CONTROLLER]: (pod) => {
          const controller = controllerKeyOf(pod);
          return controller === undefined ? [] : [controller];
        },
        [OUT]: keysOfPodOut,
        [ABOVE]: kindAbove,
      },
    });
    const set = (pod: Pod): void => {
      this.seats.set(pod);
      this.waits.set(pod);
    };
    this.pods.on({
      added: (pod) => {
        set(pod);
        this.owners.noticed(kindAbove(pod));
      },
      updated: set,
      deleted: (pod) => {
        this.seats.delete(pod);
        this.waits.delete(pod);
      },
    });
    this.policies.on(() => this.owners.noticed(this.policies.customKinds()));
    this.#unseen = new UnseenPods({
      isSeen: (pod) => this.#asShown(pod) !== undefined,
      hasLeft: (pod) => this.hasLeft(pod),
      left: (pod) => this.#left(pod),
    });
    // A pod may be heard of before the node it is bound to.
    const recount = (name: string): void => {
      for (const pod of this.pods.byIndex(NODE, name)) this.seats.set(pod);
    };
    this.nodes.nodes.on({ added: ({ metadata }) => recount(metadata.name) });
    this.nodes.members.on({
      added: ({ nodes }) => nodes.forEach(recount),
      updated: ({ nodes }) => nodes.forEach(recount),
    });
  }

  /** Follows the host until the signal; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.owners.run(signal),
      this.policies.run(signal),
      this.nodes.run(signal),
      this.namespaces.run(signal),
      this.#runPods(signal),
      this.#unseen.run(signal),
    ]);
  }

  /** Pods are read after the nodes: of those on virtual nodes less is kept. */
  async #runPods(signal: AbortSignal): Promise<void> {
    await this.nodes.whenSynced(signal);
    await this.pods.run(signal);
  }

  /** Resolves when all of it is known, or the signal aborts. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    while (!this.hasSynced && !signal.aborted) await pause(SYNC_POLL_MS, signal);
  }

  get hasSynced(): boolean {
    return this.#parts().every(({ hasSynced }) => hasSynced);
  }

  /** Why it is not complete, in words; undefined while nothing is in the way. */
  get problem(): string | undefined {
    return this.#parts()
      .map(({ problem }) => problem)
      .find((problem) => problem !== undefined);
  }

  /** Calls the handlers with every pod of the host that came, changed or went, also of one that went before the watch could show it. */
  onPod(handlers: PodHandlers): () => void {
    const { changed, gone } = handlers;
    const off = this.pods.on({ added: changed, updated: changed, deleted: gone });
    this.#podHandlers.add(handlers);
    return () => {
      off();
      this.#podHandlers.delete(handlers);
    };
  }

  /** A scheduler asks about a pod, which the watch may not have shown yet. */
  asked(pod: Pod): void {
    this.#unseen.asked(pod);
  }

  /** Calls the handler after labels of a namespace changed. Returns what ends that. */
  onNamespaceLabels(handler: () => void): () => void {
    return this.namespaces.on({
      updated: ({ metadata }, old) => {
        if (!jsonEqual(metadata.labels, old.metadata.labels)) handler();
      },
    });
  }

  /** Calls the handler after something of the members that placement looks at changed. Returns what ends that. */
  onClusters(handler: () => void): () => void {
    return this.nodes.members.on({
      added: handler,
      deleted: handler,
      updated: ({ cluster }, old) => {
        if (!jsonEqual(cluster, old.cluster)) handler();
      },
    });
  }

  /** Calls the handler after virtual nodes came, went, or changed in what keeps pods off them. Returns what ends that. */
  onVirtualNodes(handler: () => void): () => void {
    const seen = (node: Node): void => {
      if (this.nodes.memberOf(node.metadata.name) !== undefined) handler();
    };
    return this.nodes.nodes.on({
      added: seen,
      deleted: seen,
      updated: (node, old) => {
        const isSame = jsonEqual(node.spec, old.spec) && jsonEqual(node.metadata.labels, old.metadata.labels);
        if (!isSame) seen(node);
      },
    });
  }

  /** All pods that are bound to a node. */
  podsOn(nodeName: string): readonly Pod[] {
    return this.pods.byIndex(NODE, nodeName);
  }

  /** All pods of a controller. */
  podsOf(controller: TypedObject): readonly Pod[] {
    return this.podsOfKey(ownerKeyOf(controller));
  }

  /** All pods of the controller with that key (owner-references.ts). */
  podsOfKey(controllerKey: string): readonly Pod[] {
    return this.pods.byIndex(CONTROLLER, controllerKey);
  }

  /** Pods that are released from a ReplicaSet, and those that nobody has and that are of its template, as one that was just given back. */
  podsOut(set: TypedObject): readonly Pod[] {
    return keysOfPodsOut(set).flatMap((key) => this.pods.byIndex(OUT, key));
  }

  /** Whether a pod, as somebody else knows it, is deleted or on its way out by now. */
  hasLeft(pod: Pod): boolean {
    const shown = this.#asShown(pod);
    if (shown !== undefined) return shown.metadata.deletionTimestamp !== undefined;
    return isOlder(pod.metadata.resourceVersion, this.pods.resourceVersion);
  }

  /** The node to which the watch shows a pod, as somebody else knows it, to be nominated. */
  nominationOf(pod: Pod): string | undefined {
    return this.#asShown(pod)?.status?.nominatedNodeName;
  }

  #asShown(pod: Pod): Pod | undefined {
    const found = this.pods.get(keyOf(pod));
    return found?.metadata.uid === pod.metadata.uid ? found : undefined;
  }

  #left(pod: Pod): void {
    this.seats.delete(pod);
    this.waits.delete(pod);
    for (const { gone } of this.#podHandlers) gone(pod);
  }

  /** The rules for a pod; `chain`: with its owners, as {@link OwnerDirectory} knows them. */
  selectionOf(pod: KubeObject, chain = this.owners.chainOf(pod)): Selection & { chain: OwnerChain } {
    return { chain, ...this.policies.select(chain, this.namespaceLabels(pod.metadata.namespace ?? '')) };
  }

  /** Whether a pod that no rules speak about may go to that virtual node by its own words. */
  asksFor(pod: Pod, nodeName: string): boolean {
    const node = this.nodes.nodes.get(nodeName);
    return node !== undefined && asksForItself(pod, node, this.namespaceLabels(pod.metadata.namespace ?? ''));
  }

  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined {
    return this.namespaces.get(namespace)?.metadata.labels;
  }

  /** What the pods of a workload count with: itself, and the ReplicaSets it owns. */
  seatGroupsOf(workload: TypedObject): readonly string[] {
    const sets = this.owners.ownedBy(workload).filter(({ kind }) => kind === 'ReplicaSet');
    return [workload, ...sets].map(ownerKeyOf);
  }

  #parts(): readonly { hasSynced: boolean; problem: string | undefined }[] {
    return [this.owners, this.policies, this.nodes, this.namespaces, this.pods];
  }
}
