import type { Logger } from 'pino';
import { OWN_VERSION } from '../api/marks.ts';
import { type MemberCluster, wantedNodesOf } from '../api/member-cluster.ts';
import type { MemberConnection } from '../members/connection.ts';
import { type Cluster, clusterOf, renewedCluster } from '../api/cluster.ts';
import type { HostServices } from './host-services.ts';
import { isGivenUp } from './given-up.ts';

/** How the member stands in this process and among the others. */
export interface MemberStanding {
  /** This process may act for it. */
  leaseHeld: () => boolean;
  /** Whether another MemberCluster of that name stands for the same cluster, or may. */
  sharesCluster: (member: string) => boolean;
  /** Whether another MemberCluster wants a virtual node of that name. */
  othersWant: (nodeName: string) => boolean;
  /** Whether there is a MemberCluster of that name, as far as is known. */
  knowsMember: (name: string) => boolean;
  /** The MemberCluster of that name as the host has it; undefined where there is none that can be read. */
  memberNamed: (name: string) => MemberCluster | undefined;
  /** Whether any other MemberCluster stands for the same cluster, or may. */
  isShared: () => boolean;
  /** Whether any other one is known to. */
  isKnownToBeShared: () => boolean;
}

/** The MemberCluster that this process acts for, as it was edited last, and whether anything may be written for it. */
export class ActingMember {
  readonly services: HostServices;
  readonly connection: MemberConnection;
  readonly standing: MemberStanding;
  readonly logger: Logger;
  #member: MemberCluster;
  #cluster: Cluster;

  constructor(services: HostServices, member: MemberCluster, connection: MemberConnection, standing: MemberStanding) {
    this.services = services;
    this.connection = connection;
    this.standing = standing;
    this.logger = services.logger.child({ member: member.metadata.name });
    this.#member = member;
    this.#cluster = clusterOf(member);
  }

  /** Returns whether override policies may give other results for it now. */
  edit(member: MemberCluster): boolean {
    const before = this.#cluster;
    this.#member = member;
    this.#cluster = renewedCluster(before, member);
    return this.#cluster !== before;
  }

  readonly member = (): MemberCluster => this.#member;

  /** As override policies know it; another object only when something of that changed. */
  readonly cluster = (): Cluster => this.#cluster;

  /** Why nothing may be written that is about the host alone, or undefined. */
  readonly hostFrozen = (): string | undefined => {
    const { hostIdentity } = this.services;
    if (hostIdentity.problem !== undefined) return hostIdentity.problem;
    return this.standing.leaseHeld() ? undefined : 'the lease of the member is not held';
  };

  /** Why nothing may be written, or undefined. */
  readonly frozen = (): string | undefined => {
    const problem = this.hostFrozen();
    if (problem !== undefined) return problem;
    if (!this.connection.identityOk()) return 'the member is not known to be the pinned cluster';
    return undefined;
  };

  readonly mayWrite = (): boolean => this.frozen() === undefined;

  /** The administrator's word that nothing runs in the member any more. */
  readonly givenUp = (): boolean => isGivenUp(this.#member, this.connection, this.services.config.forceLeaveSeconds);

  /** Whether the spec wants a virtual node of that name. */
  readonly wantsNode = (nodeName: string): boolean => wantedNodesOf(this.#member).some(({ name }) => name === nodeName);

  /** Its Nodes are to be ready only while it is reachable. */
  readonly nodesFail = (): boolean => this.#member.spec.probe.nodesReady === 'WhileReachable';

  /** Records an Event on the MemberCluster. */
  readonly event = (type: 'Normal' | 'Warning', reason: string, message: string): void => {
    const { name, uid } = this.#member.metadata;
    const object = { apiVersion: OWN_VERSION, kind: 'MemberCluster', name, uid };
    this.services.events.record(object, type, reason, message);
  };
}
