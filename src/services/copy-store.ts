import type { Logger } from 'pino';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, keyOf, type KubeObject, type ObjectMeta, withoutManagedFields } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import { isOlder } from '../kube/resource-version.ts';
import { create, get, remove, replace } from '../kube/verbs.ts';

/** Longest wait between tries to read them, which the account may have no right to do, in ms. */
const RETRY_MS = 60_000;

export interface CopyStoreOptions {
  client: KubeClient;
  resource: Resource;
  hostId: string;
  /** Called with the key of the host's Service when something that stands for it came, changed or went. */
  changed: (serviceKey: string) => void;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/**
 * The Services, or the EndpointSlices, that the host has in one member, whichever MemberCluster wrote them, and the requests that
 * change them. What was written counts before the watch shows it.
 */
export class CopyStore<T extends KubeObject> {
  readonly #o: CopyStoreOptions;
  readonly #informer: Informer<T>;
  readonly #copies = new Map<string, T>();
  readonly #byService = new Map<string, Set<string>>();

  constructor(options: CopyStoreOptions) {
    const { client, resource, hostId, logger, metrics } = options;
    this.#o = options;
    this.#informer = new Informer<T>({
      client,
      resource,
      labelSelector: `${HOST_LABEL}=${hostId}`,
      transform: (raw) => withoutManagedFields(raw as T),
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Follows the member until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const put = (raw: T): void => this.#put(raw);
    const off = this.#informer.on({ added: put, updated: put, deleted: (raw) => this.#gone(raw) });
    await this.#informer.run(signal);
    off();
  }

  get synced(): boolean {
    return this.#informer.hasSynced;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.#informer.problem;
  }

  values(): Iterable<T> {
    return this.#copies.values();
  }

  serviceKeys(): Iterable<string> {
    return this.#byService.keys();
  }

  /** What stands for a Service of the host, in whatever namespaces of the member. */
  of(serviceKey: string): T[] {
    const keys = this.#byService.get(serviceKey) ?? [];
    return [...keys].flatMap((key) => this.#copies.get(key) ?? []);
  }

  /** Whether an object of that name is one that stands for that Service of the host, read past the cache. Undefined: there is none. */
  async isOurs(serviceKey: string, { namespace, name }: ObjectMeta, signal: AbortSignal): Promise<boolean | undefined> {
    try {
      const found = await get<T>(this.#o.client, this.#o.resource, { namespace, name }, { signal });
      const isOurs = this.#serviceKeyOf(found) === serviceKey;
      if (isOurs) this.#put(found);
      return isOurs;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async create(made: T, signal: AbortSignal): Promise<T> {
    const created = await create(this.#o.client, this.#o.resource, made, { signal });
    this.#put(created);
    return created;
  }

  /** If it is still as `made` says by its resourceVersion. */
  async replace(made: T, signal: AbortSignal): Promise<T> {
    const replaced = await replace(this.#o.client, this.#o.resource, made, { signal });
    this.#put(replaced);
    return replaced;
  }

  /** With the UID as precondition. One that is gone already is no error. */
  async remove({ metadata: { namespace, name, uid } }: T, signal: AbortSignal): Promise<void> {
    try {
      await remove(this.#o.client, this.#o.resource, { namespace, name }, { uid }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#forget(keyFor(namespace, name));
  }

  /** Undefined when it is not the host's. */
  #serviceKeyOf({ metadata: { labels, annotations } }: T): string | undefined {
    const name = annotations?.[HOST_NAME_ANNOTATION];
    if (labels?.[HOST_LABEL] !== this.#o.hostId || name === undefined) return undefined;
    return keyFor(annotations?.[HOST_NAMESPACE_ANNOTATION], name);
  }

  #put(raw: T): void {
    const key = keyOf(raw);
    const before = this.#copies.get(key);
    const isSame = before?.metadata.uid === raw.metadata.uid;
    if (isSame && isOlder(raw.metadata.resourceVersion, before?.metadata.resourceVersion)) return;
    const serviceKey = this.#serviceKeyOf(raw);
    if (before !== undefined && this.#serviceKeyOf(before) !== serviceKey) this.#forget(key);
    if (serviceKey === undefined) return;
    this.#copies.set(key, raw);
    const keys = this.#byService.get(serviceKey) ?? new Set<string>();
    this.#byService.set(serviceKey, keys.add(key));
    this.#o.changed(serviceKey);
  }

  /** One of the same name may have been made since. */
  #gone(raw: T): void {
    const key = keyOf(raw);
    if (this.#copies.get(key)?.metadata.uid === raw.metadata.uid) this.#forget(key);
  }

  #forget(key: string): void {
    const known = this.#copies.get(key);
    if (known === undefined) return;
    this.#copies.delete(key);
    const serviceKey = this.#serviceKeyOf(known) ?? '';
    const keys = this.#byService.get(serviceKey);
    keys?.delete(key);
    if (keys?.size === 0) this.#byService.delete(serviceKey);
    this.#o.changed(serviceKey);
  }
}
