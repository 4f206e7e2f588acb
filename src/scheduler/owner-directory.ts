import type { Logger } from 'pino';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, type KubeObject, type OwnerReference } from '../kube/object.ts';
import { MAX_OWNERS, OWNER_KINDS, ownerKind } from '../kube/owner-kinds.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { apiVersionOf } from '../kube/resource.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { ownerProjection } from './projections.ts';
import { OwnerLookUp } from './owner-look-up.ts';
import { WaitBudget } from './wait-budget.ts';

const OWNER = 'owner';
const UID = 'uid';
/** So long an owner is waited for, in ms. */
const OWNER_WAIT_MS = 500;

export interface OwnerDirectoryOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** In ms. */
  monotonic: () => number;
}

/** Who owns pods of the host, from caches that hold of every workload what placement looks at. */
export class OwnerDirectory {
  readonly #monotonic: () => number;
  readonly #informers: ReadonlyMap<string, Informer<TypedObject>>;
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #budget: WaitBudget;
  readonly #lookUp: OwnerLookUp;

  constructor({ host, logger, metrics, monotonic }: OwnerDirectoryOptions) {
    this.#monotonic = monotonic;
    this.#budget = new WaitBudget(monotonic);
    this.#lookUp = new OwnerLookUp(host, ownerKind, monotonic);
    this.#informers = new Map(
      OWNER_KINDS.map((resource) => [
        kindKey(apiVersionOf(resource), resource.kind),
        new Informer<TypedObject>({
          client: host,
          resource,
          transform: ownerProjection(apiVersionOf(resource), resource.kind),
          indexes: {
            [OWNER]: (object) => [controllerOf(object)?.uid ?? ''],
            [UID]: ({ metadata }) => [metadata.uid ?? ''],
          },
          logger,
          ...(metrics === undefined ? {} : { metrics }),
        }),
      ]),
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    const informers = [...this.#informers.values()];
    const off = informers.map((informer) => informer.on({ added: ({ metadata }) => this.#settled(metadata.uid) }));
    await Promise.all(informers.map(async (informer) => await informer.run(signal)));
    for (const unsubscribe of off) unsubscribe();
  }

  get hasSynced(): boolean {
    return [...this.#informers.values()].every(({ hasSynced }) => hasSynced);
  }

  get problem(): string | undefined {
    return [...this.#informers.values()].map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  /** Calls the handler with every owner that came, changed (with what it was before) or went. Returns what ends that. */
  on(handler: (object: TypedObject, old: TypedObject | undefined) => void): () => void {
    const handlers = {
      added: (object: TypedObject) => handler(object, undefined),
      updated: handler,
      deleted: (object: TypedObject) => handler(object, undefined),
    };
    const off = [...this.#informers.values()].map((informer) => informer.on(handlers));
    return () => {
      for (const unsubscribe of off) unsubscribe();
    };
  }

  /** The pod and its owners, as far as they are known. */
  chainOf(pod: KubeObject): OwnerChain {
    const chain: [TypedObject, ...TypedObject[]] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
    let above = controllerOf(pod);
    while (above !== undefined && chain.length <= MAX_OWNERS) {
      const object = this.#find(above, pod.metadata.namespace) ?? unknownOwner(above, pod);
      chain.push(object);
      above = controllerOf(object);
    }
    return chain;
  }

  /** By its UID, whatever its kind. */
  byUid(uid: string): TypedObject | undefined {
    for (const informer of this.#informers.values()) {
      const [found] = informer.byIndex(UID, uid);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** By its name; undefined also for kinds that are not followed. */
  named(o: { apiVersion: string; kind: string; namespace: string; name: string }): TypedObject | undefined {
    return this.#informers.get(kindKey(o.apiVersion, o.kind))?.get(keyFor(o.namespace, o.name));
  }

  /** Whether objects of a kind are known with their labels, if there are any. */
  follows(apiVersion: string, kind: string): boolean {
    return this.#informers.has(kindKey(apiVersion, kind)) || (apiVersion === 'v1' && kind === 'Pod');
  }

  /** Objects whose controller has that UID: the ReplicaSets of a Deployment. */
  ownedBy(uid: string): readonly TypedObject[] {
    return [...this.#informers.values()].flatMap((informer) => informer.byIndex(OWNER, uid));
  }

  /**
   * Waits for the owners of a pod to arrive in the caches, at most half a second: a pod can be heard of before its new
   * ReplicaSet. Returns the one that is still not known. One that the host says is not there is known to be gone. A scheduler
   * asks about one pod after the other, and anybody may name owners that do not exist: of all the time no more than a
   * twentieth is waited in vain.
   */
  async whenKnown(pod: Pod): Promise<OwnerReference | undefined> {
    let missing = this.#missing(pod);
    if (missing === undefined) return undefined;
    const started = this.#monotonic();
    let left = this.#budget.take(OWNER_WAIT_MS);
    const taken = left;
    let vainMs = 0;
    for (;;) {
      const { uid } = missing;
      this.#lookUp.ask(missing, pod.metadata.namespace, () => this.#settled(uid));
      if (left <= 0) return missing;
      const isSettled = await this.#wait(uid, left);
      const tookMs = this.#monotonic() - started;
      if (this.#lookUp.isGone(uid)) vainMs = tookMs;
      left = isSettled ? taken - tookMs : 0;
      missing = this.#missing(pod);
      if (missing === undefined) break;
    }
    this.#budget.giveBack(Math.max(0, taken - vainMs));
    return undefined;
  }

  /** Resolves early when the owner arrives, or is known not to be there. */
  async #wait(uid: string, ms: number): Promise<boolean> {
    const waiters = this.#waiters.get(uid) ?? new Set();
    this.#waiters.set(uid, waiters);
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => {
        waiters.delete(arrived);
        if (waiters.size === 0) this.#waiters.delete(uid);
        resolve(false);
      }, ms);
      const arrived = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      waiters.add(arrived);
    });
  }

  /** Of the owners the nearest one that is of a kind that is followed, but not in the caches, and perhaps there. */
  #missing(pod: Pod): OwnerReference | undefined {
    let above = controllerOf(pod);
    for (let steps = 0; above !== undefined && steps < MAX_OWNERS; steps += 1) {
      const object = this.#find(above, pod.metadata.namespace);
      if (object === undefined) {
        const isFollowed = this.#informers.has(kindKey(above.apiVersion, above.kind));
        return isFollowed && !this.#lookUp.isGone(above.uid) ? above : undefined;
      }
      above = controllerOf(object);
    }
    return undefined;
  }

  #settled(uid: string | undefined): void {
    if (uid === undefined) return;
    const waiters = this.#waiters.get(uid);
    this.#waiters.delete(uid);
    for (const arrived of waiters ?? []) arrived();
  }

  #find({ apiVersion, kind, name, uid }: OwnerReference, namespace: string | undefined): TypedObject | undefined {
    const found = this.#informers.get(kindKey(apiVersion, kind))?.get(keyFor(namespace, name));
    // Another object may have the name by now.
    return found?.metadata.uid === uid ? found : undefined;
  }
}

function kindKey(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}

function unknownOwner({ apiVersion, kind, name, uid }: OwnerReference, pod: KubeObject): TypedObject {
  const { namespace } = pod.metadata;
  return { apiVersion, kind, metadata: { name, uid, ...(namespace === undefined ? {} : { namespace }) } };
}
