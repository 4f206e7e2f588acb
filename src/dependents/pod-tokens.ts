import type { Logger } from 'pino';
import { isFinished } from '../api/pod-phase.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isAlreadyExists, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { type KubeObject, keyOf, splitKey } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { CA_KEY, tokenSecretName, tokenSourcesOf, type TokenSource, wantsCa } from '../pods/translate-tokens.ts';
import { type Caretaker, isOfOther, OTHERS_AGAIN_MS } from './caretaker.ts';
import type { CopyRecord } from './copy.ts';
import type { CopyStore } from './member-copies.ts';
import type { TokenMetrics } from './token-metrics.ts';
import { withoutSecretValues } from './secret-words.ts';
import { readHostCa, requestToken } from './token-request.ts';
import { ownerOfTokens, refreshTimeOf, tokenSecretFor } from './token-secret.ts';
import type { Readiness } from './verdict.ts';

export interface PodTokensOptions extends Caretaker {
  hostId: string;
  copies: CopyStore;
  memberNamespaceOf(hostNamespace: string): string | undefined;
  /** The identity of a virtual node in the host. */
  clientOf(node: string): KubeClient;
  /** A pod of the host that is bound to one of the member's virtual nodes. */
  hostPod(podKey: string): Pod | undefined;
  /** Whether a pod that was made in mode Host for that host pod is in the member. */
  isInMember(node: string, podKey: string, uid: string): boolean;
  /** Whether the member is to have tokens of the host at all, as things are now. */
  admitted(): boolean;
  /** A pod that was not ready may be so now, or for another reason. */
  onReady: (podKey: string) => void;
  mayWrite(): boolean;
  events: Pick<EventRecorder, 'record'>;
  metrics?: TokenMetrics;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics;
  /** Wall clock in ms. */
  clock?: () => number;
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
  /** When tokens were written last, and when they are to be replaced, in ms. */
  written: { at: number; refreshAt: number } | undefined;
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
  readonly #queue: WorkQueue;
  /** By {@link idOf}, of pods that are to have tokens. */
  readonly #states = new Map<string, State>();
  /** UIDs of pods that may have tokens in the member, by key of the host pod. */
  readonly #uids = new Map<string, Set<string>>();
  #complete = false;

  constructor(options: PodTokensOptions) {
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#queue = new WorkQueue({
      name: `tokens-${options.member}`,
      concurrency: 8,
      handler: (id, signal) => this.#handle(id, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      logger: options.logger,
      ...(options.queueMetrics === undefined ? {} : { metrics: options.queueMetrics }),
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
    if (this.#isWritten(state) || this.#secretOf(podKey, uid) !== undefined) return { ready: true };
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
    this.lookAgain();
  }

  /** Whether the member is to have tokens may have changed. */
  lookAgain(): void {
    for (const copy of this.#o.copies.values()) this.#seen(copy);
    for (const id of this.#states.keys()) this.#queue.add(id);
  }

  #seen(copy: CopyRecord): void {
    const owner = ownerOfTokens(copy);
    if (owner === undefined) return;
    this.#note(owner.podKey, owner.uid);
    this.#queue.add(idOf(owner.podKey, owner.uid));
  }

  #note(podKey: string, uid: string): Set<string> {
    const uids = this.#uids.get(podKey) ?? new Set();
    this.#uids.set(podKey, uids.add(uid));
    return uids;
  }

  #isWritten({ written }: State): boolean {
    return written !== undefined && this.#clock() - written.at < WRITTEN_MS;
  }

  #secretOf(podKey: string, uid: string): CopyRecord | undefined {
    const memberNamespace = this.#o.memberNamespaceOf(splitKey(podKey).namespace ?? '');
    if (memberNamespace === undefined) return undefined;
    const found = this.#o.copies.get('Secret', memberNamespace, tokenSecretName(uid));
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return undefined;
    return ownerOfTokens(found)?.podKey === podKey ? found : undefined;
  }

  async #handle(id: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    if (!this.#o.mayWrite()) return { requeueAfterMs: 1_000 };
    const [podKey, uid] = partsOf(id);
    const memberNamespace = this.#o.memberNamespaceOf(splitKey(podKey).namespace ?? '');
    if (memberNamespace === undefined) return undefined;
    if (!this.#o.copies.knowledge('Secret', memberNamespace).known) return { requeueAfterMs: FIRST_RETRY_MS };
    const secret = this.#secretOf(podKey, uid);
    const pod = this.#o.hostPod(podKey);
    if (pod?.metadata.uid !== uid) return await this.#clean(podKey, uid, secret, signal);
    // A pod that ended needs none any more, and keeps those it has until it is gone.
    if (isFinished(pod)) return undefined;
    const state = this.#states.get(id);
    const isWritten = state !== undefined && this.#isWritten(state);
    if (secret === undefined && !isWritten) {
      if (state === undefined && !this.#o.isInMember(pod.spec.nodeName ?? '', podKey, uid)) return undefined;
      return await this.#bring(pod, secret, memberNamespace, signal);
    }
    this.#o.onReady(podKey);
    if (secret === undefined) return { requeueAfterMs: WRITTEN_MS };
    const rest = Math.max(refreshTimeOf(secret), state?.written?.refreshAt ?? 0) - this.#clock();
    if (rest > 0) return { requeueAfterMs: Math.min(rest, LONGEST_MS) };
    return await this.#bring(pod, secret, memberNamespace, signal);
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
      const at = this.#clock();
      const refreshAt = at + Math.min(lifeMs * REFRESH_AT, LONGEST_MS);
      secret = tokenSecretFor(pod, { hostId, member, memberNamespace, refreshAt, values }, former);
      await (former === undefined ? copies.create('Secret', secret, signal) : copies.replace('Secret', secret, signal));
      Object.assign(state, { written: { at, refreshAt }, failures: 0, failure: undefined });
      metrics?.tokens.inc({ member, outcome: 'issued' });
      onReady(podKey);
      return { requeueAfterMs: Math.min(refreshAt - at, WRITTEN_MS) };
    } catch (error) {
      signal.throwIfAborted();
      const cause = error instanceof TokenRefusal ? error.cause : error;
      const passing = [isConflict, isNotFound, isAlreadyExists, isForbidden].some((is) => is(cause));
      state.failures += 1;
      if (!passing || state.failures > LATE_ANSWERS) this.#tell(pod, former, state, error, secret);
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
  #tell(pod: Pod, former: CopyRecord | undefined, state: State, error: unknown, secret: KubeObject | undefined): void {
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

  /** Removes tokens whose pod is gone from both clusters. */
  async #clean(
    podKey: string,
    uid: string,
    secret: CopyRecord | undefined,
    signal: AbortSignal,
  ): Promise<undefined | { requeueAfterMs: number }> {
    if (!this.#complete) return undefined;
    if (secret === undefined) {
      this.#states.delete(idOf(podKey, uid));
      const uids = this.#uids.get(podKey);
      uids?.delete(uid);
      if (uids?.size === 0) this.#uids.delete(podKey);
      return undefined;
    }
    if (isOfOther(secret, this.#o)) return { requeueAfterMs: OTHERS_AGAIN_MS };
    // When that one is gone `release` comes, or a look at the tokens of a former pod.
    if (this.#o.isInMember(ownerOfTokens(secret)?.node ?? '', podKey, uid)) return undefined;
    await this.#o.copies.remove(secret, signal);
    return undefined;
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
