import type { Logger } from 'pino';
import { isFinished } from '../api/pod-phase.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isAlreadyExists, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { type KubeObject, keyOf } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { CA_KEY, tokenSecretName, tokenSourcesOf, type TokenSource, wantsCa } from '../pods/translate-tokens.ts';
import { type CopyOwner, isOfOther, OTHERS_AGAIN_MS } from './copy-owner.ts';
import type { CopyRecord } from './copy.ts';
import type { CopyStore } from './member-copies.ts';
import type { TokenMetrics } from './token-metrics.ts';
import { withoutSecretValues } from './secret-words.ts';
import { readHostCa, requestToken } from './token-request.ts';
import { ownerOfTokens, refreshTimeOf, tokenSecretFor } from './token-secret.ts';
import type { Readiness } from './readiness.ts';

export interface PodTokensOptions extends CopyOwner {
  hostId: string;
  copies: CopyStore;
  /** Where new pods of a host namespace go; undefined: nowhere. */
  memberNamespaceOf(hostNamespace: string): string | undefined;
  /** The identity of a virtual node in the host. */
  clientOf(node: string): KubeClient;
  /** A pod of the host that is bound to one of the member's virtual nodes. */
  hostPod(podKey: string): Pod | undefined;
  /** The namespace of the member in which a pod is that was made in mode Host for that host pod; undefined: there is none. */
  placeOf(node: string, podKey: string, uid: string): string | undefined;
  /** Whether the member is to have tokens of the host at all, as things are now. */
  admitted(): boolean;
  /** A pod that was not ready may be so now, or for another reason. */
  onReady: (podKey: string) => void;
  mayWrite(): boolean;
  events: Pick<EventRecorder, 'record'>;
  metrics?: TokenMetrics;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics | undefined;
  /** Wall clock in ms, for what is written on the Secrets. */
  clock?: () => number;
  /** In ms. */
  monotonic?: () => number;
}

/** As a kubelet does: at 80 % of their life, and every day. */
const REFRESH_AT = 0.8;
const LONGEST_MS = 24 * 3_600_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;
/** The host's authorizer may learn of a pod after us, a cache of a write of ours; so many refusals in a row are no news. */
const LATE_ANSWERS = 3;
/** Tokens that were written count as there for so long although the cache has not shown them. */
const WRITTEN_MS = 10_000;
/** Tokens of a former pod of the same name are looked at again when it has surely left. */
const FORMER_MS = 5_000;

/** What is remembered of a pod's tokens beyond what their Secret says. */
interface State {
  /**
   * When and in which namespace tokens were written last, and when they are to be replaced, in monotonic ms; and by the wall
   * clock, in ms, as it is written on the Secret.
   */
  written: { at: number; namespace: string; dueAt: number; refreshAt: number } | undefined;
  failures: number;
  failure: string | undefined;
}

/**
 * Tokens of the host for pods in a member: one Secret for each pod in mode Host, made before the pod, with fresh tokens
 * at 80 % of their life, removed after the pod. When to refresh is written on the Secret, so that a start writes nothing.
 */
export class PodTokens {
  readonly #o: PodTokensOptions;
  readonly #clock: () => number;
  readonly #monotonic: () => number;
  readonly #queue: WorkQueue;
  /** By {@link idOf}, of pods that are to have tokens. */
  readonly #states = new Map<string, State>();
  /** UIDs of pods that may have tokens in the member, by key of the host pod. */
  readonly #uids = new Map<string, Set<string>>();
  /** Namespaces of the member in which their tokens were seen or put, by {@link idOf}: more than one after the mapping was edited. */
  readonly #places = new Map<string, Set<string>>();
  #complete = false;

