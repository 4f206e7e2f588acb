import { LOCAL } from '../api/cluster-tiers.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { Amounts } from '../kube/amounts.ts';
import type { FitAnswer } from '../capacity/fit-answer.ts';
import { fitRequestOf } from '../capacity/fit-request.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import { MemberCapacity } from '../capacity/member-capacity.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { HostView } from './host-view.ts';

/** Nobody's id: no label has such a value, so no pod of the host counts as the copy of another one, whatever its labels say. */
const NO_HOST = '/';

/**
 * The room of the host's own nodes, as if they were a member named `local`: the same answers, from the caches that are there
 * anyway. Virtual nodes and what runs on them are left out. The scheduler of the host knows nothing of what is set aside here.
 */
export class HostCapacity implements VirtualNodeCapacity {
  readonly nodeName = LOCAL;
  readonly member = LOCAL;
  readonly #view: Pick<HostView, 'hasSynced'>;
  readonly #capacity: MemberCapacity;

  constructor(view: HostView, clock: () => number) {
    this.#view = view;
    this.#capacity = new MemberCapacity({ hostId: NO_HOST, clock });
    const { nodeHandler, podHandler, namespaceHandler } = this.#capacity;
    const isReal = (nodeName: string): boolean => view.nodes.memberOf(nodeName) === undefined;
    const setNode = (node: Node): void =>
      isReal(node.metadata.name) ? nodeHandler.updated(node) : nodeHandler.deleted(node);
    const setPod = (pod: Pod): void => {
      const { nodeName = pod.status?.nominatedNodeName } = pod.spec;
      if (nodeName !== undefined && isReal(nodeName)) podHandler.updated(pod);
      else podHandler.deleted(pod);
    };
    view.nodes.nodes.on({ added: setNode, updated: setNode, deleted: nodeHandler.deleted });
    view.pods.on({ added: setPod, updated: setPod, deleted: podHandler.deleted });
    view.namespaces.on(namespaceHandler);
  }

  get ready(): boolean {
    return this.#view.hasSynced;
  }

  /** A pod of the host is asked about as it is. */
  request(pod: Pod): FitRequest {
    return fitRequestOf(pod, LOCAL);
  }

  fits(request: FitRequest): FitAnswer {
    return this.#capacity.fits(request);
  }

  slots(request: FitRequest, upTo: number): number {
    return this.#capacity.slots(request, upTo);
  }

  images(): undefined {
    return undefined;
  }

  largestFreeSlot(request: FitRequest): Amounts | undefined {
    return this.#capacity.largestFreeSlot(request);
  }

  /** The scheduler of the host looks for them itself. */
  victims(): undefined {
    return undefined;
  }

  /** The scheduler of the host sets aside itself what is left for a pod that it evicts others for. */
  reserve(podUid: string, request: FitRequest): void {
    this.#capacity.reserve(podUid, request);
  }

  release(podUid: string): void {
    this.#capacity.release(podUid);
  }

  lift(podUid: string): boolean {
    return this.#capacity.lift(podUid);
  }

  putBack(podUid: string): void {
    this.#capacity.putBack(podUid);
  }

  holds(podUid: string): boolean {
    return this.#capacity.holds(podUid);
  }

  /** What a kubelet of the host did only its pods themselves tell. */
  async hasNode(): Promise<undefined> {
    return await Promise.resolve(undefined);
  }

  /** Pods that take room on nodes of the host, and those it was set aside for. */
  get size(): { pods: number; reservations: number } {
    return this.#capacity.size;
  }
}
