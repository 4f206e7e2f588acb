import type { Logger } from 'pino';
import type { MemberCluster } from '../api/member-cluster.ts';
import type { Access } from '../kube/access.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { CredentialsError, describeError } from '../kube/errors.ts';
import { pause } from '../kube/timers.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { ChildSignal } from '../kube/child-signal.ts';
import { MemberConnection } from './connection.ts';
import type { MemberConnectionOptions } from './connection.ts';
import { CredentialsWatch } from './credentials-watch.ts';
import type { CredentialsState } from './credentials-watch.ts';
import type { MemberFacts } from './member-status.ts';
import { type MemberAddress, RotatingAccess } from './rotating-access.ts';

/** How long a start waits for the Secret before it goes on without, in ms. */
const SECRET_WAIT_MS = 15_000;
/** Between a scope that ended by itself and the next try, in ms. */
const RESTART_MS = 5_000;

/** What runs on a connection. */
export interface LinkedScope {
  /** Settles when all of it has ended after the signal; settling earlier is a failure, and it is started anew. */
  readonly done: Promise<void>;
}

export interface MemberLinkOptions<Scope extends LinkedScope> extends Pick<
  MemberConnectionOptions,
  | 'name'
  | 'hostId'
  | 'pinned'
  | 'podIndexes'
  | 'clientMetrics'
  | 'informerMetrics'
  | 'metrics'
  | 'invariants'
  | 'leaseHeld'
  | 'hostProblem'
  | 'logger'
> {
  host: KubeClient;
  /** The MemberCluster as it is now; undefined until it can be read. */
  member: () => MemberCluster | undefined;
  /** Starts what runs on the connection; undefined: not yet, and it is asked again after {@link MemberLink.resync}. */
  start: (connection: MemberConnection, signal: AbortSignal) => Scope | undefined;
  /** Credentials, reachability, identity or version changed. */
  changed: () => void;
}

interface Session<Scope> {
  access: RotatingAccess;
  connection: MemberConnection;
  child: ChildSignal;
  /** Of the Secret that `access` is of: its resourceVersion, and since when it is in use, in monotonic ms. */
  secret: { readonly version: string | undefined; readonly since: number };
  /** resourceVersion of the one by which the member was asked before. */
  triedBefore: string | undefined;
  scope?: Scope;
}

/** A cluster that answered: UID of its kube-system namespace, and where that was. */
export interface ClusterSeen {
  identity: string;
  address: MemberAddress;
}

/**
 * The way to one member: follows the Secret, keeps a connection, and lets something run on it. New credentials for the
 * same address go into the running connection; another address means another connection and a new scope. So does the
 * return of the member after another cluster answered in its place: no watch of the member takes back what that one said.
 */
export class MemberLink<Scope extends LinkedScope> {
  readonly #o: MemberLinkOptions<Scope>;
  /** Rings when a reason to start the scope, or to follow another Secret, may have come up. */
  readonly #sessionChanged = new AutoResetEvent();
  readonly #secretChanged = new AutoResetEvent();
  readonly #logger: Logger;
  #credentials: MemberFacts['credentials'] = { state: 'waiting', message: 'The Secret has not been read yet.' };
  #access: Access | undefined;
  /** resourceVersion of the Secret that it was read from. */
  #version: string | undefined;
  #refusal = new CredentialsError('SecretNotRead', 'the Secret with the kubeconfig has not been read yet');
  #watch: { secret: string; watch: CredentialsWatch; child: ChildSignal } | undefined;
  #session: Session<Scope> | undefined;

  constructor(options: MemberLinkOptions<Scope>) {
    this.#o = options;
    this.#logger = options.logger;
  }

  get connection(): MemberConnection | undefined {
    return this.#session?.connection;
  }

  /** Which cluster answered last, and where; undefined before the first contact. */
  get seen(): ClusterSeen | undefined {
    const session = this.#session;
    const identity = session?.connection.observedIdentity;
    return session === undefined || identity === undefined ? undefined : { identity, address: session.access.address };
  }

  /** Whether the connection is one to that address. */
  leadsTo(address: MemberAddress): boolean {
    return this.#session?.access.leadsTo(address) === true;
  }

  /** What runs on the connection. */
  get scope(): Scope | undefined {
    return this.#session?.scope;
  }

  /** resourceVersion of the Secret by which was found out what is known of the member; undefined while the connection has not been tried. */
  get triedVersion(): string | undefined {
    const session = this.#session;
    const foundSince = session?.connection.foundSince;
    if (session === undefined || foundSince === undefined) return undefined;
    return foundSince >= session.secret.since ? session.secret.version : session.triedBefore;
  }

  get credentials(): MemberFacts['credentials'] {
    const problem = this.#watch?.watch.problem;
    return this.#credentials.state === 'waiting' && problem !== undefined
      ? { state: 'waiting', message: `The Secret cannot be read: ${problem}` }
      : this.#credentials;
  }

