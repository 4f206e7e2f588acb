import type { Logger } from 'pino';
import { childSignal } from '../kube/child-signal.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import { keyFor, keyOf } from '../kube/object.ts';
import { apiVersionOf, type Resource } from '../kube/resource.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { kindAbove } from '../api/custom-kinds.ts';
import { whyBare } from './bare-owner.ts';
import { OwnerAccount, type OwnerRoom } from './owner-room.ts';
import { ownerProjection } from './projections.ts';

const ABOVE = 'above';

export interface FollowedKindOptions {
  host: KubeClient;
  resource: Resource;
  room: OwnerRoom;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  changed: (object: TypedObject, old: TypedObject | undefined) => void;
}

/** The objects of a kind that owns pods, by their metadata alone, from {@link start} to {@link stop}. */
export class FollowedKind {
  readonly #o: FollowedKindOptions;
  readonly #account: OwnerAccount;
  readonly #stop = new AbortController();
  /** What is known. */
  #informer: Informer<TypedObject>;
  #end: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #isRenewing = false;

  constructor(options: FollowedKindOptions) {
    this.#o = options;
    this.#account = new OwnerAccount(options.room);
    this.#informer = this.#reader();
  }

  /** `synced` is called once all of it is known. */
  start(synced: () => void): void {
    this.#informer.whenSynced(this.#stop.signal).then(synced, () => undefined);
    this.#end = this.#begin(this.#informer);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#account.end();
  }

  /** Reads all of it anew if owners have room by now that had none: what is known stays until that is complete. Says whether it does. */
  renew(): boolean {
    if (this.#isRenewing || !this.hasSynced || !this.#account.hasRoomAgain) return false;
    this.#isRenewing = true;
    const [before, end] = [this.#informer, this.#end];
    const next = this.#reader();
    const off = next.on({
      listed: () => {
        off();
        end();
        this.#informer = next;
        this.#isRenewing = false;
        for (const object of next.values()) {
          const old = before.get(keyOf(object));
          if (!isSame(object, old)) this.#o.changed(object, old);
        }
      },
    });
    this.#end = this.#begin(next);
    return true;
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
    return this.#informer.get(keyFor(this.#o.resource.namespaced ? namespace : undefined, name));
  }

  /** Kinds that own objects of this one, by their keys. */
  kindsAbove(): Iterable<string> {
    return this.#informer.indexValues(ABOVE);
  }

  #reader(): Informer<TypedObject> {
    const { host, resource, logger, metrics } = this.#o;
    const project = ownerProjection(apiVersionOf(resource), resource.kind);
    return new Informer<TypedObject>({
      client: host,
      resource: metadataOnly(resource),
      transform: (raw) => this.#account.keep(project(raw)),
      indexes: { [ABOVE]: kindAbove },
      logger,
      metrics,
    });
  }

  /** Returns what ends it. */
  #begin(informer: Informer<TypedObject>): () => void {
    const turn = childSignal(this.#stop.signal);
    const { changed } = this.#o;
    const isKnown = (): boolean => this.#informer === informer;
    const off = informer.on({
      // Those that are read anew are known already.
      added: (object) => {
        if (isKnown()) changed(object, undefined);
      },
      updated: (object, old) => {
        if (isKnown()) changed(object, old);
      },
      deleted: (object) => {
        // Another one may have its name by now.
        if (informer.get(keyOf(object)) === undefined) this.#account.forget(object);
      },
      listed: (keys) => this.#account.retain(keys),
    });
    const running = informer.run(turn.signal).finally(() => {
      off();
      turn.release();
    });
    this.#running = this.#running.then(async () => await running);
    return () => turn.abort();
  }
}

function isSame(object: TypedObject, old: TypedObject | undefined): boolean {
  return object.metadata.resourceVersion === old?.metadata.resourceVersion && whyBare(object) === whyBare(old);
}
