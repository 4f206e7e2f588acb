import type { Logger } from 'pino';
import {
  CONFIRM_DELETIONS_ANNOTATION,
  CONFIRM_IDENTITY_ANNOTATION,
  OWN_VERSION,
  hostIdOf,
  MEMBER_LABEL,
} from '../api/marks.ts';
import { isLeaving, parseMemberCluster, wantedNodesOf } from '../api/member-cluster.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Node } from '../kube/core-v1.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { KubeObject } from '../kube/object.ts';
import { NODES } from '../kube/resource.ts';
import { timestamp } from '../kube/timestamps.ts';
import { pause } from '../kube/timers.ts';
import { list } from '../kube/verbs.ts';
import { childSignal } from '../kube/child-signal.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { MemberConnectionOptions } from './connection.ts';
import { isEdited } from './is-edited.ts';
import { MemberLink } from './member-link.ts';
import { MemberObserver } from './member-observer.ts';
import { MemberFinalizer } from './leaving/member-finalizer.ts';
import type { MemberLease, MemberScope, StartObserved, StartScope } from './member-scope.ts';
import { memberStatus } from './member-status.ts';
import type { LeavingFinding, MemberFacts } from './member-status.ts';
import { NOT_PROBED } from './reachability.ts';
import { StatusWriter } from './status-writer.ts';

/** How long a start waits for the lease before the member is observed: most get it at once, in ms. */
const LEASE_WAIT_MS = 1_000;
/** Between two looks at whether whoever acts for the member knows its rooms, in ms. */
const ROOMS_POLL_MS = 100;
/** A MemberCluster that may go stays no longer than this for its last status to be stored, in ms. */
const LONGEST_TELLING_MS = 10_000;
/** Between an observer that failed and the next, in ms. */
const AGAIN_MS = 5_000;

export interface MemberRunnerOptions extends Pick<
  MemberConnectionOptions,
  'hostId' | 'podIndexes' | 'clientMetrics' | 'informerMetrics' | 'metrics' | 'invariants' | 'hostProblem'
> {
  host: KubeClient;
  /** The right to act; undefined: this process never does. */
  lease: MemberLease | undefined;
  startScope: StartScope;
  events?: Pick<EventRecorder, 'record'>;
  /** Other MemberClusters that are known to stand for the cluster with that identity. Default: there are none. */
  othersOf?: (identity: string) => readonly string[];
  /** Why pods of that member are not moved although it is lost, if that is so; undefined while it is not known. Default: it never is. */
  movesPaused?: (member: string) => { why: string | undefined } | undefined;
  /** What runs while this process does not act; undefined: nothing, and there is no connection. */
  startObserved: StartObserved | undefined;
  logger: Logger;
}

/**
 * The life of one MemberCluster in this replica. While the lease is held: keeps a link to the member, runs the scope on
 * it, writes the status. While it is not, and until the scope knows all that the observer knew: observes the member, if
 * somebody here wants to know of it. Nothing here ever waits for another member.
 */
export class MemberRunner {
  readonly #o: MemberRunnerOptions;
  readonly #writer: StatusWriter;
  readonly #finalizer: MemberFinalizer;
  readonly #link: MemberLink<MemberScope>;
  readonly #observer: MemberObserver | undefined;
  /** Rings when this replica begins or ceases to act. */
  readonly #leaseChanged = new AutoResetEvent();
  #acting = false;
  /** Since when nothing keeps it any more, in monotonic ms. */
  #doneAt: number | undefined;
  /** The condition as it was written last. */
  #ready: ReturnType<typeof readyOf>;
  #raw: KubeObject;
  #member: MemberCluster | undefined;
  #problems: readonly string[] = [];
  #pinned: string | undefined;

