import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { keyFor, keyOf } from '../kube/object.ts';
import type { PodDirectory } from '../kubelet/pod-directory.ts';
import { PodUsage } from '../kubelet/usage/pod-usage.ts';
import type { UsageTarget } from '../kubelet/usage/usage-target.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import { isShownIgnored } from '../pods/daemon-pod.ts';
import { HOST_POD_INDEX } from '../pods/pod-ports.ts';
import type { ActingMember } from './acting-member.ts';
import { podTarget } from './pod-target.ts';

export interface KubeletPodsOptions {
  acting: ActingMember;
  namespaces: MemberNamespaces;
  nodeName: string;
  hostPods: Informer<Pod>;
}

/** The pods of a virtual node as its kubelet port asks for them: by name, what runs, where in the member, what it uses. */
export class KubeletPods {
  readonly #o: KubeletPodsOptions;

  constructor(options: KubeletPodsOptions) {
    this.#o = options;
  }

  directory(): PodDirectory {
    const { acting, namespaces, hostPods } = this.#o;
    const { connection } = acting;
    return {
      get: (namespace, name) => hostPods.get(keyFor(namespace, name)),
      list: () => hostPods.values(),
      *running() {
        for (const pod of hostPods.values()) if (isRunning(pod)) yield pod;
      },
      target: (pod) =>
        podTarget(pod, {
          member: connection.name,
          client: connection.client,
          copy: this.#copyOf(pod),
          unavailable: this.#unavailable(),
          hasPlace: namespaces.memberNamespaceOf(pod.metadata.namespace ?? '') !== undefined,
        }),
    };
  }

  usage(): PodUsage {
    const { acting, nodeName } = this.#o;
    const { services, connection, logger } = acting;
    return new PodUsage({
      nodeName,
      member: connection.name,
      client: connection.client,
      targets: () => this.#usageTargets(),
      selector: `${HOST_LABEL}=${services.hostId},${NODE_LABEL}=${nodeName}`,
      annotationsOf: (node) => connection.nodes.get(node)?.metadata.annotations,
      unavailable: () => this.#unavailable(),
      metrics: services.usageMetrics,
      logger,
    });
  }

  *#usageTargets(): Generator<UsageTarget> {
    for (const hostPod of this.#o.hostPods.values()) {
      const memberPod = isFinished(hostPod) ? undefined : this.#copyOf(hostPod);
      const memberNode = memberPod?.spec.nodeName;
      if (memberPod === undefined || memberNode === undefined) continue;
      yield { hostPod, memberPod, memberKey: keyOf(memberPod), memberNode };
    }
  }

  /** The pod of the member that runs for exactly this host pod. */
  #copyOf(hostPod: Pod): Pod | undefined {
    const { acting, nodeName } = this.#o;
    const pods = acting.connection.pods.byIndex(HOST_POD_INDEX, `${nodeName}/${keyOf(hostPod)}`);
    return pods.find(({ metadata }) => metadata.labels?.[UID_LABEL] === hostPod.metadata.uid);
  }

  /** Why the member cannot be asked about pods now. */
  #unavailable(): string | undefined {
    const { connection } = this.#o.acting;
    if (!connection.reachable()) {
      return `cluster "${connection.name}", where the pod runs, does not answer at the moment; try again later`;
    }
    if (!connection.identityOk()) {
      return `another cluster answers in the place of "${connection.name}"; its administrator has to confirm that`;
    }
    return undefined;
  }
}

/** As a kubelet counts: what is being deleted does not run any more, however long it takes to end. */
function isRunning(pod: Pod): boolean {
  const { status, metadata } = pod;
  return status?.phase === 'Running' && metadata.deletionTimestamp === undefined && !isShownIgnored(pod);
}
