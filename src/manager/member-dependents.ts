import type { Logger } from 'pino';
import { UID_LABEL } from '../api/marks.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { admitsMode, madeInMode } from '../api/service-account-mode.ts';
import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type ClaimHome, claimHomeOf } from '../dependents/claim-refusal.ts';
import { MemberClaims } from '../dependents/member-claims.ts';
import { MemberCopies } from '../dependents/member-copies.ts';
import { DependentsMirror } from '../dependents/mirror.ts';
import { PodTokens } from '../dependents/pod-tokens.ts';
import { VolumePlaces } from '../dependents/volume-places.ts';
import type { HostServices } from './host-services.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import type { MemberConnection } from '../members/connection.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import { askForOwners, identitiesOfPod } from '../overrides/owners.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { Cluster } from '../api/cluster.ts';
import { mirroredNamespace } from '../pods/host-status.ts';
import { type DependentsPort, HOST_POD_INDEX } from '../pods/pod-ports.ts';
import { OPEN_CREATION_MS } from '../pods/unanswered-creation.ts';

export interface MemberDependentsOptions {
  services: HostServices;
  connection: MemberConnection;
  namespaces: MemberNamespaces;
  member: () => MemberCluster;
  /** The member as override policies know it. */
  cluster: () => Cluster;
  mayWrite: () => boolean;
  /** Whether another MemberCluster of that name stands for the same cluster, or may. */
  sharesCluster: (member: string) => boolean;
  hostPod: (podKey: string) => Pod | undefined;
  /** Looks at a pod of the host again. */
  requeue: (podKey: string) => void;
  logger: Logger;
}

/** What pods in one member need besides themselves: copies of ConfigMaps and Secrets, tokens, claims. */
export class MemberDependents implements DependentsPort {
  readonly mirror: DependentsMirror;
  readonly tokens: PodTokens;
  readonly claims: MemberClaims;
  /** What of it is in the member, as far as that was looked into. */
  readonly copies: MemberCopies;
  readonly #places: VolumePlaces;
  readonly #o: MemberDependentsOptions;
  /** What claims were looked at with. */
  #storage: unknown;