  constructor(options: PodTokensOptions) {
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#queue = new WorkQueue({
      name: `tokens-${options.member}`,
      concurrency: 8,
      handler: (id, signal) => this.#handle(id, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      logger: options.logger,
      metrics: options.queueMetrics,
    });
    options.copies.on(
      (copy) => this.#seen(copy),
      () => undefined,
    );
  }

  /** Works until the signal aborts. What is in the member stays. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
  }

  /** Whether the tokens of a pod are in the member; from the first question on they are brought there. */
  require(hostPod: Pod): Readiness {
    const podKey = keyOf(hostPod);
    const { uid = '' } = hostPod.metadata;
    if (tokenSourcesOf({ ...hostPod.spec }).length === 0) return { ready: true };
    const id = idOf(podKey, uid);
    let state = this.#states.get(id);
    if (state === undefined) {
      state = newState();
      this.#states.set(id, state);
      for (const other of this.#note(podKey, uid)) {
        if (other !== uid) this.#queue.addAfter(idOf(podKey, other), FORMER_MS);
      }
      this.#queue.add(id);
    }
    const home = this.#homeOf(hostPod);
    if (home !== undefined && (this.#isWritten(state, home) || this.#secretIn(home, podKey, uid) !== undefined))
      return { ready: true };
    const message = state.failure ?? 'The tokens of the pod are on their way to the member.';
    return { ready: false, pending: state.failure === undefined, reason: 'ServiceAccountTokenNotAvailable', message };
  }

  /** The pod is gone from both clusters: its tokens go too, those of a successor that the host has by now stay. */
  release(podKey: string): void {
    const present = this.#o.hostPod(podKey)?.metadata.uid;
    for (const uid of this.#uids.get(podKey) ?? []) {
      if (uid === present) continue;
      this.#states.delete(idOf(podKey, uid));
      this.#queue.add(idOf(podKey, uid));
    }
  }

  /** All host pods are known: tokens without one are garbage from now on. */
  setComplete(): void {
    this.#complete = true;
    this.resync();
  }

  /** Whether the member is to have tokens may have changed. */
  resync(): void {
    for (const copy of this.#o.copies.values()) this.#seen(copy);
    for (const id of this.#states.keys()) this.#queue.add(id);
  }

  #seen(copy: CopyRecord): void {
    const owner = ownerOfTokens(copy);
    if (owner === undefined) return;
    const id = idOf(owner.podKey, owner.uid);
    this.#note(owner.podKey, owner.uid);
    this.#notePlace(id, copy.metadata.namespace ?? '');
    this.#queue.add(id);
  }

  #notePlace(id: string, namespace: string): void {
    this.#places.set(id, (this.#places.get(id) ?? new Set()).add(namespace));
  }

  #note(podKey: string, uid: string): Set<string> {
    const uids = this.#uids.get(podKey) ?? new Set();
    this.#uids.set(podKey, uids.add(uid));
    return uids;
  }

  #isWritten({ written }: State, namespace: string): boolean {
    return written?.namespace === namespace && this.#monotonic() - written.at < WRITTEN_MS;
  }

  /** Where the tokens of a pod belong: to its copy, wherever new ones go by now. */
  #homeOf(pod: Pod): string | undefined {
    const { namespace = '', uid = '' } = pod.metadata;
    return this.#o.placeOf(pod.spec.nodeName ?? '', keyOf(pod), uid) ?? this.#o.memberNamespaceOf(namespace);
  }

  #secretIn(memberNamespace: string, podKey: string, uid: string): CopyRecord | undefined {
    const found = this.#o.copies.get('Secret', memberNamespace, tokenSecretName(uid));
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return undefined;
    return ownerOfTokens(found)?.podKey === podKey ? found : undefined;
  }

  async #handle(id: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    if (!this.#o.mayWrite()) return { requeueAfterMs: 1_000 };
    const [podKey, uid] = partsOf(id);
    const bound = this.#o.hostPod(podKey);
    const pod = bound?.metadata.uid === uid ? bound : undefined;
    const home = pod === undefined ? undefined : this.#homeOf(pod);
    const left = await this.#cleanOutside(home, id, signal);
    if (pod === undefined || home === undefined) return left;
    return (await this.#keep(pod, home, signal)) ?? left;
  }

  /** Sees to it that the tokens of a pod are in that namespace, and fresh. */
  async #keep(pod: Pod, home: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    if (!this.#o.copies.knowledge('Secret', home).known) return { requeueAfterMs: FIRST_RETRY_MS };
    const podKey = keyOf(pod);
    const { uid = '' } = pod.metadata;
    const secret = this.#secretIn(home, podKey, uid);
    // A pod that ended needs none any more, and keeps those it has until it is gone.
    if (isFinished(pod)) return undefined;
    const state = this.#states.get(idOf(podKey, uid));
    const isWritten = state !== undefined && this.#isWritten(state, home);
    if (secret === undefined && !isWritten) {
      if (state === undefined && this.#o.placeOf(pod.spec.nodeName ?? '', podKey, uid) === undefined) return undefined;
      return await this.#bring(pod, secret, home, signal);
    }
    this.#o.onReady(podKey);
    if (secret === undefined) return { requeueAfterMs: WRITTEN_MS };
    const rest = this.#restOf(secret, state, home);
    if (rest > 0) return { requeueAfterMs: Math.min(rest, LONGEST_MS) };
    return await this.#bring(pod, secret, home, signal);
  }

  /** How long the tokens are good for: what the Secret says counts where another process has written it since. */
  #restOf(secret: CopyRecord, state: State | undefined, home: string): number {
    const refreshAt = refreshTimeOf(secret);
    const written = state?.written?.namespace === home ? state.written : undefined;
    if (written === undefined || refreshAt > written.refreshAt) return refreshAt - this.#clock();
    // A wall clock that was set back puts nothing off, nor does the monotonic one of a machine that slept.
    return Math.min(written.dueAt - this.#monotonic(), written.refreshAt - this.#clock());
  }

  /** Makes or refreshes the tokens of a pod. */
  async #bring(
    pod: Pod,
    former: CopyRecord | undefined,
    memberNamespace: string,
    signal: AbortSignal,
  ): Promise<void | { requeueAfterMs: number }> {
    const { copies, hostId, member, metrics, onReady } = this.#o;
    if (!this.#o.admitted()) return undefined;
    const podKey = keyOf(pod);
    const id = idOf(podKey, pod.metadata.uid ?? '');
    const state = this.#states.get(id) ?? newState();
    this.#states.set(id, state);
    let secret: KubeObject | undefined;
    try {
      const { values, lifeMs } = await this.#valuesFor(pod, signal);
      const at = this.#monotonic();
      const goodForMs = Math.min(lifeMs * REFRESH_AT, LONGEST_MS);
      const refreshAt = this.#clock() + goodForMs;
      secret = tokenSecretFor(pod, { hostId, member, memberNamespace, refreshAt, values }, former);
      await (former === undefined ? copies.create('Secret', secret, signal) : copies.replace('Secret', secret, signal));
      state.written = { at, namespace: memberNamespace, dueAt: at + goodForMs, refreshAt };
      Object.assign(state, { failures: 0, failure: undefined });
      this.#notePlace(id, memberNamespace);
      metrics?.tokens.inc({ member, outcome: 'issued' });
      onReady(podKey);
      return { requeueAfterMs: Math.min(goodForMs, WRITTEN_MS) };
    } catch (error) {
      signal.throwIfAborted();
      const cause = error instanceof TokenRefusal ? error.cause : error;
      const passing = [isConflict, isNotFound, isAlreadyExists, isForbidden].some((is) => is(cause));
      state.failures += 1;
      if (!passing || state.failures > LATE_ANSWERS) this.#recordFailure(pod, former, state, error, secret);
      return { requeueAfterMs: Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(state.failures - 1, 16)) };
    }
  }

  /** All tokens of the pod, and how long the first of them to end lasts. */
  async #valuesFor(pod: Pod, signal: AbortSignal): Promise<{ values: Map<string, string>; lifeMs: number }> {
    const host = this.#o.clientOf(pod.spec.nodeName ?? '');
    const spec = { ...pod.spec };
    const values = new Map<string, string>();
    let lifeMs = Number.POSITIVE_INFINITY;
    for (const source of tokenSourcesOf(spec)) {
      const issued = await requestToken(host, pod, source, signal).catch((error: unknown) => {
        throw new TokenRefusal(source, error);
      });
      values.set(source.key, issued.token);
      lifeMs = Math.min(lifeMs, issued.lifeMs);
    }
    if (wantsCa(spec)) values.set(CA_KEY, await readHostCa(host, pod.metadata.namespace ?? '', signal));
    return { values, lifeMs };
  }

  /** `secret`: what was to be written, if it came to that. What the member said may repeat a token. */
  #recordFailure(
    pod: Pod,
    former: CopyRecord | undefined,
    state: State,
    error: unknown,
    secret: KubeObject | undefined,
  ): void {
    const { member, metrics, events, logger, onReady } = this.#o;
    const podKey = keyOf(pod);
    const refusal = error instanceof TokenRefusal ? error : undefined;
    const hide = (text: string): string => withoutSecretValues(text, secret);
    const what = describeError(refusal === undefined ? error : refusal.cause, hide).replace(/\.$/, '');
    const which = refusal?.message ?? 'The tokens of the service account';
    metrics?.tokens.inc({ member, outcome: 'failed' });
    if (former === undefined) {
      state.failure = `${which} could not be brought to cluster "${member}", where the pod is to run: ${what}. It is tried again by itself.`;
      logger.warn({ pod: podKey }, state.failure);
      onReady(podKey);
      return;
    }
    const message = `${which} could not be refreshed in cluster "${member}": ${what}. The old one is used until it ends; it is tried again by itself.`;
    logger.warn({ pod: podKey }, message);
    events.record(podSubject(pod), 'Warning', 'TokenNotRefreshed', message);
  }

  /**
   * Removes tokens whose pod is gone from both clusters, and those of a pod that are not where its copy is.
   * @param home where its tokens belong; undefined: nowhere any more
   */
  async #cleanOutside(
    home: string | undefined,
    id: string,
    signal: AbortSignal,
  ): Promise<undefined | { requeueAfterMs: number }> {
    if (!this.#complete) return undefined;
    const [podKey, uid] = partsOf(id);
    const places = this.#places.get(id) ?? new Set();
    let again: { requeueAfterMs: number } | undefined;
    for (const place of places) {
      if (place === home) continue;
      if (!this.#o.copies.knowledge('Secret', place).known) {
        again ??= { requeueAfterMs: FIRST_RETRY_MS };
        continue;
      }
      const secret = this.#secretIn(place, podKey, uid);
      if (secret === undefined) places.delete(place);
      else if (isOfOther(secret, this.#o)) again ??= { requeueAfterMs: OTHERS_AGAIN_MS };
      // When the pod is gone `release` comes, or a look at the tokens of a former pod.
      else if (this.#o.placeOf(ownerOfTokens(secret)?.node ?? '', podKey, uid) !== place) {
        await this.#o.copies.remove(secret, signal);
        places.delete(place);
      }
    }
    if (home === undefined && places.size === 0) this.#forget(podKey, uid);
    return again;
  }

  #forget(podKey: string, uid: string): void {
    this.#states.delete(idOf(podKey, uid));
    this.#places.delete(idOf(podKey, uid));
    const uids = this.#uids.get(podKey);
    uids?.delete(uid);
    if (uids?.size === 0) this.#uids.delete(podKey);
  }
}

/** Which token could not be had. */
class TokenRefusal extends Error {
  constructor({ audience }: TokenSource, cause: unknown) {
    super(`The service account token${audience === '' ? '' : ` for audience "${audience}"`}`, { cause });
  }
}

function newState(): State {
  return { written: undefined, failures: 0, failure: undefined };
}

/** Names have no space. */
function idOf(podKey: string, uid: string): string {
  return `${podKey} ${uid}`;
}

function partsOf(id: string): [podKey: string, uid: string] {
  const [podKey = '', uid = ''] = id.split(' ');
  return [podKey, uid];
}
