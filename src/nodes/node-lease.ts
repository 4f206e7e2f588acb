import type { Node } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import type { Lease } from '../kube/lease.ts';
import { LEASES } from '../kube/resource.ts';
import { microTime } from '../kube/timestamps.ts';
import { create, get, replace } from '../kube/verbs.ts';

const NAMESPACE = 'kube-node-lease';

/** The heartbeat of a node (KEP-589): its Lease in kube-node-lease, owned by the Node. */
export class NodeLease {
  readonly #host: KubeClient;
  readonly #name: string;
  readonly #durationSeconds: number;
  #known: Lease | undefined;

  constructor(host: KubeClient, name: string, durationSeconds: number) {
    this.#host = host;
    this.#name = name;
    this.#durationSeconds = durationSeconds;
  }

  /** Writes a fresh renewal time; makes the Lease when there is none. One request when all is as it was. */
  async renew(node: Node, nowMs: number, signal: AbortSignal): Promise<void> {
    // A heartbeat that takes longer is better tried anew on another connection.
    const options = { signal, deadlineMs: 5_000 };
    const renewed = (lease?: Lease): Lease => this.#record(lease, node, nowMs);
    if (this.#known !== undefined) {
      try {
        this.#known = await replace(this.#host, LEASES, renewed(this.#known), options);
        return;
      } catch (error) {
        this.#known = undefined;
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    try {
      const there = await get<Lease>(this.#host, LEASES, { namespace: NAMESPACE, name: this.#name }, options);
      this.#known = await replace(this.#host, LEASES, renewed(there), options);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      try {
        this.#known = await create(this.#host, LEASES, renewed(), options);
      } catch (e) {
        // Made meanwhile by a former life of this process: the next try reads it.
        if (!isAlreadyExists(e)) throw e;
        throw new Error(`the lease of node ${this.#name} was made by someone else a moment ago`, { cause: e });
      }
    }
  }

  #record(lease: Lease | undefined, { metadata: { name, uid } }: Node, nowMs: number): Lease {
    const owner = uid === undefined ? undefined : [{ apiVersion: 'v1', kind: 'Node', name, uid }];
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      ...lease,
      metadata: {
        ...(lease?.metadata ?? { namespace: NAMESPACE, name: this.#name }),
        ...(owner === undefined ? {} : { ownerReferences: owner }),
      },
      spec: {
        ...lease?.spec,
        holderIdentity: name,
        leaseDurationSeconds: this.#durationSeconds,
        renewTime: microTime(nowMs),
      },
    };
  }
}
