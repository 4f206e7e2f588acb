import type { MemberCluster } from '../api/member-cluster.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import { usesClaims } from '../kube/uses-claims.ts';
import type { MemberCapacity } from '../capacity/member-capacity.ts';
import type { NodeImages } from '../capacity/node-images.ts';
import type { ClaimTopology } from '../dependents/claim-topology.ts';
import { copyHasNode } from './copy-has-node.ts';
import { NAMESPACE_INDEX, type HostServices } from './host-services.ts';
import type { MemberConnection } from '../members/connection.ts';
import { nodeLabels } from '../nodes/render-node.ts';
import type { Cluster } from '../api/cluster.ts';
import type { ServiceAccountsPort } from '../pods/pod-ports.ts';
import { type RenderedPod, renderPod } from '../pods/render-pod.ts';
import { serviceEnvInMode } from '../pods/service-env.ts';
import type { TranslateContext } from '../pods/translate.ts';
import { VirtualNodeFit } from './virtual-node-fit.ts';

export interface VirtualNodeViewOptions {
  services: Pick<HostServices, 'hostId' | 'services' | 'overridePolicies' | 'podOwners'>;
  connection: Pick<MemberConnection, 'name' | 'client' | 'synced' | 'reachable' | 'identityOk'>;
  namespaces: { memberNamespaceOf(hostNamespace: string): string | undefined };
  capacity: MemberCapacity;
  images: Pick<NodeImages, 'share'>;
  /** The MemberCluster as it is now. */
  member: () => MemberCluster;
  nodeName: string;
  /** Labels that choose the member's nodes behind this virtual node; undefined once it is not wanted any more. */
  pool: () => Record<string, string> | undefined;
  /** The member as override policies know it. */
  cluster: () => Cluster;
  /** All is known that the room depends on. */
  ready: () => boolean;
  /** Why it is not, for people. Default: that is not told. */
  problem?: () => string | undefined;
  modeOf: ServiceAccountsPort['modeOf'];
  /** Services of a namespace as pods in the member see them; undefined, or left out: as in the host. */
  servicesSeen?: (hostNamespace: string, memberNamespace: string) => readonly Service[] | undefined;
  /** Told when the requests of the pods that are bound to the node changed. */
  boundChanged?: () => void;
  claims: Pick<ClaimTopology, 'refusalOf' | 'placesOf'>;
  /** Keys of a ConfigMap or Secret of the host, as far as they are known. */
  environmentKeys: (kind: 'ConfigMap' | 'Secret', hostNamespace: string, name: string) => Iterable<string>;
}

/**
 * What pods of the host become behind one virtual node, and the room for them there; from memory, and the same for whoever
 * acts for the member and whoever only observes it.
 */
export class VirtualNodeView {
  readonly room: VirtualNodeFit;
  readonly #o: VirtualNodeViewOptions;

  constructor(options: VirtualNodeViewOptions) {
    this.#o = options;
    this.room = this.#makeRoom();
  }

  translateContext(hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode): TranslateContext {
    const { services, member, nodeName, namespaces, pool, claims, environmentKeys } = this.#o;
    const labels = (): Readonly<Record<string, string>> => this.#nodeLabels();
    const { spec, metadata } = member();
    const { namespace = '' } = hostPod.metadata;
    const inNamespace =
      this.#o.servicesSeen?.(namespace, memberNamespace) ?? services.services.byIndex(NAMESPACE_INDEX, namespace);
    const apiServer = services.services.get('default/kubernetes');
    const excluded = spec.capacity.excludeNodes?.matchLabels;
    return {
      hostId: services.hostId,
      nodeName,
      member: metadata.name,
      memberNamespace,
      serviceAccountMode: mode,
      serviceEnv: serviceEnvInMode(hostPod, mode, inNamespace, apiServer, spec.serviceAccount.apiServer),
      // Few pods have constraints that ask for them.
      get nodeLabels() {
        return labels();
      },
      memberNamespaceOf: (other) => namespaces.memberNamespaceOf(other),
      environmentKeys: (kind, name) => environmentKeys(kind, namespace, name),
      hostOnlyLabels: new Set(Object.keys(spec.labels)),
      poolSelector: pool() ?? {},
      claimRefusal: (pod) => claims.refusalOf(pod, memberNamespace),
      hostPath: spec.hostPath,
      podPriority: spec.podPriority,
      ...(excluded === undefined ? {} : { excludedNodes: excluded }),
    };
  }

  /**
   * The pod as it would be in the member, for a pod that may come here; from memory. `unknown` passes by itself: the
   * override policies, or the owners of the pod, are being read.
   */
  #render(hostPod: Pod): RenderedPod {
    const { services, namespaces, connection, modeOf, cluster, pool } = this.#o;
    const { namespace = '' } = hostPod.metadata;
    const memberNamespace = namespaces.memberNamespaceOf(namespace);
    if (memberNamespace === undefined) {
      const message = `Namespace ${namespace} has no place in cluster "${connection.name}".`;
      return { hold: { reason: 'NamespaceNotAllowed', message } };
    }
    if (services.overridePolicies.unknown() !== undefined)
      return { unknown: 'the override policies have not been read' };
    const account = modeOf(hostPod);
    if ('hold' in account) return account;
    if ('wait' in account) return { unknown: account.wait };
    const rendered = renderPod(hostPod, this.translateContext(hostPod, memberNamespace, account.mode), {
      policies: services.overridePolicies.in(namespace),
      owners: services.podOwners.known(hostPod),
      member: cluster(),
      pool: pool() ?? {},
    });
    if ('unknown' in rendered) services.podOwners.want(hostPod);
    return rendered;
  }

  #makeRoom(): VirtualNodeFit {
    const { services, nodeName, connection, namespaces, capacity, images, member, cluster, claims } = this.#o;
    return new VirtualNodeFit({
      nodeName,
      member: connection.name,
      capacity,
      ready: this.#o.ready,
      problem: () => this.#o.problem?.(),
      memberNamespaceOf: (namespace) => namespaces.memberNamespaceOf(namespace),
      modeOf: (hostPod) => this.#o.modeOf(hostPod),
      translateContext: (hostPod, namespace, mode) => this.translateContext(hostPod, namespace, mode),
      policiesAreKnown: () => services.overridePolicies.unknown() === undefined,
      policies: (namespace) => services.overridePolicies.in(namespace),
      imageShare: (names) => images.share(names),
      render: (hostPod) => this.#render(hostPod),
      // Asked about every pod, of which few have claims.
      claimRefusal: (hostPod) =>
        usesClaims(hostPod)
          ? claims.refusalOf(hostPod, namespaces.memberNamespaceOf(hostPod.metadata.namespace ?? ''))
          : undefined,
      boundChanged: () => this.#o.boundChanged?.(),
      clock: Date.now,
      volumePlaces: (hostPod) => claims.placesOf(hostPod),
      readHasNode: async (podUid, signal) => await copyHasNode(connection, { hostId: services.hostId, podUid }, signal),
      depends: () => [member(), cluster(), capacity.tracker.facts(nodeName)],
    });
  }

  #nodeLabels(): Readonly<Record<string, string>> {
    const { connection, capacity, member, nodeName } = this.#o;
    const pool = connection.synced() ? capacity.tracker.facts(nodeName) : undefined;
    return nodeLabels({ name: nodeName, member: connection.name, spec: member().spec, pool });
  }
}
