import type { Logger } from 'pino';
import { HOST_LABEL } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, type KubeObject } from '../kube/object.ts';
import { create, get, remove, replace } from '../kube/verbs.ts';
import { type CopyRecord, recordOfCopy, RESOURCES } from './copy.ts';
import type { DependentKind } from './references.ts';

/** Our copies in one member, and the requests that change them. */
export interface CopyStore {
  /** Follows the member until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** All copies that existed at some recent time are known. */
  readonly synced: boolean;
  whenSynced(signal: AbortSignal): Promise<void>;
  get(kind: DependentKind, namespace: string, name: string): CopyRecord | undefined;
  values(): Iterable<CopyRecord>;
  /** Called with a copy that came, changed or went, and at once with those that are known. */
  on(changed: (copy: CopyRecord) => void): void;
  /** Reads past the cache whatever has that name, ours or not. */
  read(kind: DependentKind, namespace: string, name: string, signal: AbortSignal): Promise<KubeObject | undefined>;
  create(kind: DependentKind, object: KubeObject, signal: AbortSignal): Promise<void>;
  /** metadata.uid and resourceVersion are preconditions. */
  replace(kind: DependentKind, object: KubeObject, signal: AbortSignal): Promise<void>;
  /** With the UID as precondition. One that is gone already is no error. */
  remove(copy: CopyRecord, signal: AbortSignal): Promise<void>;
}

const KINDS = ['ConfigMap', 'Secret'] as const;

/** The member's objects that carry our label, cached without their content. */
export class MemberCopies implements CopyStore {
  readonly #client: KubeClient;
  readonly #informers: Record<DependentKind, Informer<CopyRecord>>;

  constructor(o: { client: KubeClient; hostId: string; logger: Logger; metrics?: InformerMetrics }) {
    this.#client = o.client;
    const informerOf = (kind: DependentKind): Informer<CopyRecord> =>
      new Informer<CopyRecord>({
        client: o.client,
        resource: RESOURCES[kind],
        labelSelector: `${HOST_LABEL}=${o.hostId}`,
        transform: (raw) => recordOfCopy(kind, raw),
        logger: o.logger,
        ...(o.metrics === undefined ? {} : { metrics: o.metrics }),
      });
    this.#informers = { ConfigMap: informerOf('ConfigMap'), Secret: informerOf('Secret') };
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(KINDS.map((kind) => this.#informers[kind].run(signal)));
  }

  get synced(): boolean {
    return KINDS.every((kind) => this.#informers[kind].hasSynced);
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(KINDS.map((kind) => this.#informers[kind].whenSynced(signal)));
  }

  get(kind: DependentKind, namespace: string, name: string): CopyRecord | undefined {
    return this.#informers[kind].get(keyFor(namespace, name));
  }

  *values(): Iterable<CopyRecord> {
    for (const kind of KINDS) yield* this.#informers[kind].values();
  }

  on(changed: (copy: CopyRecord) => void): void {
    for (const kind of KINDS) {
      this.#informers[kind].on({ added: changed, updated: changed, deleted: changed });
    }
  }

  async read(
    kind: DependentKind,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    try {
      return await get(this.#client, RESOURCES[kind], { namespace, name }, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async create(kind: DependentKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    await create(this.#client, RESOURCES[kind], object, { signal });
  }

  async replace(kind: DependentKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    await replace(this.#client, RESOURCES[kind], object, { signal });
  }

  async remove({ kind, metadata }: CopyRecord, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = metadata;
    try {
      await remove(this.#client, RESOURCES[kind], { namespace, name }, { uid }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
