import type { Logger } from 'pino';
import { CONFIRM_DELETIONS_ANNOTATION, CONFIRM_IDENTITY_ANNOTATION, hostIdOf } from '../api/marks.ts';
import { parseMemberCluster } from '../api/member-cluster.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import type { Access } from '../kube/access.ts';
import type { KubeClient } from '../kube/client.ts';
import { CredentialsError, describeError } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { Bell } from '../kube/bell.ts';
import { childSignal } from './child-signal.ts';
import type { ChildSignal } from './child-signal.ts';
import { MemberConnection } from './connection.ts';
import type { MemberConnectionOptions } from './connection.ts';
import { CredentialsWatch } from './credentials-watch.ts';
import type { CredentialsState } from './credentials-watch.ts';
import type { MemberLease, MemberScope, StartScope } from './member-scope.ts';
import { memberStatus } from './member-status.ts';
import type { MemberFacts, Refusal } from './member-status.ts';
import { NOT_PROBED } from './reachability.ts';
import { RotatingAccess } from './rotating-access.ts';
import { StatusWriter } from './status-writer.ts';

/** How long a start waits for the Secret before it goes on without, in ms. */
const SECRET_WAIT_MS = 15_000;
/** Between a scope that ended by itself and the next try, in ms. */
const RESTART_MS = 5_000;

export interface MemberRunnerOptions extends Pick<
  MemberConnectionOptions,
  'hostId' | 'podIndexes' | 'clientMetrics' | 'informerMetrics' | 'metrics' | 'invariants' | 'hostProblem'
> {
  host: KubeClient;
  lease: MemberLease;
  startScope: StartScope;
  /** Why another MemberCluster stands in the way of this one. */
  conflictOf: (member: MemberCluster) => Refusal | undefined;
  logger: Logger;
}

interface Session {
  access: RotatingAccess;
  connection: MemberConnection;
  child: ChildSignal;
  scope?: MemberScope;
}

/**
 * The life of one MemberCluster in this replica. While the lease is held: follows the Secret, keeps a connection, runs the
 * scope on it, writes the status. New credentials for the same address go into the running connection; another address
 * means another connection and a new scope. Nothing here ever waits for another member.
 */
export class MemberRunner {
  readonly #o: MemberRunnerOptions;
  readonly #writer: StatusWriter;
  /** Rings when a reason to start the scope, or to follow another Secret, may have come up. */
  readonly #sessionBell = new Bell();
  readonly #secretBell = new Bell();
  #raw: KubeObject;
  #member: MemberCluster | undefined;
  #problems: readonly string[] = [];
  #credentials: MemberFacts['credentials'] = { state: 'waiting', message: 'The Secret has not been read yet.' };
  #access: Access | undefined;
  #refusal = new CredentialsError('SecretNotRead', 'the Secret with the kubeconfig has not been read yet');
  #watch: { secret: string; watch: CredentialsWatch; child: ChildSignal } | undefined;
  #session: Session | undefined;
  #pinned: string | undefined;

