import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isForbidden, isNotFound } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, type KubeObject, withoutManagedFields } from '../kube/object.ts';
import { get } from '../kube/verbs.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { RESOURCES } from './copy.ts';
import type { DependentKind } from '../pods/references.ts';

/** What is known of one object of the host. `problem`: why it cannot be read, in words for people. */
export type HostState =
  | { state: 'unknown'; problem: string | undefined }
  | { state: 'absent' }
  | { state: 'present'; object: KubeObject };

export interface HostRef {
  kind: DependentKind;
  namespace: string;
  name: string;
}

/** In the place of a virtual node: the manager itself, which may read what somebody granted it. */
export const BY_MANAGER = '';

/** Objects of the host, one by one. */
export interface HostObjectSource {
  /**
   * Begins to follow an object that a pod on that virtual node refers to, or {@link BY_MANAGER} one that no pod on the
   * host does, until `stop`. `changed` is called whenever `current` may answer something new.
   */
  follow(ref: HostRef, node: string, changed: () => void): FollowedObject;
  /** Reads past all caches. */
  confirmAbsent(ref: HostRef, signal: AbortSignal): Promise<boolean>;
}

export interface FollowedObject {
  current(): HostState;
  /** Whether a pod on the node still refers to the object, as from the start; else the node may not read it anew. */
  use(inUse: boolean): void;
  stop(): void;
}

export interface HostObjectsOptions {
  /**
   * The identity of a virtual node, which may read what its own pods refer to (Node authorizer), and no more; that of the
   * manager for {@link BY_MANAGER}.
   */
  clientOf: (node: string) => KubeClient;
  /** Asks whether the host is still the cluster it was. Default: it is. */
  confirmHost?: () => Promise<boolean>;
  /** Objects followed by a watch each, which is a connection each; 250. Those beyond are read every `pollMs`. */
  maxWatches?: number;
  /** 10,000 ms. */
  pollMs?: number;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

interface Followed {
  ref: HostRef;
  /** Who wants to know, each with the virtual node on whose behalf. */
  listeners: Map<() => void, { node: string; inUse: boolean }>;
  watch: { informer: Informer<KubeObject>; end: AbortController; node: string } | undefined;
  /** What the last read said, while there is no watch or it has not synced. */
  read: HostState;
  /** No pod refers to it for the moment, so that no node may read it. */
  resting: boolean;
}

/**
 * The host's authorizer learns of a pod that is bound to a node, or gone, when we do: it may be the later one. So many
 * refusals in a row are no news.
 */
const LATE_ANSWERS = 3;
/** Between two tries to read an object that cannot be read, at most, in ms; more or less by half. */
const RETRY_MS = 10_000;

/**
 * ConfigMaps and Secrets of the host that somebody needs, each by its own name: nothing else is ever read, which is
 * also all that a node's identity is allowed to read (Node authorizer). Shared by all members of a host.
 */
export class HostObjects implements HostObjectSource {
  readonly #o: HostObjectsOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #polls: WorkQueue;
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;
  #watches = 0;