  constructor(options: MemberDependentsOptions) {
    const { services, connection, namespaces, member, mayWrite, logger } = options;
    const { hostId, events, informerMetrics, invariants, queueMetrics } = services;
    this.#o = options;
    this.#storage = this.#placesOfClaims();
    const copies = new MemberCopies({
      client: connection.client,
      hostId,
      namespaces: connection.namespaces,
      isUsable: (namespace) => namespaces.isUsable(namespace),
      invariants,
      logger,
      metrics: informerMetrics,
    });
    this.copies = copies;
    const common = {
      hostId,
      member: connection.name,
      sharesCluster: options.sharesCluster,
      copies,
      memberNamespaceOf: (namespace: string) => namespaces.memberNamespaceOf(namespace),
      onReady: options.requeue,
      mayWrite,
      events,
      logger,
      queueMetrics,
    };
    const overrides = {
      unknown: () => services.overridePolicies.unknown(),
      policies: (namespace: string) => services.overridePolicies.in(namespace),
      member: options.cluster,
    };
    this.mirror = new DependentsMirror({
      ...common,
      objects: services.hostObjects,
      namespaces,
      placeOf: (pod) => this.#copyPlaceOf(pod) ?? mirroredNamespace(pod),
      memberPods: connection.pods,
      overrides,
      invariants,
    });
    this.tokens = new PodTokens({
      ...common,
      clientOf: (node) => services.nodeClients.get(node) ?? services.host,
      hostPod: options.hostPod,
      placeOf: (node, podKey, uid) =>
        connection.pods
          .byIndex(HOST_POD_INDEX, `${node}/${podKey}`)
          .find((pod) => pod.metadata.labels?.[UID_LABEL] === uid && madeInMode(pod) === 'Host')?.metadata.namespace,
      admitted: () => admitsMode(member().spec.serviceAccount, 'Host'),
      metrics: services.tokenMetrics,
    });
    this.#places = new VolumePlaces({ member: connection.name, client: connection.client, logger, queueMetrics });
    this.claims = new MemberClaims({
      ...common,
      host: services.host,
      hostClaims: services.hostClaims,
      home: () => this.#homeOfClaims(),
      hostPod: options.hostPod,
      openCreationMs: OPEN_CREATION_MS,
      confirmIdentity: async (signal) => await connection.confirmIdentity(signal),
      overrides: { ...overrides, podIdentities: (podKey, uid) => this.#podIdentities(podKey, uid) },
      places: this.#places,
      ensureNamespace: async (namespace, signal) => await namespaces.ensure(namespace, signal),
      metrics: services.claimMetrics,
    });
  }

  #copyPlaceOf({ metadata, spec }: Pod): string | undefined {
    const pods = this.#o.connection.pods.byIndex(HOST_POD_INDEX, `${spec.nodeName ?? ''}/${keyOf({ metadata })}`);
    return pods.find((pod) => pod.metadata.labels?.[UID_LABEL] === metadata.uid)?.metadata.namespace;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.mirror.run(signal),
      this.tokens.run(signal),
      this.claims.run(signal),
      this.#places.run(signal),
    ]);
  }

  /** All host pods of the member are known. */
  setComplete(): void {
    this.mirror.setComplete();
    this.tokens.setComplete();
  }

  /** What a claim of the member stands for in the host. */
  toldClaim(namespace: string, name: string, uid: string): { claim: PersistentVolumeClaim; pods: Pod[] } | undefined {
    const made = this.claims.madeFor(namespace, name, uid);
    if (made === undefined) return undefined;
    const pods = made.users.map((podKey) => this.#o.hostPod(podKey)).filter((pod) => pod !== undefined);
    return { claim: made.claim, pods };
  }

  /** Override policies, or what they know of the member, changed. */
  overridesChanged(): void {
    this.mirror.overridesChanged();
    this.claims.resync();
  }

  /** The MemberCluster changed. */
  changed(): void {
    this.tokens.resync();
    const storage = this.#placesOfClaims();
    if (jsonEqual(storage, this.#storage)) return;
    this.#storage = storage;
    this.claims.resync();
  }

  track(pod: Pod, rendered: Pod): void {
    this.mirror.track(pod, rendered);
    this.claims.track(pod);
  }

  require(pod: Pod, rendered: Pod, place: string): ReturnType<DependentsPort['require']> {
    // Both begin their work at the first question.
    const [copies, claims] = [this.mirror.require(pod, rendered), this.claims.require(pod, place)];
    return copies.ready || (copies.pending && !claims.ready && !claims.pending) ? claims : copies;
  }

  release(podKey: string): void {
    this.tokens.release(podKey);
    // A pod of that name may be on another virtual node by now, and what it refers to was noted when it was seen.
    if (this.#o.hostPod(podKey) !== undefined) return;
    this.mirror.release(podKey);
    this.claims.release(podKey);
  }

  /** The pod and as much of its owners as the policies of its namespace ask for. */
  #podIdentities(podKey: string, uid: string): OverrideSubject['identities'] | undefined {
    const { services, hostPod } = this.#o;
    const pod = hostPod(podKey);
    if (pod?.metadata.uid !== uid) return undefined;
    if (!askForOwners(services.overridePolicies.in(pod.metadata.namespace ?? ''))) return identitiesOfPod(pod);
    const known = services.podOwners.known(pod);
    if (known === undefined) services.podOwners.want(pod);
    return known;
  }

  /** All of the MemberCluster that says where claims can be. */
  #placesOfClaims(): object {
    const { nodes, ...home } = this.#homeOfClaims();
    return { ...home, nodes: [...nodes], namespaces: this.#o.member().spec.namespaces };
  }

  #homeOfClaims(): ClaimHome {
    const { connection, member } = this.#o;
    return claimHomeOf(member(), connection.identity());
  }
}
