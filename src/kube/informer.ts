import type { Logger } from 'pino';
import { accountOf, type CacheAccount } from './cache-account.ts';
import type { CacheShare } from './cache-room.ts';
import type { KubeClient } from './client.ts';
import { describeError } from './errors.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import type { Selection } from './list-pages.ts';
import type { KubeObject } from './object.ts';
import { keyOf } from './object.ts';
import { isSame, ObjectStore, type DeleteEvidence } from './object-store.ts';
import type { ReflectorTimings } from './reflector-timings.ts';
import { Reflector } from './reflector.ts';
import type { Resource } from './resource.ts';

export interface InformerOptions<T extends KubeObject> extends Selection {
  client: KubeClient;
  resource: Resource;
  /**
   * What to keep of each object, before it is cached. Must keep metadata.name, namespace, uid and resourceVersion; may
   * change and return the object it gets. An object it throws for keeps its former state in the cache.
   */
  transform?: (raw: KubeObject) => T;
  /** Secondary indexes: name to the values an object is found under. */
  indexes?: Record<string, (o: T) => readonly string[]>;
  /** What it may take of memory; default: what its client says. */
  share?: CacheShare;
  /** Where that is counted, and given back when it ends; default: an account of its own. */
  account?: CacheAccount | undefined;
  logger?: Logger | undefined;
  metrics?: InformerMetrics | undefined;
  /** Milliseconds, monotonic. */
  monotonic?: () => number;
  random?: () => number;
  timings?: Partial<ReflectorTimings>;
  /** Errors that are neither logged as warnings nor told as {@link Informer.problem}; `failures` in a row, from 1. */
  passing?: (error: unknown, failures: number) => boolean;
}

export interface InformerHandler<T> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  /** `watched`: the API server said so. `relisted`: a trusted list no longer holds it. `object` is its last known state. */
  deleted?(object: T, evidence: DeleteEvidence): void;
  /** The list that was begun last is what there is: these keys. Called after what it changed. */
  listed?(keys: Pick<ReadonlySet<string>, 'has'>): void;
}

/**
 * A cache of a collection that follows the API server (see {@link Reflector}), with handlers and indexes. Objects are
 * shared: nobody may change them. The cache never shows less than what was once believed because of an error; how old
 * it is, `staleMs` tells.
 */
export class Informer<T extends KubeObject> {
  readonly #o: InformerOptions<T>;
  readonly #store: ObjectStore<T>;
  readonly #reflector: Reflector<T>;
  readonly #account: CacheAccount | undefined;
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #labels: { cluster: string; resource: string };
  #synced = false;
  #waiters: (() => void)[] = [];