  constructor(raw: KubeObject, options: MemberRunnerOptions) {
    this.#o = options;
    this.#raw = raw;
    this.#writer = new StatusWriter(raw, {
      host: options.host,
      render: (previous) => this.#render(previous),
      written: (status) => this.#written(status),
      logger: options.logger,
    });
    this.update(raw);
    this.#pinned = this.#member?.status?.identity;
  }

  /** The object as it is now. A spec that cannot be read leaves the last good one in force. */
  update(raw: KubeObject): void {
    this.#raw = raw;
    const parsed = parseMemberCluster(raw);
    this.#problems = 'problems' in parsed ? parsed.problems : [];
    if ('member' in parsed) {
      const edited = this.#member?.metadata.generation !== parsed.member.metadata.generation;
      this.#member = parsed.member;
      if (edited) this.#session?.scope?.changed(parsed.member);
      if (this.#watch !== undefined && this.#watch.secret !== secretOf(parsed.member)) this.#watch.child.abort();
      this.#writer.observe(parsed.member);
      const token = parsed.member.metadata.annotations?.[CONFIRM_DELETIONS_ANNOTATION];
      if (token !== undefined) this.#session?.scope?.confirmDeletions(token);
    }
    this.#secretBell.ring();
    this.#changed();
  }

  /** Looks again at what depends on other members. */
  reconsider(): void {
    this.#changed();
  }

  /** Works whenever the lease is held, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#o.lease.run({ signal, onAcquired: async (held) => await this.#work(held) });
  }

  async #work(signal: AbortSignal): Promise<void> {
    const child = childSignal(signal);
    const parts = [this.#followSecret(child.signal), this.#sessions(child.signal), this.#writer.run(child.signal)];
    // If one of them throws, which is a bug, the others must not go on without it.
    const ends = await Promise.allSettled(parts.map((part) => part.finally(() => child.abort())));
    child.release();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #followSecret(signal: AbortSignal): Promise<void> {
    const { host, logger } = this.#o;
    while (!signal.aborted) {
      const member = this.#member;
      if (member === undefined) {
        await this.#secretBell.wait(signal);
        continue;
      }
      const child = childSignal(signal);
      const told = (state: CredentialsState): void => {
        this.#credentialsTold(state, secretOf(member));
      };
      const watch = new CredentialsWatch({ host, reference: member.spec.credentials.secretRef, told, logger });
      this.#watch = { secret: secretOf(member), watch, child };
      await watch.run(child.signal);
      this.#watch = undefined;
      child.release();
    }
  }

  #credentialsTold(state: CredentialsState, secret: string): void {
    const session = this.#session;
    if ('access' in state) {
      this.#access = state.access;
      this.#credentials = { state: 'accepted', secret: `Secret ${secret}` };
      if (session !== undefined && !session.access.use(state.access)) session.child.abort();
    } else {
      this.#refusal = state.refusal;
      // A mistake in a new kubeconfig must not cut off a member; taking the Secret away is meant to.
      if (state.gone) this.#access = undefined;
      if (this.#access === undefined) session?.access.withdraw(state.refusal);
      const { reason, message } = state.refusal;
      this.#credentials = { state: 'refused', reason, message, stillUsed: this.#access !== undefined };
      this.#o.logger.warn({ reason }, message);
    }
    session?.connection.poke();
    this.#changed();
  }

  async #sessions(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    while (this.#credentials.state === 'waiting' && performance.now() - began < SECRET_WAIT_MS && !signal.aborted) {
      await this.#sessionBell.wait(signal, SECRET_WAIT_MS - (performance.now() - began));
    }
    while (!signal.aborted) {
      const child = childSignal(signal);
      const ended = await this.#runSession(child);
      child.release();
      if (ended === 'failed') await pause(RESTART_MS, signal);
    }
  }

  async #runSession(child: ChildSignal): Promise<'stopped' | 'failed'> {
    const { host: _host, lease, startScope, conflictOf: _conflictOf, logger, ...rest } = this.#o;
    const access = this.#access === undefined ? RotatingAccess.without(this.#refusal) : RotatingAccess.of(this.#access);
    const connection = new MemberConnection({
      ...rest,
      name: this.#raw.metadata.name,
      access,
      probe: () => this.#member?.spec.probe ?? DEFAULT_PROBE,
      pinned: () => this.#pinned,
      leaseHeld: () => lease.held,
      logger,
    });
    const session: Session = { access, connection, child };
    this.#session = session;
    const off = connection.onChange(() => this.#changed());
    const running = connection.run(child.signal);
    let outcome: 'stopped' | 'failed' = 'stopped';
    try {
      const member = await this.#mayStart(child.signal);
      if (member !== undefined) {
        session.scope = startScope(member, connection, child.signal);
        await session.scope.done;
        if (!child.signal.aborted) throw new Error('the scope of the member ended by itself');
      }
    } catch (error) {
      outcome = 'failed';
      logger.error({ err: error }, `the member is started anew: ${describeError(error)}`);
    }
    child.abort();
    await running;
    off();
    this.#session = undefined;
    return outcome;
  }

  /** Waits until the scope may run. A member that is known from before need not answer for that. */
  async #mayStart(signal: AbortSignal): Promise<MemberCluster | undefined> {
    while (!signal.aborted) {
      const member = this.#member;
      if (member !== undefined && this.#pinned !== undefined && this.#o.conflictOf(member) === undefined) return member;
      await this.#sessionBell.wait(signal);
    }
    return undefined;
  }

  #render(previous: MemberClusterStatus | undefined): MemberClusterStatus {
    const connection = this.#session?.connection;
    const observed = connection?.observedIdentity;
    const isHost = observed !== undefined && hostIdOf(observed) === this.#o.hostId;
    const problem = this.#watch?.watch.problem;
    const credentials: MemberFacts['credentials'] =
      this.#credentials.state === 'waiting' && problem !== undefined
        ? { state: 'waiting', message: `The Secret cannot be read: ${problem}` }
        : this.#credentials;
    const facts: MemberFacts = {
      name: this.#raw.metadata.name,
      generation: this.#raw.metadata.generation,
      problems: this.#problems,
      conflict:
        (this.#member === undefined ? undefined : this.#o.conflictOf(this.#member)) ?? this.#session?.scope?.problem(),
      credentials,
      reachability: connection?.reachability ?? NOT_PROBED,
      pinned: this.#identityToPin(observed, isHost),
      observed,
      isHost,
      synced: connection?.synced() ?? false,
      cacheProblem: connection?.cacheProblem,
      version: connection?.version,
      allocatable: this.#session?.scope?.allocatable(),
      room: this.#session?.scope?.room(),
      pods: this.#session?.scope?.podCounts(),
      keptDeletions: this.#session?.scope?.keptDeletions(),
    };
    return memberStatus(previous, facts, `${new Date().toISOString().slice(0, 19)}Z`);
  }

  /** The first identity seen is taken; another one only when the administrator names it. */
  #identityToPin(observed: string | undefined, isHost: boolean): string | undefined {
    if (observed === undefined || isHost) return this.#pinned;
    const confirmed = this.#member?.metadata.annotations?.[CONFIRM_IDENTITY_ANNOTATION] === observed;
    return this.#pinned === undefined || confirmed ? observed : this.#pinned;
  }

  /** An identity counts from the moment it is stored: a restart must find the same one. */
  #written(status: MemberClusterStatus): void {
    this.#o.metrics?.statusWrites.inc({ member: this.#raw.metadata.name });
    if (status.identity === undefined || status.identity === this.#pinned) return;
    this.#o.logger.info({ before: this.#pinned, identity: status.identity }, 'the identity of the member is pinned');
    const before = this.#pinned;
    this.#pinned = status.identity;
    // What was cached of the former cluster says nothing about this one, and is newer than anything it will say.
    if (before !== undefined) this.#session?.child.abort();
    else this.#session?.connection.repinned();
    this.#changed();
  }

  #changed(): void {
    this.#sessionBell.ring();
    this.#writer.touch();
  }
}

const DEFAULT_PROBE = {
  periodSeconds: 10,
  timeoutSeconds: 5,
  failureThreshold: 3,
  successThreshold: 1,
  podsUnreadyAfterSeconds: 60,
};

function secretOf(member: MemberCluster): string {
  const { namespace, name, key } = member.spec.credentials.secretRef;
  return `${namespace}/${name}, key ${key}`;
}
