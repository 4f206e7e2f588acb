import type { Logger } from 'pino';
import type { CacheRoom } from '../kube/cache-room.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import { keyFor } from '../kube/object.ts';
import { apiVersionOf, type Resource } from '../kube/resource.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { kindAbove } from '../api/custom-kinds.ts';
import { ownerProjection } from './projections.ts';

const ABOVE = 'above';

export interface FollowedKindOptions {
  host: KubeClient;
  resource: Resource;
  room: CacheRoom;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  changed: (object: TypedObject, old: TypedObject | undefined) => void;
}

/** The objects of a kind that owns pods, by their metadata alone, from {@link start} to {@link stop}. */
export class FollowedKind {
  readonly #informer: Informer<TypedObject>;
  readonly #isNamespaced: boolean;
  readonly #stop = new AbortController();
  readonly #end: () => void;
  readonly #changed: FollowedKindOptions['changed'];
  #running: Promise<void> = Promise.resolve();

  constructor({ host, resource, room, logger, metrics, changed }: FollowedKindOptions) {
    const share = room.share();
    this.#end = () => share.end();
    this.#changed = changed;
    this.#isNamespaced = resource.namespaced;
    this.#informer = new Informer<TypedObject>({
      client: host,
      resource: metadataOnly(resource),
      transform: ownerProjection(apiVersionOf(resource), resource.kind),
      indexes: { [ABOVE]: kindAbove },
      share,
      logger,
      metrics,
    });
  }

  /** `synced` is called once all of it is known. */
  start(synced: () => void): void {
    const { signal } = this.#stop;
    const off = this.#informer.on({
      added: (object) => this.#changed(object, undefined),
      updated: this.#changed,
    });
    this.#informer.whenSynced(signal).then(synced, () => undefined);
    this.#running = this.#informer.run(signal).finally(() => {
      off();
      this.#end();
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  /** Why it cannot be read now, or not as a whole; undefined while all is well. */
  get problem(): string | undefined {
    return this.#informer.limit ?? this.#informer.problem;
  }

  /** By its name; the namespace is that of what it owns. */
  named(namespace: string | undefined, name: string): TypedObject | undefined {
    return this.#informer.get(keyFor(this.#isNamespaced ? namespace : undefined, name));
  }

  /** Kinds that own objects of this one, by their keys. */
  kindsAbove(): Iterable<string> {
    return this.#informer.indexValues(ABOVE);
  }
}
