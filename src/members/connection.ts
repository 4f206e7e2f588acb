import { type Invariants, UNCOUNTED } from '../api/invariants.ts';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import { isAnswering, mayBeLost } from '../api/unreachable.ts';
import type { Namespace, Node, Pod } from '../kube/core-v1.ts';
import { cleanText } from '../kube/clean-text.ts';
import { PROCESS_CACHE_ROOM, type CacheRoom, type CacheShare } from '../kube/cache-room.ts';
import type { ClientMetrics } from '../kube/client-metrics.ts';
import { KubeClient } from '../kube/client.ts';
import { type Moment, monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { pause, systemTimers } from '../kube/timers.ts';
import type { Timers } from '../kube/timers.ts';
import { ClusterIdentity, IDENTITY_NAMESPACE, readIdentity } from './cluster-identity.ts';
import { MemberCaches, type MemberCachesOptions, WATCH_STALE } from './member-caches.ts';
import { memberGuard, observerGuard } from './member-guard.ts';
import type { MemberMetrics } from './member-metrics.ts';
import { probeFailure } from './probe-failure.ts';
import { afterProbe, NOT_PROBED, unreachableSince } from './reachability.ts';
import type { ProbeFailure, Reachability } from './reachability.ts';
import type { RotatingAccess } from './rotating-access.ts';
import { Silence } from './silence.ts';

/** The version is asked for again after this time, in ms. */
const VERSION_AGE_MS = 300_000;
/** So long the probe keeps its connection: it leads to where the address led when it was made. */
const PROBE_CONNECTION_MS = 60_000;
/** Between two probes of a member that is out of reach, at the most (ms): what waits for its return waits no longer than for the caches, and the cost is a small request. */
const OUT_PERIOD_MS = 2_000;
/** User agent of a connection that can only read. */
export const OBSERVER_AGENT = 'spillway-observer';

export interface MemberConnectionOptions extends Omit<MemberCachesOptions, 'client' | 'share'> {
  name: string;
  access: RotatingAccess;
  /** Asked before each probe. */
  probe: () => Omit<MemberClusterSpec['probe'], 'nodesReady'>;
  /** The identity this member must have, once it is known. */
  pinned: () => string | undefined;
  clientMetrics?: ClientMetrics | undefined;
  metrics?: MemberMetrics;
  /** Default: not counted. */
  invariants?: Invariants;
  /** Whether this replica may act for the member; default: always. `never`: the connection can only read. */
  leaseHeld?: (() => boolean) | 'never';
  /** Why nothing may be written anywhere because of the host; default: nothing is wrong with it. */
  hostProblem?: () => string | undefined;
  /** The memory for caches of members; default: what this process has for them. */
  cacheRoom?: CacheRoom;
  /** Wall clock in ms. */
  clock?: () => number;
  timers?: Timers;
}

/**
 * A member as a live connection: its caches, and a probe that tells whether it answers and whether it is still the
 * cluster it was. One read of the kube-system namespace asks all of that at once: the network, TLS, the credentials, the
 * rights, the storage behind the API server, and the identity.
 */
export class MemberConnection {
  readonly name: string;
  readonly client: KubeClient;
  readonly caches: MemberCaches;
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly namespaces: Informer<Namespace>;
  readonly #o: MemberConnectionOptions;
  /** The probe has a connection of its own: it must not wait behind a burst of other requests. */
  readonly #probeClient: KubeClient;
  /** When its connection was asked for, in monotonic ms. */
  #probeConnectedAt = monotonic();
  readonly #clock: () => number;
  readonly #timers: Timers;
  readonly #share: CacheShare;
  readonly #listeners = new Set<() => void>();
  #wake = new AbortController();
  /** The last probe was answered; before the first one nobody knows otherwise. */
  #answered = true;
  #reachability: Reachability = NOT_PROBED;
  #foundSince: number | undefined;
  readonly #silence = new Silence();
  readonly #unanswered = new Silence();
  readonly #identity: ClusterIdentity;
  #version: { text: string; at: number } | undefined;

  constructor(options: MemberConnectionOptions) {
    const { name, access, logger, clientMetrics } = options;
    this.name = name;
    this.#o = options;
    this.#identity = new ClusterIdentity(options.pinned);
    this.#clock = options.clock ?? Date.now;
    this.#timers = options.timers ?? systemTimers;
    const clientOptions = {
      cluster: name,
      endpoint: access.endpoint,
      credentials: access,
      logger,
      // So that the owner of the member can tell who only looks.
      ...(options.leaseHeld === 'never' ? { userAgent: OBSERVER_AGENT } : {}),
      metrics: clientMetrics,
    };
    const { leaseHeld = () => true } = options;
    const guard =
      leaseHeld === 'never'
        ? observerGuard(name)
        : memberGuard({
            member: name,
            hostId: options.hostId,
            identityOk: () => this.identityOk(),
            leaseHeld,
            hostProblem: options.hostProblem ?? (() => undefined),
            invariants: options.invariants ?? UNCOUNTED,
          });
    const share = (options.cacheRoom ?? PROCESS_CACHE_ROOM).share();
    this.#share = share;
    this.client = new KubeClient({ ...clientOptions, guard, caches: share });
    this.#probeClient = new KubeClient({ ...clientOptions, connections: 1 });
    this.caches = new MemberCaches({ ...options, client: this.client, share });
    ({ pods: this.pods, nodes: this.nodes, namespaces: this.namespaces } = this.caches);
  }

  /** Whether the member counts as reachable; false before the first probe. */
  reachable(): boolean {
    return this.#reachability.reachable === true;
  }

  /** Since when it does not answer; undefined while reachable, and before the first probe. */
  unreachableSince(): Moment | undefined {
    return unreachableSince(this.#reachability);
  }

  /** Reason of condition `Reachable` while it is not reachable; undefined before the first probe. */
  unreachableBecause(): string | undefined {
    return this.reachable() ? undefined : this.#reachability.failure?.reason;
  }

  /** UID of the member's kube-system namespace as last seen; before that the pinned one, or ''. */
  identity(): string {
    return this.#identity.observed ?? this.#o.pinned() ?? '';
  }

  /** Whether the member was seen to be the pinned cluster, and no other: once {@link misled} it never is again. */
  identityOk(): boolean {
    return this.#identity.isPinned;
  }

  /** It has led to two clusters, or to another one than the pinned one: another connection has to take its place. */
  get misled(): boolean {
    return this.#identity.isMisled;
  }

  /** See {@link MemberCaches.synced}. */
  synced(): boolean {
    return this.caches.synced;
  }

  /** Identity as seen in this connection's life; undefined before the first contact. */
  get observedIdentity(): string | undefined {
    return this.#identity.observed;
  }

  get reachability(): Reachability {
    return this.#reachability;
  }

  /** When the last probe began that says the same as {@link reachability}, in monotonic ms; undefined before the first one. */
  get foundSince(): number | undefined {
    return this.#foundSince;
  }

  /** For how long no probe was answered by the pinned cluster, or could not be sent, in ms: a single answer, be it an error, begins it anew. See {@link Silence}. */
  get silentMs(): number {
    return this.#silence.ms;
  }

  /**
   * For how long the pinned cluster has answered none of the probes that were sent to it, in ms. An error begins it anew, but 401 and 403, which
   * say nothing of what runs there; and so does a probe that could not be sent.
   */
  get unansweredMs(): number {
    return this.#unanswered.ms;
  }

  /** Like `v1.36.3`. */
  get version(): string | undefined {
    return this.#version?.text;
  }

  /** Called after reachability, identity, or version changed. Returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The pinned identity is another one now: whoever asked {@link identityOk} must ask again. */
  repinned(): void {
    this.#changed();
  }

  /**
   * Another connection of this process to the same address was answered by that cluster. If it is not the pinned one, nothing is
   * written over this connection any more; that it is, each has to see by itself.
   */
  toldOf(identity: string): void {
    if (identity === this.#o.pinned()) return;
    this.#observe(identity);
    this.poke();
  }

  /** Probes now instead of at the next turn, because something changed. */
  poke(): void {
    this.#wake.abort();
  }

  /** Reads the identity past all caches; false when it is not the pinned one. Throws when it cannot be read. */
  async confirmIdentity(signal: AbortSignal): Promise<boolean> {
    this.#observe(await readIdentity(this.client, { signal }));
    return this.identityOk();
  }

  /** Works until the signal aborts, then closes every connection to the member. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const watchIdentity = (namespace: Namespace): void => {
      if (namespace.metadata.name === IDENTITY_NAMESPACE) this.#observe(namespace.metadata.uid);
    };
    const off = this.namespaces.on({ added: watchIdentity, updated: watchIdentity });
    await Promise.all([this.caches.run(signal), this.#probeLoop(signal)]);
    off();
    await Promise.all([this.client.close(), this.#probeClient.close()]);
    this.#share.end();
  }

  async #probeLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      const stop = (): void => {
        wake.abort();
      };
      signal.addEventListener('abort', stop, { once: true });
      // Not by the wall clock: one that is set back would put the next probe off for as long.
      const started = monotonic();
      await this.#probe(signal);
      const rest = this.#periodMs() - (monotonic() - started);
      if (!signal.aborted) await pause(Math.max(0, rest), wake.signal, this.#timers);
      signal.removeEventListener('abort', stop);
    }
  }

  #periodMs(): number {
    const periodMs = this.#o.probe().periodSeconds * 1000;
    const { reachable, against, failure } = this.#reachability;
    const isOut = reachable === false && against === 0 && failure !== undefined;
    return isOut && (mayBeLost(failure.reason) || failure.reason === WATCH_STALE)
      ? Math.min(periodMs, OUT_PERIOD_MS)
      : periodMs;
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { timeoutSeconds } = this.#o.probe();
    const began = monotonic();
    let failure: ProbeFailure | undefined;
    let answered = false;
    if (this.misled || began - this.#probeConnectedAt >= PROBE_CONNECTION_MS) {
      this.#probeConnectedAt = began;
      await this.#probeClient.reconnect();
    }
    try {
      const options = { signal, deadlineMs: timeoutSeconds * 1000 };
      // Tried again within its time: a member that refuses now and then is not out of reach.
      const identity = await readIdentity(this.#probeClient, options);
      answered = true;
      // At once: what waits to be written to another cluster may not wait for what else is asked here.
      this.#observe(identity);
      if (!this.#answered) this.caches.retryNow();
      failure = this.caches.failure;
      await this.#readVersion({ ...options, retry: false });
    } catch (error) {
      if (signal.aborted) return;
      if (!answered) failure = probeFailure(error);
    }
    this.#answered = answered;
    const { metrics, name } = this.#o;
    metrics?.probeSeconds.observe({ member: name }, (monotonic() - began) / 1000);
    metrics?.probes.inc({ member: name, result: failure?.reason ?? 'ok' });
    this.#record(failure, began);
  }

  #record(failure: ProbeFailure | undefined, began: number): void {
    const before = this.#reachability;
    const now = { wall: this.#clock(), monotonic: monotonic() };
    const probe = this.#o.probe();
    this.#reachability = afterProbe(before, failure, probe, now);
    if (this.#reachability.against === 0) this.#foundSince = began;
    const mostMs = (probe.periodSeconds + probe.timeoutSeconds) * 1000;
    const answered = failure === undefined ? this.identityOk() : isAnswering(failure.reason);
    this.#silence.probed(answered, now.monotonic, mostMs);
    const unanswered = failure === undefined ? !answered : mayBeLost(failure.reason);
    this.#unanswered.probed(!unanswered, now.monotonic, mostMs);
    const { reachable } = this.#reachability;
    this.#o.metrics?.reachable.set({ member: this.name }, reachable === true ? 1 : 0);
    if (before.reachable !== reachable) {
      if (reachable === true) this.#o.logger.info('the member is reachable');
      else this.#o.logger.warn({ reason: failure?.reason }, `the member is unreachable: ${failure?.message ?? ''}`);
    }
    if (before.reachable !== reachable || before.failure !== this.#reachability.failure) this.#changed();
  }

  #observe(uid: string | undefined): void {
    const { expected } = this.#identity;
    if (uid === undefined || !this.#identity.saw(uid)) return;
    if (expected !== undefined && expected !== uid) {
      this.#o.logger.error({ expected, found: uid }, 'another cluster answers in the place of the member');
    }
    this.#changed();
  }

  /** The version is for show only: without it the probe is still good. */
  async #readVersion(options: { signal: AbortSignal; deadlineMs: number; retry: boolean }): Promise<void> {
    const now = monotonic();
    if (this.#version !== undefined && now - this.#version.at < VERSION_AGE_MS) return;
    const answer = await this.#probeClient.request({ path: '/version', ...options });
    if (typeof answer !== 'object' || answer === null || !('gitVersion' in answer)) return;
    if (typeof answer.gitVersion !== 'string') return;
    const text = cleanText(answer.gitVersion, 64);
    const changed = text !== this.#version?.text;
    this.#version = { text, at: now };
    if (changed) this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#o.logger.error({ err: error }, `a change of the member was not taken in: ${describeError(error)}`);
      }
    }
  }
}
