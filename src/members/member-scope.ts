import type { MemberCluster } from '../api/member-cluster.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import type { KeptDeletions } from './kept-deletions.ts';
import type { FencingFinding } from './member-fencing.ts';
import type { BudgetsFinding, ExchangeFinding, Hindrance, LeavingFinding, ServicesFinding } from './member-status.ts';
import type { PodSecurityFinding } from './pod-security.ts';
import type { RetiringNode } from './retiring-node.ts';
import type { MemberConnection } from './connection.ts';

/** Everything that runs for one member besides its connection: virtual nodes, pods, dependents, kubelet listeners. */
export interface MemberScope {
  /** The spec or the labels were edited. */
  changed(member: MemberCluster): void;
  /** Settles when all of it has ended after the signal; settling earlier is a failure, and the scope is started anew. */
  readonly done: Promise<void>;
  /** Pods of the host in this member; undefined while unknown. Asked every two seconds: must be cheap. */
  podCounts(): MemberClusterStatus['pods'] | undefined;
  /** Names of its virtual nodes that real nodes have, in the order of names. Cheap. */
  takenNames(): string[];
  /** Why some of it cannot work as the spec wants it. */
  problem(): Hindrance | undefined;
  /** Pods that are kept although their host pods are gone; undefined while it is not known of all virtual nodes. Cheap. */
  keptDeletions(): KeptDeletions | undefined;
  /** Deletes them, if the token is that of exactly these pods. */
  confirmDeletions(token: string): void;
  /** Virtual nodes that the spec does not want any more, as long as they are there. Cheap. */
  retiring(): RetiringNode[];
  /** Whether budgets of the host hold there; undefined while there is nothing to say. Cheap. */
  budgets(): BudgetsFinding | undefined;
  /** Whether Services of the host stand there; undefined while there is nothing to say. Cheap. */
  services(): ServicesFinding | undefined;
  /** Whether namespaces there say what pods may do to nodes; undefined while it is not known. Cheap. */
  podSecurity(): PodSecurityFinding | undefined;
  /** Whether Services that clusters export are exchanged with it; undefined while there is nothing to say. Cheap. */
  exchange(): ExchangeFinding | undefined;
  /** What keeps it after it was deleted; undefined while it was not, or that is not known yet. Cheap. */
  leaving(): LeavingFinding | undefined;
  /** Virtual nodes that an administrator has taken out of service; undefined until it is known. Cheap. */
  fencing(): FencingFinding | undefined;
  /** What all its virtual nodes offer together; undefined while unknown. */
  allocatable(): MemberClusterStatus['allocatable'] | undefined;
  /** Whether schedulers can be told of the room behind each of its virtual nodes. Cheap. */
  roomsKnown(): boolean;
  /** What one node of it can take at most, and how many pods of some shapes it can take; undefined while unknown. */
  room(): Pick<MemberClusterStatus, 'largestFreeSlot' | 'fits'> | undefined;
}

/**
 * Starts the scope of a member. It may be called while the member does not answer, for a member that is known from
 * before: its virtual nodes have to stay alive. Caches may then not be synced.
 */
export type StartScope = (member: MemberCluster, connection: MemberConnection, signal: AbortSignal) => MemberScope;

/** What a replica that does not act for a member wants to know of it all the same. Only ever reads. */
export interface ObservedScope {
  /** The spec or the labels were edited. */
  changed(member: MemberCluster): void;
  /** Settles when all of it has ended after the signal. */
  readonly done: Promise<void>;
}

/**
 * Starts that on a connection that can only read. Caches may not be synced, the member may not answer, and the cluster that
 * does may be another one.
 */
export type StartObserved = (member: MemberCluster, connection: MemberConnection, signal: AbortSignal) => ObservedScope;

/** The right to act for one member, held by one replica at a time. */
export interface MemberLease {
  readonly held: boolean;
  run(o: { signal: AbortSignal; onAcquired: (signal: AbortSignal) => Promise<void> }): Promise<void>;
  /** The member is gone: takes away what says who acts for it, unless somebody still does. Never rejects. */
  discard?(): Promise<void>;
}