  constructor(o: InformerOptions<T>) {
    this.#o = o;
    this.#labels = { cluster: o.client.cluster, resource: o.resource.plural };
    const account = o.account ?? accountOf(o.client, o.resource, o.share);
    this.#account = account;
    this.#store = new ObjectStore<T>(
      {
        added: (object) => this.#notify((handler) => handler.added?.(object)),
        updated: (object, old) => this.#notify((handler) => handler.updated?.(object, old)),
        deleted: (object, evidence) => this.#notify((handler) => handler.deleted?.(object, evidence)),
      },
      this.#containedIndexes(o.indexes ?? {}),
      account,
    );
    const store = this.#store;
    this.#reflector = new Reflector<T>({
      ...o,
      account,
      sink: {
        get size() {
          return store.size;
        },
        values: () => store.values(),
        same: (raw) => {
          const known = store.get(keyOf(raw));
          return known !== undefined && isSame(known, raw) ? known : undefined;
        },
        transform: (raw) => this.#transform(raw),
        put: (object) => store.put(object),
        delete: (object) => store.delete(object),
        replace: (listed) => {
          const differences = store.replace(listed);
          this.#markSynced();
          this.#notify((handler) => handler.listed?.(listed));
          return differences;
        },
      },
    });
  }

  /** Follows the collection until the signal; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const unwatch = this.#o.metrics?.watch(this.#labels, this);
    try {
      await this.#reflector.run(signal);
    } finally {
      unwatch?.();
      this.#account?.clear();
    }
  }

  /** See {@link Reflector.retryNow}. */
  retryNow(): void {
    this.#reflector.retryNow();
  }

  /** A complete, trusted state has been cached and told to the handlers. Stays true. */
  get hasSynced(): boolean {
    return this.#synced;
  }

  /** Rejects with the signal's reason when that comes first. */
  whenSynced(signal: AbortSignal): Promise<void> {
    if (this.#synced) {
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiters = this.#waiters.filter((waiter) => waiter !== done);
        reject(signal.reason as Error);
      };
      const done = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      if (signal.aborted) {
        abort();
        return;
      }
      signal.addEventListener('abort', abort, { once: true });
      this.#waiters.push(done);
    });
  }

  /** By `namespace/name`, or `name` for cluster-scoped kinds. */
  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  values(): IterableIterator<T> {
    return this.#store.values();
  }

  get size(): number {
    return this.#store.size;
  }

  /** The values that objects are found under now. */
  indexValues(index: string): Iterable<string> {
    return this.#store.indexValues(index);
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  /** The same, one by one. */
  eachByIndex(index: string, value: string): Iterable<T> {
    return this.#store.eachByIndex(index, value);
  }

  /**
   * Adds a handler, which at once gets `added` for everything cached. Handlers run inside the event: they must be quick
   * (put a key into a queue). What they throw is logged and counted. Returns the function that removes the handler.
   */
  on(handler: InformerHandler<T>): () => void {
    for (const object of this.#store.values()) {
      this.#contain('handler', () => handler.added?.(object));
    }
    this.#handlers.add(handler);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  /** Milliseconds since the watch last proved to be alive (see Reflector): up to about 40,000 in peace. */
  staleMs(): number {
    return this.#reflector.staleMs();
  }

  /** Why the collection cannot be read now, in words for people; undefined while all is well. */
  get problem(): string | undefined {
    return this.#reflector.trouble.problem;
  }

  /** The same as far as it matters to who relies on the cache: that is not complete yet, or has been refused for two minutes. */
  get unread(): string | undefined {
    return this.#synced ? this.lastingRefusal : this.problem;
  }

  /** The same of a refusal that has lasted for two minutes, complete or not. */
  get lastingRefusal(): string | undefined {
    return this.#reflector.trouble.lastingRefusal;
  }

  /** Which limit the collection has met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.#reflector.trouble.limit;
  }

  /** Objects that are left out because they are not what the API promises, in words; undefined while none is. */
  get leftOut(): string | undefined {
    return this.#reflector.leftOut;
  }

  /** The newest resourceVersion that a list, an event or a bookmark brought; undefined before the first list. */
  get resourceVersion(): string | undefined {
    return this.#reflector.resourceVersion;
  }

  /** How many lists were begun so far. */
  get listsBegun(): number {
    return this.#reflector.listsBegun;
  }

  #markSynced(): void {
    this.#synced = true;
    for (const waiter of this.#waiters.splice(0)) {
      waiter();
    }
  }

  #transform(raw: KubeObject): T | undefined {
    const { transform } = this.#o;
    return transform === undefined ? (raw as T) : this.#contain('transform', () => transform(raw), keyOf(raw));
  }

  #containedIndexes(indexes: Record<string, (o: T) => readonly string[]>) {
    const contained: Record<string, (o: T) => readonly string[]> = {};
    for (const [name, values] of Object.entries(indexes)) {
      contained[name] = (object) => this.#contain('index', () => values(object), keyOf(object)) ?? [];
    }
    return contained;
  }

  #notify(call: (handler: InformerHandler<T>) => unknown): void {
    for (const handler of this.#handlers) {
      this.#contain('handler', () => call(handler));
    }
  }

  /** Other people's code may throw, or be async although it should not; neither may hurt the cache. */
  #contain<R>(what: string, run: () => R, key?: string): R | undefined {
    try {
      const result = run();
      if (result instanceof Promise) {
        result.catch((e: unknown) => this.#report(what, e, key));
      }
      return result;
    } catch (e) {
      this.#report(what, e, key);
      return undefined;
    }
  }

  #report(what: string, error: unknown, key: string | undefined): void {
    this.#o.metrics?.handlerErrors.inc(this.#labels);
    this.#o.logger?.error(
      { ...this.#labels, key, err: error },
      `an informer's ${what} failed: ${describeError(error)}`,
    );
  }
}
