import type { Logger } from 'pino';
import { HOST_LABEL } from '../api/marks.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isForbidden, isTransient } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { readListPage } from '../kube/list-page.ts';
import { resourcePath } from '../kube/resource.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { type CopyKind, type CopyRecord, recordOfCopy, RESOURCES } from './copy.ts';

/** Copies of one kind in one namespace of the member: as far as the cache knows them. `lasts`: the problem is a refusal of two minutes. */
export type Knowledge = { known: true } | { known: false; problem: string | undefined; lasts?: boolean };

/** A cache of the member's namespaces. */
export interface NamespaceCache {
  readonly hasSynced: boolean;
  get(name: string): Namespace | undefined;
  on(handler: {
    added(namespace: Namespace): void;
    updated(namespace: Namespace, old: Namespace): void;
    deleted(namespace: Namespace): void;
  }): () => void;
}

export interface CopyInformersOptions {
  client: KubeClient;
  hostId: string;
  namespaces: NamespaceCache;
  /** Whether a namespace of the member is ours: made by us, or lent. */
  isUsable: (namespace: Namespace) => boolean;
  /** A copy came, changed or went. */
  changed: (copy: CopyRecord) => void;
  /** A place that was asked for and not known is known now. */
  known: (kind: CopyKind, namespace: string) => void;
  /**
   * What namespaces of ours are looked through for that nobody has asked about. Default: ConfigMaps and Secrets; claims are
   * found by the volumes of the host that stand for them.
   */
  sought?: readonly CopyKind[];
  /** A place nobody asked for, without copies, is watched no longer than this; 300,000 ms. */
  idleMs?: number;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

interface Place {
  kind: CopyKind;
  namespace: string;
  /** When somebody needed it last, in ms. */
  askedAt: number;
  watch: { informer: Informer<CopyRecord>; end: AbortController } | undefined;
}

const KINDS = ['ConfigMap', 'Secret', 'PersistentVolumeClaim'] as const;
const SOUGHT: readonly CopyKind[] = ['ConfigMap', 'Secret'];
const IDLE_MS = 300_000;
const RETRY_MS = 30_000;

/**
 * Follows our copies namespace by namespace, so that rights in the namespaces that a member lends are all it takes: a
 * place is watched from the first question about it, or when a look at the start finds copies of a former life there.
 * Namespaces that do not exist or are not ours to use hold no copies of ours and are never asked for.
 */
export class CopyInformers {
  readonly #o: CopyInformersOptions;
  readonly #places = new Map<string, Place>();
  readonly #queue: WorkQueue;
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(options: CopyInformersOptions) {
    this.#o = options;
    this.#queue = new WorkQueue({
      name: `copies-${options.client.cluster}`,
      concurrency: 4,
      handler: (key, signal) => this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: RETRY_MS },
      logger: options.logger,
    });
  }

  /** Works until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const { namespaces, isUsable } = this.#o;
    const off = namespaces.on({
      added: ({ metadata: { name } }) => this.#namespaceCame(name),
      updated: (now, old) => {
        if (isUsable(now) && !isUsable(old)) this.#namespaceCame(now.metadata.name);
      },
      deleted: ({ metadata: { name } }) => this.#namespaceWent(name),
    });
    for (const place of this.#places.values()) this.#follow(place);
    await this.#queue.run(signal);
    off();
    for (const { watch } of this.#places.values()) watch?.end.abort();
    await Promise.all(this.#running);
  }

  /** What is known of a place; from the first question on it is followed. */
  knowledge(kind: CopyKind, namespace: string): Knowledge {
    const place = this.#place(kind, namespace);
    place.askedAt = monotonic();
    this.#follow(place);
    if (place.watch !== undefined) {
      const { hasSynced, problem, lastingRefusal } = place.watch.informer;
      if (hasSynced) return { known: true };
      return { known: false, problem, ...(lastingRefusal === undefined ? {} : { lasts: true }) };
    }
    return this.hasBegun ? { known: true } : { known: false, problem: undefined };
  }

  /** Whether it is known which namespaces of the member can hold copies. */
  get hasBegun(): boolean {
    return this.#signal !== undefined && this.#o.namespaces.hasSynced;
  }

  /** Like {@link knowledge}, without following anything. */
  isKnown(kind: CopyKind, namespace: string): boolean {
    return this.hasBegun && this.#places.get(keyOf(kind, namespace))?.watch?.informer.hasSynced !== false;
  }

  get(kind: CopyKind, namespace: string, name: string): CopyRecord | undefined {
    return this.#places.get(keyOf(kind, namespace))?.watch?.informer.get(`${namespace}/${name}`);
  }

  *values(): Iterable<CopyRecord> {
    for (const { watch } of this.#places.values()) if (watch !== undefined) yield* watch.informer.values();
  }

  #place(kind: CopyKind, namespace: string): Place {
    const key = keyOf(kind, namespace);
    let place = this.#places.get(key);
    if (place === undefined) {
      place = { kind, namespace, askedAt: monotonic(), watch: undefined };
      this.#places.set(key, place);
      this.#queue.addAfter(key, this.#idleMs);
    }
    return place;
  }

  get #idleMs(): number {
    return this.#o.idleMs ?? IDLE_MS;
  }

  /** Begins to watch the place, if it can hold copies. */
  #follow(place: Place): void {
    const { client, hostId, logger, metrics, changed, known } = this.#o;
    const { kind, namespace } = place;
    if (place.watch !== undefined || this.#signal === undefined || this.#signal.aborted) return;
    if (!this.#mayHoldCopies(namespace)) return;
    const informer = new Informer<CopyRecord>({
      client,
      resource: RESOURCES[kind],
      namespace,
      labelSelector: `${HOST_LABEL}=${hostId}`,
      transform: (raw) => recordOfCopy(kind, raw),
      logger,
      metrics,
    });
    informer.on({ added: changed, updated: changed, deleted: changed });
    const end = new AbortController();
    place.watch = { informer, end };
    void informer.whenSynced(end.signal).then(
      () => known(kind, namespace),
      () => undefined,
    );
    const run = informer.run(end.signal).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  #mayHoldCopies(namespace: string): boolean {
    const found = this.#o.namespaces.get(namespace);
    return found !== undefined && this.#o.isUsable(found);
  }

  #unfollow(place: Place): void {
    const { watch } = place;
    if (watch === undefined) return;
    place.watch = undefined;
    watch.end.abort();
    for (const copy of watch.informer.values()) this.#o.changed(copy);
  }

  #namespaceCame(namespace: string): void {
    const { sought = SOUGHT } = this.#o;
    for (const kind of KINDS) {
      const place = this.#places.get(keyOf(kind, namespace));
      if (place !== undefined) this.#follow(place);
      else if (sought.includes(kind)) this.#queue.add(keyOf(kind, namespace));
    }
  }

  /** With it went the copies, and perhaps the right to look: the cache would show them for ever. */
  #namespaceWent(namespace: string): void {
    for (const kind of KINDS) {
      const place = this.#places.get(keyOf(kind, namespace));
      if (place !== undefined) this.#unfollow(place);
    }
  }

  /** Ends what nobody needs; looks once into a namespace of ours that nobody has asked about, for what was left there. */
  async #look(key: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    const [kind, namespace = ''] = key.split('/');
    if (!isCopyKind(kind)) return undefined;
    const place = this.#places.get(key);
    if (place !== undefined) {
      const rest = place.askedAt + this.#idleMs - monotonic();
      if (rest > 0 || (place.watch?.informer.size ?? 0) > 0) return { requeueAfterMs: Math.max(rest, RETRY_MS) };
      this.#unfollow(place);
      this.#places.delete(key);
      return undefined;
    }
    if (!this.#mayHoldCopies(namespace)) return undefined;
    try {
      if (await this.#holdsCopies(kind, namespace, signal)) this.#follow(this.#place(kind, namespace));
    } catch (error) {
      signal.throwIfAborted();
      const problem = describeError(error);
      this.#o.logger.debug({ kind, namespace }, `not known whether copies were left in a namespace: ${problem}`);
      // A namespace that is lent in name only: pods that come there will be told.
      if (isForbidden(error)) return undefined;
      if (!isTransient(error)) throw error;
      return { requeueAfterMs: RETRY_MS };
    }
    return undefined;
  }

  async #holdsCopies(kind: CopyKind, namespace: string, signal: AbortSignal): Promise<boolean> {
    const { client, hostId } = this.#o;
    const path = resourcePath(RESOURCES[kind], namespace);
    const query = { labelSelector: `${HOST_LABEL}=${hostId}`, limit: 1 };
    const answer = await client.request({ path, query, signal });
    return readListPage({ cluster: client.cluster, method: 'GET', path }, RESOURCES[kind], answer).items.length > 0;
  }
}

/** Kinds have no slash, nor have namespaces. */
function keyOf(kind: CopyKind, namespace: string): string {
  return `${kind}/${namespace}`;
}

function isCopyKind(kind: string | undefined): kind is CopyKind {
  return KINDS.some((known) => known === kind);
}
