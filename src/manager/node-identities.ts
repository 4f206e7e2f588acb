import { providerIdOf } from '../api/provider-id.ts';
import { childSignal, type ChildSignal } from '../kube/child-signal.ts';
import { NodeIdentity } from '../nodes/node-identity.ts';
import { NodeStanding } from '../nodes/node-standing.ts';
import type { ActingMember } from './acting-member.ts';

/** A virtual node's identity in the host, and whether its Node object is ours. */
export interface OwnNode {
  readonly identity: NodeIdentity;
  readonly standing: NodeStanding;
}

interface RunningIdentity extends OwnNode {
  readonly stop: ChildSignal;
  readonly ended: Promise<void>;
}

/** The identities of one member's virtual nodes towards the host, which outlive restarts of the virtual nodes themselves. */
export class NodeIdentities {
  readonly #acting: ActingMember;
  readonly #signal: AbortSignal;
  readonly #running = new Map<string, RunningIdentity>();

  constructor(acting: ActingMember, signal: AbortSignal) {
    this.#acting = acting;
    this.#signal = signal;
  }

  get(nodeName: string): OwnNode | undefined {
    return this.#running.get(nodeName);
  }

  /** Somebody else has the name: nothing there is ours. */
  isOthers(nodeName: string): boolean {
    return this.#running.get(nodeName)?.standing.refusal !== undefined;
  }

  /** Starts the identity of that node unless it runs already. */
  start(nodeName: string): OwnNode {
    const known = this.#running.get(nodeName);
    if (known !== undefined) return known;
    const { host, hostAccess, connectHost, nodeClients, nodeIdentityMetrics, config } = this.#acting.services;
    const { name } = this.#acting.member().metadata;
    const owner = { name: nodeName, member: name, providerID: providerIdOf(name, nodeName) };
    const standing = new NodeStanding(owner);
    const identity = new NodeIdentity({
      owner,
      standing,
      mode: config.hostIdentity,
      manager: host,
      access: hostAccess,
      connect: (credentials) => connectHost(credentials, this.#acting.standing.leaseHeld),
      metrics: nodeIdentityMetrics,
      logger: this.#acting.logger,
    });
    const stop = childSignal(this.#signal);
    const running = { identity, standing, stop, ended: identity.run(stop.signal) };
    this.#running.set(nodeName, running);
    nodeClients.set(nodeName, identity.client);
    return running;
  }

  /** Stops it and closes its client, which other parts of the member may use until then. */
  async end(nodeName: string): Promise<void> {
    const running = this.#running.get(nodeName);
    if (running === undefined) return;
    running.stop.abort();
    running.stop.release();
    await running.ended;
    this.#running.delete(nodeName);
    const { nodeClients } = this.#acting.services;
    if (nodeClients.get(nodeName) === running.identity.client) nodeClients.delete(nodeName);
    await running.identity.close();
  }

  async endAll(): Promise<void> {
    for (const nodeName of this.#running.keys()) await this.end(nodeName);
  }
}
