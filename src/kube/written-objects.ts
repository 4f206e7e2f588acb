import type { Logger } from 'pino';
import { accountOf, type CacheAccount } from './cache-account.ts';
import type { KubeClient } from './client.ts';
import { isConflict, isNotFound, isUidGone } from './errors.ts';
import { ifThere } from './if-there.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import { Informer } from './informer.ts';
import { LimitError } from './limit-error.ts';
import { keyFor, keyOf, type KubeObject, type ObjectMeta, withoutManagedFields } from './object.ts';
import type { ReflectorTimings } from './reflector-timings.ts';
import type { Resource } from './resource.ts';
import { isOlder } from './resource-version.ts';
import { create, find, patch, remove, replace } from './verbs.ts';

/** Longest wait between tries to read them, which the account may have no right to do, in ms. */
const RETRY_MS = 60_000;

export interface WrittenObjectsOptions<T, V> {
  client: KubeClient;
  resource: Resource;
  /** Chooses what is followed. */
  labelSelector: string;
  /** What is kept of an object, and the subject that it stands for; undefined for one that is none of ours. */
  read: (object: T) => { subject: string; value: V } | undefined;
  /** What of an object `read` gets, and caches hold. Default: all of it. */
  keep?: (object: T) => T;
  /** Called with the subject when something that stands for it came, changed or went. */
  changed: (subject: string) => void;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  timings?: Partial<ReflectorTimings>;
}

/** A request about the object of a key that has no answer yet. */
interface Asked<V> {
  readonly key: string;
  /** What was known when it was sent. */
  readonly before: Known<V> | undefined;
  /** UIDs of objects of that key that the watch has shown to be gone since. */
  readonly gone: Set<string>;
}

interface Known<V> {
  readonly metadata: ObjectMeta;
  readonly subject: string;
  readonly value: V;
}

/**
 * Objects of one kind that this program writes, by the subject that they stand for, and the requests that change them. What was
 * written counts before the watch shows it, as in client-go's MutationCache.
 */
export class WrittenObjects<T extends KubeObject, V> {
  readonly #o: WrittenObjectsOptions<T, V>;
  readonly #informer: Informer<T>;
  /** Of the informer; what was answered to a request and is not shown by the watch so far is ahead of it. */
  readonly #account: CacheAccount | undefined;
  readonly #objects = new Map<string, Known<V>>();
  readonly #bySubject = new Map<string, Set<string>>();
  /** Answered and not shown so far, by key, with how many lists had been begun by then: a later one without it says that it is gone. */
  readonly #unshown = new Map<string, number>();
  readonly #asked = new Set<Asked<V>>();

