import type { Logger } from 'pino';
import { HOST_LABEL, MEMBER_LABEL } from '../api/marks.ts';
import type { PodDisruptionBudget } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyOf, withoutManagedFields } from '../kube/object.ts';
import { isOlder } from '../kube/resource-version.ts';
import { POD_DISRUPTION_BUDGETS } from '../kube/resource.ts';
import { create, get, remove, replace } from '../kube/verbs.ts';
import { type MirroredBudget, readMirroredBudget } from './mirrored-budget.ts';

/** Longest wait between tries to read them, which the account may have no right to do, in ms. */
const RETRY_MS = 60_000;

export interface MirrorStoreOptions {
  client: KubeClient;
  hostId: string;
  /** Name of the MemberCluster. */
  member: string;
  /** Called with the key of the host's budget when one that stands for it came, changed or went, and once all are known. */
  changed: (hostKey: string) => void;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/** Our budgets in one member, and the requests that change them. What was written counts before the watch shows it. */
export class MirrorStore {
  readonly #o: MirrorStoreOptions;
  readonly #informer: Informer<PodDisruptionBudget>;
  readonly #mirrors = new Map<string, MirroredBudget>();
  readonly #byHostKey = new Map<string, Set<string>>();

  constructor(options: MirrorStoreOptions) {
    const { client, hostId, member, logger, metrics } = options;
    this.#o = options;
    this.#informer = new Informer<PodDisruptionBudget>({
      client,
      resource: POD_DISRUPTION_BUDGETS,
      labelSelector: `${HOST_LABEL}=${hostId},${MEMBER_LABEL}=${member}`,
      transform: (raw) => withoutManagedFields(raw as PodDisruptionBudget),
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Follows the member until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const put = (raw: PodDisruptionBudget): void => this.#put(raw);
    const off = this.#informer.on({ added: put, updated: put, deleted: (raw) => this.#forget(keyOf(raw)) });
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

  get size(): number {
    return this.#mirrors.size;
  }

  values(): Iterable<MirroredBudget> {
    return this.#mirrors.values();
  }

  hostKeys(): Iterable<string> {
    return this.#byHostKey.keys();
  }

  /** Those that stand for a budget of the host: one for each namespace of the member, as a rule one. */
  of(hostKey: string): MirroredBudget[] {
    const keys = this.#byHostKey.get(hostKey) ?? [];
    return [...keys].flatMap((key) => this.#mirrors.get(key) ?? []);
  }

  /** Whether a budget of that name is one of ours that stands for that one of the host, read past the cache. */
  async isOurs(hostKey: string, namespace: string, name: string, signal: AbortSignal): Promise<boolean> {
    try {
      const found = await get<PodDisruptionBudget>(
        this.#o.client,
        POD_DISRUPTION_BUDGETS,
        { namespace, name },
        { signal },
      );
      return readMirroredBudget(found, this.#o)?.hostKey === hostKey;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  }

  async create(made: PodDisruptionBudget, signal: AbortSignal): Promise<void> {
    this.#put(await create(this.#o.client, POD_DISRUPTION_BUDGETS, made, { signal }));
  }

  /** If it is still as it was read. */
  async replace({ uid, resourceVersion }: MirroredBudget, made: PodDisruptionBudget, signal: AbortSignal) {
    const body = { ...made, metadata: { ...made.metadata, uid, resourceVersion } };
    this.#put(await replace(this.#o.client, POD_DISRUPTION_BUDGETS, body, { signal }));
  }

  /** With the UID as precondition. One that is gone already is no error. */
  async remove({ namespace, name, uid }: MirroredBudget, signal: AbortSignal): Promise<void> {
    try {
      await remove(this.#o.client, POD_DISRUPTION_BUDGETS, { namespace, name }, { uid }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#forget(`${namespace}/${name}`);
  }

  #put(raw: PodDisruptionBudget): void {
    const key = keyOf(raw);
    const before = this.#mirrors.get(key);
    if (before?.uid === raw.metadata.uid && isOlder(raw.metadata.resourceVersion, before?.resourceVersion)) return;
    const mirror = readMirroredBudget(raw, this.#o);
    if (mirror === undefined) {
      this.#forget(key);
      return;
    }
    if (before !== undefined && before.hostKey !== mirror.hostKey) this.#forget(key);
    this.#mirrors.set(key, mirror);
    const keys = this.#byHostKey.get(mirror.hostKey) ?? new Set<string>();
    this.#byHostKey.set(mirror.hostKey, keys.add(key));
    this.#o.changed(mirror.hostKey);
  }

  #forget(key: string): void {
    const known = this.#mirrors.get(key);
    if (known === undefined) return;
    this.#mirrors.delete(key);
    const keys = this.#byHostKey.get(known.hostKey);
    keys?.delete(key);
    if (keys?.size === 0) this.#byHostKey.delete(known.hostKey);
    this.#o.changed(known.hostKey);
  }
}