  /** The MemberCluster changed: another Secret may be the one to follow. */
  memberChanged(): void {
    const member = this.#o.member();
    if (member !== undefined && this.#watch !== undefined && this.#watch.secret !== secretOf(member)) {
      this.#watch.child.abort();
    }
    this.#secretChanged.set();
  }

  /** Whether the scope may start can have changed. */
  resync(): void {
    this.#sessionChanged.set();
  }

  /** Another connection with caches of its own takes the place of this one. */
  reconnect(): void {
    this.#session?.child.abort();
  }

  /** Works until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const child = childSignal(signal);
    const parts = [this.#followSecret(child.signal), this.#sessions(child.signal)];
    // If one of them throws, which is a bug, the other must not go on without it.
    const ends = await Promise.allSettled(parts.map((part) => part.finally(() => child.abort())));
    child.release();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #followSecret(signal: AbortSignal): Promise<void> {
    const { host, member: current } = this.#o;
    while (!signal.aborted) {
      const member = current();
      if (member === undefined) {
        await this.#secretChanged.wait(signal);
        continue;
      }
      const child = childSignal(signal);
      const told = (state: CredentialsState, version: string | undefined): void =>
        this.#credentialsTold(state, { secret: secretOf(member), version });
      const reference = member.spec.credentials.secretRef;
      const watch = new CredentialsWatch({ host, reference, told, logger: this.#logger });
      this.#watch = { secret: secretOf(member), watch, child };
      await watch.run(child.signal);
      this.#watch = undefined;
      child.release();
    }
  }

  #credentialsTold(
    state: CredentialsState,
    { secret, version }: { secret: string; version: string | undefined },
  ): void {
    const session = this.#session;
    if ('access' in state) {
      this.#access = state.access;
      this.#version = version;
      this.#credentials = { state: 'accepted', secret: `Secret ${secret}`, token: state.token };
      // What was found out over the connection to the former address is none of this one's.
      if (session?.access.use(state.access) === true) {
        session.triedBefore = this.triedVersion;
        session.secret = { version: this.#version, since: monotonic() };
      } else session?.child.abort();
    } else {
      this.#refusal = state.refusal;
      // A mistake in a new kubeconfig must not cut off a member; taking the Secret away is meant to.
      if (state.gone) this.#access = undefined;
      if (this.#access === undefined) session?.access.withdraw(state.refusal);
      const { reason, message } = state.refusal;
      this.#credentials = { state: 'refused', reason, message, stillUsed: this.#access !== undefined };
      this.#logger.warn({ reason }, message);
    }
    session?.connection.poke();
    this.#changed();
  }

  async #sessions(signal: AbortSignal): Promise<void> {
    const began = monotonic();
    while (this.#credentials.state === 'waiting' && monotonic() - began < SECRET_WAIT_MS && !signal.aborted) {
      await this.#sessionChanged.wait(signal, SECRET_WAIT_MS - (monotonic() - began));
    }
    while (!signal.aborted) {
      const child = childSignal(signal);
      const ended = await this.#runSession(child);
      child.release();
      if (ended === 'failed') await pause(RESTART_MS, signal);
    }
  }

  async #runSession(child: ChildSignal): Promise<'stopped' | 'failed'> {
    const { host: _host, member, start: _start, changed: _changed, ...rest } = this.#o;
    const access = this.#access === undefined ? RotatingAccess.without(this.#refusal) : RotatingAccess.of(this.#access);
    const probe = () => member()?.spec.probe ?? DEFAULT_PROBE;
    const connection = new MemberConnection({ ...rest, access, probe });
    const secret = { version: this.#version, since: monotonic() };
    const session: Session<Scope> = { access, connection, child, secret, triedBefore: undefined };
    this.#session = session;
    const off = connection.onChange(() => {
      this.#checkIdentity(session);
      this.#changed();
    });
    const running = connection.run(child.signal);
    let outcome: 'stopped' | 'failed' = 'stopped';
    try {
      await this.#started(session);
      await session.scope?.done;
      if (!child.signal.aborted) throw new Error('the scope of the member ended by itself');
    } catch (error) {
      outcome = 'failed';
      this.#logger.error({ err: error }, `the member is started anew: ${describeError(error)}`);
    }
    child.abort();
    await running;
    off();
    this.#session = undefined;
    return outcome;
  }

  /** Before anything else hears of it: nothing may be done because of what another cluster said. */
  #checkIdentity(session: Session<Scope>): void {
    const { connection, child } = session;
    if (connection.misled && connection.observedIdentity === this.#o.pinned()) child.abort();
  }

  /** Waits until the scope has started, or the session is over. */
  async #started(session: Session<Scope>): Promise<void> {
    const { signal } = session.child;
    while (!signal.aborted) {
      const scope = this.#o.start(session.connection, signal);
      if (scope !== undefined) {
        session.scope = scope;
        return;
      }
      await this.#sessionChanged.wait(signal);
    }
  }

  #changed(): void {
    this.#sessionChanged.set();
    this.#o.changed();
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