  constructor(options: WrittenObjectsOptions<T, V>) {
    const { client, resource, labelSelector, logger, metrics, timings } = options;
    this.#o = options;
    this.#account = accountOf(client, resource);
    this.#informer = new Informer<T>({
      client,
      resource,
      labelSelector,
      account: this.#account,
      transform: (raw) => this.#kept(raw as T),
      timings: { backoffMaxMs: RETRY_MS, ...timings },
      logger,
      metrics,
    });
  }

  /** Follows them until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#informer.on({
      added: (raw) => this.#shown(raw),
      updated: (raw, old) => this.#shown(raw, old),
      deleted: (raw) => this.#gone(raw),
      listed: (keys) => this.#listed(keys),
    });
    await this.#informer.run(signal);
    off();
  }

  get synced(): boolean {
    return this.#informer.hasSynced;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.#informer.unread;
  }

  /** Which limit of memory they have met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.#informer.limit;
  }

  get size(): number {
    return this.#objects.size;
  }

  values(): V[] {
    return [...this.#objects.values()].map(({ value }) => value);
  }

  subjects(): Iterable<string> {
    return this.#bySubject.keys();
  }

  /** What stands for a subject, in whatever namespaces. */
  of(subject: string): V[] {
    const keys = [...(this.#bySubject.get(subject) ?? [])];
    return keys.flatMap((key) => this.#objects.get(key)?.value ?? []);
  }

  /** Whether the object of that name stands for the subject, read past the cache, by the right to list. Undefined: there is none. */
  async isOurs(subject: string, { namespace, name }: ObjectMeta, signal: AbortSignal): Promise<boolean | undefined> {
    return await this.#ask(keyFor(namespace, name), async (asked) => {
      const found = await find<T>(this.#o.client, this.#o.resource, { namespace, name }, { signal });
      if (found === undefined) {
        this.#forgetIf(asked.key, asked.before?.metadata.uid);
        return undefined;
      }
      const isOurs = this.#o.read(found)?.subject === subject;
      if (isOurs) this.#answered(found, asked);
      return isOurs;
    });
  }

  /** @throws LimitError, with nothing sent, where there is no room for it: nor would the watch show it, and it would be made for ever. */
  async create(made: T, signal: AbortSignal): Promise<T> {
    const key = keyOf(made);
    this.#account?.checkAhead(key, this.#kept(made));
    return await this.#ask(key, async (asked) => {
      return this.#answered(await create(this.#o.client, this.#o.resource, made, { signal }), asked);
    });
  }

  /**
   * If it is still as `made` says by its resourceVersion.
   * @throws LimitError, with nothing sent, where there is no room for it: nor would the watch show it, and each further try would be a
   * conflict with this one. So is a conflict while the caches are full, as they may never show what it is about.
   */
  async replace(made: T, signal: AbortSignal): Promise<T> {
    const key = keyOf(made);
    this.#account?.checkAhead(key, this.#kept(made));
    return await this.#ask(
      key,
      async (asked) => this.#answered(await replace(this.#o.client, this.#o.resource, made, { signal }), asked),
      made.metadata.uid,
    );
  }

  /** A merge patch of the object, or of its `status`. */
  async patch(
    { namespace, name }: ObjectMeta,
    body: object,
    how: { subresource?: 'status'; fieldManager?: string },
    signal: AbortSignal,
  ): Promise<T> {
    const { client, resource } = this.#o;
    return await this.#ask(keyFor(namespace, name), async (asked) => {
      const merge = { ...how, type: 'merge' } as const;
      return this.#answered(await patch<T>(client, resource, { namespace, name }, body, merge, { signal }), asked);
    });
  }

  /** With the UID as precondition, and the version if `exactly` so. One that is gone already is no error. */
  async remove(
    { namespace, name, uid, resourceVersion }: ObjectMeta,
    signal: AbortSignal,
    exactly?: 'exactly',
  ): Promise<void> {
    const conditions = { uid, ...(exactly === undefined ? {} : { resourceVersion }) };
    const key = keyFor(namespace, name);
    const asking = this.#ask(
      key,
      async ({ before }) => {
        await remove(this.#o.client, this.#o.resource, { namespace, name }, conditions, { signal });
        this.#forgetIf(key, uid ?? before?.metadata.uid);
      },
      uid,
    );
    await ifThere(asking);
  }

  /** Sends a request about the object of a key; `uid`: it is about the one with that UID alone. */
  async #ask<R>(key: string, request: (asked: Asked<V>) => Promise<R>, uid?: string): Promise<R> {
    const asked: Asked<V> = { key, before: this.#objects.get(key), gone: new Set() };
    this.#asked.add(asked);
    try {
      return await request(asked);
    } catch (error) {
      if (isNotFound(error)) this.#forgetIf(key, asked.before?.metadata.uid);
      else if (isUidGone(error)) this.#forgetIf(key, uid);
      else if (isConflict(error) && this.limit !== undefined) throw new LimitError(this.limit, { cause: error });
      throw error;
    } finally {
      this.#asked.delete(asked);
    }
  }

  #kept(raw: T): T {
    const { keep } = this.#o;
    const object = withoutManagedFields(raw);
    return keep === undefined ? object : keep(object);
  }

  /** It counts as what caches hold of the cluster until the watch shows it. The member has it: without room for it only the watch tells. */
  #answered(raw: T, { key, gone }: Asked<V>): T {
    const object = this.#kept(raw);
    const { uid = '', resourceVersion } = object.metadata;
    // The watch was faster.
    if (gone.has(uid)) return object;
    if (this.#objects.has(key) && this.#informer.get(key)?.metadata.resourceVersion === resourceVersion) return object;
    if (this.#account?.hasRoomAhead(key, object) === false) return object;
    if (this.#put(object)) {
      this.#account?.setAhead(key, object);
      this.#unshown.set(key, this.#informer.listsBegun);
    }
    return object;
  }

  /** The informer goes back to an older state only with its cluster, as when that was restored from a backup. */
  #shown(object: T, old?: T): void {
    const isBack = old !== undefined && isOlder(object.metadata.resourceVersion, old.metadata.resourceVersion);
    if (isBack) this.#set(object);
    if (isBack || this.#put(object)) this.#noLongerAhead(keyOf(object));
  }

  /** What was answered before the list was begun, and is not on it, went before anything has shown it. */
  #listed(keys: Pick<ReadonlySet<string>, 'has'>): void {
    for (const [key, begun] of this.#unshown)
      if (begun < this.#informer.listsBegun && !keys.has(key)) this.#forget(key);
  }

  #noLongerAhead(key: string): void {
    this.#account?.forgetAhead(key);
    this.#unshown.delete(key);
  }

  /** Whether it is what is known now. */
  #put(object: T): boolean {
    const known = this.#objects.get(keyOf(object))?.metadata;
    const isSame = known?.uid === object.metadata.uid;
    if (isSame && isOlder(object.metadata.resourceVersion, known?.resourceVersion)) return false;
    return this.#set(object);
  }

  #set(raw: T): boolean {
    const key = keyOf(raw);
    const before = this.#objects.get(key);
    const found = this.#o.read(raw);
    if (before !== undefined && before.subject !== found?.subject) this.#forget(key);
    if (found === undefined) return false;
    this.#objects.set(key, { metadata: raw.metadata, ...found });
    const keys = this.#bySubject.get(found.subject) ?? new Set<string>();
    this.#bySubject.set(found.subject, keys.add(key));
    this.#o.changed(found.subject);
    return true;
  }

  /** One of the same name may have been made since. */
  #gone(raw: T): void {
    const key = keyOf(raw);
    const { uid = '' } = raw.metadata;
    for (const asked of this.#asked) if (asked.key === key) asked.gone.add(uid);
    if (this.#objects.get(key)?.metadata.uid === raw.metadata.uid) this.#forget(key);
  }

  /** The one with that UID is gone; another one of the name may have been made since. */
  #forgetIf(key: string, uid: string | undefined): void {
    if (uid !== undefined && this.#objects.get(key)?.metadata.uid === uid) this.#forget(key);
  }

  #forget(key: string): void {
    const known = this.#objects.get(key);
    if (known === undefined) return;
    this.#objects.delete(key);
    this.#noLongerAhead(key);
    const keys = this.#bySubject.get(known.subject);
    keys?.delete(key);
    if (keys?.size === 0) this.#bySubject.delete(known.subject);
    this.#o.changed(known.subject);
  }
}