  constructor(options: HostObjectsOptions) {
    this.#o = options;
    this.#polls = new WorkQueue({
      name: 'host-objects',
      concurrency: 4,
      handler: (key, signal) => this.#poll(key, signal),
      backoff: { baseMs: 500, maxMs: 30_000 },
      logger: options.logger,
    });
  }

  follow(ref: HostRef, node: string, changed: () => void): FollowedObject {
    const key = `${ref.kind}/${ref.namespace}/${ref.name}`;
    let followed = this.#followed.get(key);
    if (followed === undefined) {
      const read: HostState = { state: 'unknown', problem: undefined };
      followed = { ref, listeners: new Map(), watch: undefined, read, resting: false };
      this.#followed.set(key, followed);
    }
    const own = followed;
    const isNew = own.listeners.size === 0;
    const listener = (): void => changed();
    const follower = { node, inUse: true };
    own.listeners.set(listener, follower);
    if (!isNew) this.#settle(key, own);
    else if (this.#signal !== undefined) this.#begin(key, own);
    return {
      current: () => currentState(own),
      use: (inUse) => {
        follower.inUse = inUse;
        this.#settle(key, own);
      },
      stop: () => {
        own.listeners.delete(listener);
        if (this.#followed.get(key) !== own) return;
        if (own.listeners.size === 0) this.#forget(key, own);
        else this.#settle(key, own);
      },
    };
  }

  async confirmAbsent(ref: HostRef, signal: AbortSignal): Promise<boolean> {
    try {
      await get(this.#clientOf(ref), RESOURCES[ref.kind], ref, { signal });
      return false;
    } catch (error) {
      // Another cluster lacks it, too, and that means nothing (I3).
      if (isNotFound(error)) return (await this.#o.confirmHost?.()) ?? true;
      throw error;
    }
  }

  /** Follows until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const [key, followed] of this.#followed) if (!followed.resting) this.#begin(key, followed);
    await this.#polls.run(signal);
    for (const { watch } of this.#followed.values()) watch?.end.abort();
    await Promise.all(this.#running);
  }

  #begin(key: string, followed: Followed): void {
    if (this.#watches >= (this.#o.maxWatches ?? 250)) this.#polls.add(key);
    else this.#watch(followed);
  }

  #watch(followed: Followed): void {
    const { ref } = followed;
    const { clientOf, logger, metrics } = this.#o;
    const node = nodeOf(followed);
    const informer = new Informer<KubeObject>({
      client: clientOf(node),
      resource: RESOURCES[ref.kind],
      namespace: ref.namespace,
      fieldSelector: `metadata.name=${ref.name}`,
      transform: withoutManagedFields,
      // One object that is not there is no reason for doubt, and pods wait for the answer.
      // What is refused may be granted any time.
      timings: { confirmMs: 50, backoffMaxMs: RETRY_MS },
      passing: (error, failures) => isForbidden(error) && (failures <= LATE_ANSWERS || !isUsed(followed)),
      logger,
      metrics,
    });
    const changed = (): void => notify(followed);
    informer.on({ added: changed, updated: changed, deleted: changed });
    const end = new AbortController();
    if (this.#signal?.aborted === true) end.abort();
    followed.watch = { informer, end, node };
    this.#watches += 1;
    // Without an object there is no event that tells of the first answer.
    void informer.whenSynced(end.signal).then(changed, () => undefined);
    const run = informer.run(end.signal).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  /** Lets those read it that {@link nodeOf} says; while nobody needs it, nobody: the host would refuse that. */
  #settle(key: string, followed: Followed): void {
    const { watch } = followed;
    const nodes = new Set([...followed.listeners.values()].flatMap(({ node, inUse }) => (inUse ? [node] : [])));
    if (nodes.size === 0) {
      if (!followed.resting) this.#rest(followed);
    } else if (followed.resting) {
      // What changed meanwhile is not known.
      Object.assign(followed, { resting: false, read: { state: 'unknown', problem: undefined } });
      if (this.#signal !== undefined) this.#begin(key, followed);
    } else if (watch !== undefined && (!nodes.has(watch.node) || (watch.node === BY_MANAGER && nodes.size > 1))) {
      followed.read = currentState(followed);
      this.#unwatch(followed);
      this.#watch(followed);
    }
  }

  #rest(followed: Followed): void {
    followed.read = currentState(followed);
    followed.resting = true;
    this.#unwatch(followed);
  }

  #unwatch(followed: Followed): void {
    if (followed.watch === undefined) return;
    followed.watch.end.abort();
    followed.watch = undefined;
    this.#watches -= 1;
  }

  #clientOf({ kind, namespace, name }: HostRef): KubeClient {
    const followed = this.#followed.get(`${kind}/${namespace}/${name}`);
    if (followed === undefined) throw new Error(`nobody refers to ${kind} ${namespace}/${name}`);
    return this.#o.clientOf(nodeOf(followed));
  }

  #forget(key: string, followed: Followed): void {
    this.#followed.delete(key);
    this.#polls.forget(key);
    this.#unwatch(followed);
  }

  async #poll(key: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    const followed = this.#followed.get(key);
    if (followed === undefined || followed.resting || followed.watch !== undefined) return undefined;
    if (this.#watches < (this.#o.maxWatches ?? 250)) {
      this.#watch(followed);
      return undefined;
    }
    const before = followed.read;
    followed.read = await this.#read(followed, signal);
    if (!sameState(before, followed.read)) notify(followed);
    return { requeueAfterMs: this.#o.pollMs ?? 10_000 };
  }

  async #read(followed: Followed, signal: AbortSignal): Promise<HostState> {
    const { ref, read } = followed;
    try {
      const object = await get(this.#o.clientOf(nodeOf(followed)), RESOURCES[ref.kind], ref, { signal });
      return { state: 'present', object: withoutManagedFields(object) };
    } catch (error) {
      if (isNotFound(error)) return { state: 'absent' };
      // What was read before still stands.
      return read.state === 'unknown' ? { state: 'unknown', problem: describeError(error) } : read;
    }
  }
}

function currentState({ ref, watch, read }: Followed): HostState {
  if (watch === undefined) return read;
  if (!watch.informer.hasSynced) {
    return read.state === 'unknown' ? { state: 'unknown', problem: watch.informer.problem } : read;
  }
  const object = watch.informer.get(keyFor(ref.namespace, ref.name));
  return object === undefined ? { state: 'absent' } : { state: 'present', object };
}

/** The node that reads it: one with a pod that refers to it. The manager needs a grant, so it is the last to be asked. */
function nodeOf({ listeners }: Followed): string {
  const all = [...listeners.values()];
  const using = all.filter(({ inUse }) => inUse);
  return (using.find(({ node }) => node !== BY_MANAGER) ?? using[0] ?? all[0])?.node ?? BY_MANAGER;
}

function isUsed({ listeners }: Followed): boolean {
  return [...listeners.values()].some(({ inUse }) => inUse);
}

function sameState(a: HostState, b: HostState): boolean {
  if (a.state === 'present' && b.state === 'present') {
    return (
      a.object.metadata.uid === b.object.metadata.uid &&
      a.object.metadata.resourceVersion === b.object.metadata.resourceVersion
    );
  }
  if (a.state === 'unknown' && b.state === 'unknown') return a.problem === b.problem;
  return a.state === b.state;
}

function notify(followed: Followed): void {
  for (const listener of followed.listeners.keys()) listener();
}