  constructor(raw: KubeObject, options: MemberRunnerOptions) {
    const {
      lease,
      startScope,
      startObserved,
      events: _events,
      othersOf: _othersOf,
      movesPaused: _movesPaused,
      ...rest
    } = options;
    this.#o = options;
    this.#raw = raw;
    this.#writer = new StatusWriter(raw, {
      host: options.host,
      render: (previous) => this.#render(previous),
      written: (status) => this.#written(status),
      logger: options.logger,
    });
    const { name } = raw.metadata;
    this.#finalizer = new MemberFinalizer({
      host: options.host,
      object: () => this.#raw,
      mayGo: (signal) => this.#mayGo(signal),
      settled: () => this.#link.resync(),
      logger: options.logger,
    });
    this.#link = new MemberLink<MemberScope>({
      ...rest,
      name,
      member: () => this.#member,
      pinned: () => this.#pinned,
      leaseHeld: () => lease?.held === true,
      // A member that is known from before need not answer for that.
      start: (connection, signal) => this.#whenStartable((member) => startScope(member, connection, signal)),
      changed: () => this.#writer.touch(),
    });
    if (startObserved !== undefined) {
      const { host, hostId, clientMetrics, informerMetrics, logger } = options;
      this.#observer = new MemberObserver({
        host,
        hostId,
        name,
        start: startObserved,
        // It goes on for a while after this replica began to act.
        anotherSeen: ({ identity, address }) => {
          if (this.#link.leadsTo(address)) this.#link.connection?.toldOf(identity);
        },
        clientMetrics,
        informerMetrics,
        logger: logger.child({ observed: true }),
      });
    }
    this.update(raw);
  }

  /** The cluster that the member is known to be: UID of its kube-system namespace. */
  get pinned(): string | undefined {
    return this.#pinned;
  }

  wantsNode(nodeName: string): boolean {
    return this.#member !== undefined && wantedNodesOf(this.#member).some(({ name }) => name === nodeName);
  }

  /** The object as it is now. A spec that cannot be read leaves the last good one in force. */
  update(raw: KubeObject): void {
    this.#raw = raw;
    const parsed = parseMemberCluster(raw);
    this.#problems = 'problems' in parsed ? parsed.problems : [];
    if ('member' in parsed) {
      const edited = isEdited(this.#member, parsed.member);
      this.#member = parsed.member;
      // Whoever acts pins identities itself; the others have to know which one it was when their turn comes.
      if (!this.#acting) this.#pinned = parsed.member.status?.identity ?? this.#pinned;
      if (edited) this.#link.scope?.changed(parsed.member);
      this.#observer?.update(parsed.member);
      this.#writer.observe(parsed.member);
      const token = parsed.member.metadata.annotations?.[CONFIRM_DELETIONS_ANNOTATION];
      if (token !== undefined) this.#link.scope?.confirmDeletions(token);
    }
    this.#link.memberChanged();
    this.#finalizer.touch();
    this.#reconsider();
  }

  #reconsider(): void {
    this.#link.resync();
    this.#observer?.resync();
    this.#writer.touch();
  }

  /** Acts whenever the lease is held, and observes while it is not, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { lease } = this.#o;
    const child = childSignal(signal);
    const parts = [
      lease?.run({ signal: child.signal, onAcquired: async (held) => await this.#act(held) }),
      this.#observer === undefined ? undefined : this.#observe(this.#observer, child.signal),
    ];
    const ends = await Promise.allSettled(parts.map(async (part) => await part?.finally(() => child.abort())));
    child.release();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #act(held: AbortSignal): Promise<void> {
    const ceased = (): void => {
      this.#acting = false;
      this.#leaseChanged.set();
    };
    this.#acting = true;
    this.#ready = readyOf(this.#member?.status);
    this.#leaseChanged.set();
    held.addEventListener('abort', ceased, { once: true });
    const child = childSignal(held);
    const parts = [this.#link, this.#writer, this.#finalizer].map((part) => part.run(child.signal));
    // If one of them throws, which is a bug, the others must not go on without it.
    const ends = await Promise.allSettled(parts.map((part) => part.finally(() => child.abort())));
    child.release();
    held.removeEventListener('abort', ceased);
    ceased();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #observe(observer: MemberObserver, signal: AbortSignal): Promise<void> {
    // Whoever gets the lease at once need not connect twice.
    if (this.#o.lease !== undefined) await this.#leaseChanged.wait(signal, LEASE_WAIT_MS);
    while (!signal.aborted) {
      while (this.#acting && !signal.aborted) await this.#leaseChanged.wait(signal);
      const child = childSignal(signal);
      const observing = this.#observed(observer, child.signal).finally(() => child.abort());
      while (!this.#actsWithRooms() && !child.signal.aborted) {
        await (this.#acting ? pause(ROOMS_POLL_MS, child.signal) : this.#leaseChanged.wait(child.signal));
      }
      child.abort();
      child.release();
      await observing;
    }
  }

  /** A bug in there must not end what acts. */
  async #observed(observer: MemberObserver, signal: AbortSignal): Promise<void> {
    try {
      await observer.run(signal);
    } catch (error) {
      this.#o.logger.error({ err: error }, `the member is observed anew: ${describeError(error)}`);
      await pause(AGAIN_MS, signal);
    }
  }

  #actsWithRooms(): boolean {
    return this.#acting && this.#link.scope?.roomsKnown() === true;
  }

  #whenStartable(start: (member: MemberCluster) => MemberScope): MemberScope | undefined {
    const member = this.#member;
    if (member === undefined || this.#pinned === undefined || !this.#finalizer.isSettled) return undefined;
    return start(member);
  }

  /** What keeps it after it was deleted. */
  #leaving(): LeavingFinding | undefined {
    if (!isLeaving(this.#raw)) return undefined;
    const finding = this.#link.scope?.leaving();
    if (finding !== undefined) return finding;
    const message = 'It was deleted; what is still there of it is being looked into.';
    return { pods: 0, copies: 0, claims: 0, done: false, reason: 'Looking', message, ...this.#saidOfLeaving() };
  }

  /** As a former process found it: figures do not go up and down with every start. */
  #saidOfLeaving(): Partial<LeavingFinding> {
    const { leaving, conditions } = this.#member?.status ?? {};
    const said = conditions?.find(({ type }) => type === 'Leaving');
    return { ...leaving, ...(said === undefined ? {} : { reason: said.reason, message: said.message }) };
  }

  /** One that nothing was ever made for goes at once, whatever is wrong with it. */
  async #mayGo(signal: AbortSignal): Promise<boolean> {
    if (this.#link.scope !== undefined) return this.#isDone();
    if (this.#pinned !== undefined) return false;
    const { name } = this.#raw.metadata;
    const { items } = await list<Node>(this.#o.host, NODES, { labelSelector: `${MEMBER_LABEL}=${name}`, signal });
    return !items.some((node) => memberOfNode(node) === name);
  }

  /** What may remain is in the status at the end, for whoever follows that; a status that cannot be written holds nobody up for long. */
  #isDone(): boolean {
    const finding = this.#leaving();
    if (finding?.done !== true) return false;
    this.#doneAt ??= monotonic();
    const isTold = (finding.mayRemain ?? []).length === 0 || this.#writer.isWritten;
    return isTold || monotonic() - this.#doneAt > LONGEST_TELLING_MS;
  }

  #render(previous: MemberClusterStatus | undefined): MemberClusterStatus {
    const { connection, scope, credentials } = this.#link;
    const observed = connection?.observedIdentity;
    const isHost = observed !== undefined && hostIdOf(observed) === this.#o.hostId;
    const facts: MemberFacts = {
      name: this.#raw.metadata.name,
      generation: this.#raw.metadata.generation,
      problems: this.#problems,
      conflict: scope?.problem(),
      credentials,
      credentialsVersion: this.#link.triedVersion,
      reachability: connection?.reachability ?? NOT_PROBED,
      pinned: this.#identityToPin(observed, isHost),
      observed,
      isHost,
      synced: connection?.synced() ?? false,
      cacheProblem: connection?.caches.problem,
      cacheLimit: connection?.caches.limit,
      leftOut: connection?.caches.leftOut,
      version: connection?.version,
      allocatable: scope?.allocatable(),
      room: scope?.room(),
      pods: scope?.podCounts(),
      takenNames: scope?.takenNames(),
      keptDeletions: scope?.keptDeletions(),
      retiring: scope?.retiring(),
      budgets: scope?.budgets(),
      services: scope?.services(),
      podSecurity: scope?.podSecurity(),
      exchange: scope?.exchange(),
      fencing: scope?.fencing(),
      sharedWith: this.#pinned === undefined ? undefined : this.#o.othersOf?.(this.#pinned),
      movesPaused: this.#o.movesPaused?.(this.#raw.metadata.name),
      leaving: this.#leaving(),
    };
    return memberStatus(previous, facts, timestamp(Date.now()));
  }

  /** The first identity seen is taken; another one only when the administrator names it. */
  #identityToPin(observed: string | undefined, isHost: boolean): string | undefined {
    if (observed === undefined || isHost) return this.#pinned;
    const confirmed = this.#member?.metadata.annotations?.[CONFIRM_IDENTITY_ANNOTATION] === observed;
    return this.#pinned === undefined || confirmed ? observed : this.#pinned;
  }

  /** Who acts from now on says only what is new. */
  #recordReady(status: MemberClusterStatus): void {
    const before = this.#ready;
    this.#ready = readyOf(status);
    if (this.#ready === undefined || this.#ready.reason === 'Leaving') return;
    const { name, uid = '' } = this.#raw.metadata;
    const object = { apiVersion: OWN_VERSION, kind: 'MemberCluster', name, uid };
    const { reason, message } = this.#ready;
    const isReady = this.#ready.status === 'True';
    const wasReady = before?.status === 'True';
    if (isReady && !wasReady) this.#o.events?.record(object, 'Normal', 'MemberReady', message);
    const isNews = wasReady || (this.#ready.status === 'False' && before?.reason !== reason);
    if (!isReady && isNews) this.#o.events?.record(object, 'Warning', 'MemberNotReady', `${reason}: ${message}`);
  }

  /** An identity counts from the moment it is stored: a restart must find the same one. */
  #written(status: MemberClusterStatus): void {
    this.#recordReady(status);
    this.#o.metrics?.statusWrites.inc({ member: this.#raw.metadata.name });
    if (status.identity === undefined || status.identity === this.#pinned) return;
    this.#o.logger.info({ before: this.#pinned, identity: status.identity }, 'the identity of the member is pinned');
    const before = this.#pinned;
    this.#pinned = status.identity;
    // What was cached of the former cluster says nothing about this one, and is newer than anything it will say.
    if (before !== undefined) this.#link.reconnect();
    else this.#link.connection?.repinned();
    this.#reconsider();
  }
}

function readyOf(status: MemberClusterStatus | undefined) {
  return conditionOf({ status }, 'Ready');
}
