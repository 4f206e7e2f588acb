import type { Logger } from 'pino';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, type KubeObject, type OwnerReference } from '../kube/object.ts';
import { MAX_OWNERS, OWNER_KINDS, ownerKind } from '../kube/owner-kinds.ts';
import { controllerKeyOf, controllerOf, ownerKeyOf } from '../kube/owner-references.ts';
import { metadataOnly } from '../kube/metadata-only.ts';
import { apiVersionOf, type Resource } from '../kube/resource.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { customKindKey, kindAbove } from '../api/custom-kinds.ts';
import { whyBare } from './bare-owner.ts';
import { CustomOwners } from './custom-owners.ts';
import { ownerProjection } from './projections.ts';
import { OwnerLookUp } from './owner-look-up.ts';
import { WaitBudget } from './wait-budget.ts';

const OWNER = 'owner';
const UID = 'uid';
const ABOVE = 'above';
/** So long an owner is waited for, in ms. */
const OWNER_WAIT_MS = 500;

export interface OwnerDirectoryOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** In ms. */
  monotonic: () => number;
  /** Kinds, by their keys (custom-kinds.ts), that pods name as their controllers' now. */
  namedByPods: () => Iterable<string>;
  /** The same for what policies choose by. */
  chosen: () => Iterable<string>;
  /** Of these the ones that policies of the whole cluster choose by. */
  chosenForAll: () => ReadonlySet<string>;
  /** Whether all pods and policies are known. */
  isComplete: () => boolean;
  /** Between two looks at kinds that are not Kubernetes' own, in ms. */
  lookMs?: number;
}

/** An owner that may be there, but is not in the caches. */
interface Missing {
  readonly owner: OwnerReference;
  /** Nothing is known of its whole kind yet. */
  readonly ofKind: string | undefined;
}

/**
 * Who owns pods of the host, from caches that hold of every workload what placement looks at; of kinds that are not Kubernetes' own
 * the metadata, where that may be read (custom-owners.ts).
 */
export class OwnerDirectory {
  readonly #monotonic: () => number;
  readonly #informers: ReadonlyMap<string, Informer<TypedObject>>;
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #budget: WaitBudget;
  readonly #lookUp: OwnerLookUp;
  readonly #custom: CustomOwners;
  readonly #handlers = new Set<OwnerHandler>();

  constructor(options: OwnerDirectoryOptions) {
    const { host, logger, metrics, monotonic, namedByPods, chosen, chosenForAll, isComplete, lookMs } = options;
    this.#monotonic = monotonic;
    this.#budget = new WaitBudget(monotonic);
    const resourceOf = (owner: OwnerReference): Resource | undefined => ownerKind(owner) ?? this.#customResource(owner);
    this.#lookUp = new OwnerLookUp(host, resourceOf, monotonic);
    this.#informers = new Map(
      OWNER_KINDS.map((resource) => [
        kindKey(apiVersionOf(resource), resource.kind),
        new Informer<TypedObject>({
          client: host,
          resource,
          transform: ownerProjection(apiVersionOf(resource), resource.kind),
          indexes: {
            [OWNER]: (object) => [controllerKeyOf(object) ?? ''],
            [UID]: ({ metadata }) => [metadata.uid ?? ''],
            [ABOVE]: kindAbove,
          },
          logger,
          metrics,
        }),
      ]),
    );
    this.#custom = new CustomOwners({
      host,
      logger,
      metrics,
      monotonic,
      isComplete: () => this.#hasOwn && isComplete(),
      named: () => this.#named(namedByPods()),
      chosen,
      chosenForAll,
      lookMs,
      changed: (object, old) => {
        this.#seen(object);
        for (const handler of this.#handlers) handler(object, old);
      },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const informers = [...this.#informers.values()];
    const off = informers.map((informer) => informer.on({ added: (object) => this.#seen(object) }));
    await Promise.all([this.#custom.run(signal), ...informers.map(async (informer) => await informer.run(signal))]);
    for (const unsubscribe of off) unsubscribe();
  }

  get hasSynced(): boolean {
    return this.#hasOwn && this.#custom.hasSettled;
  }

  /** The kinds of Kubernetes' own. */
  get #hasOwn(): boolean {
    return [...this.#informers.values()].every(({ hasSynced }) => hasSynced);
  }

  get problem(): string | undefined {
    return [...this.#informers.values()].map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  /** Calls the handler with every owner that came, changed (with what it was before) or went. Returns what ends that. */
  on(handler: OwnerHandler): () => void {
    const handlers = {
      added: (object: TypedObject) => handler(object, undefined),
      updated: handler,
      deleted: (object: TypedObject) => handler(object, undefined),
    };
    const off = [...this.#informers.values()].map((informer) => informer.on(handlers));
    this.#handlers.add(handler);
    return () => {
      for (const unsubscribe of off) unsubscribe();
      this.#handlers.delete(handler);
    };
  }

  /** Calls the handler whenever more or less is known of a kind that is not Kubernetes' own. Returns what ends that. */
  onKinds(handler: () => void): () => void {
    return this.#custom.on(handler);
  }

  /** A pod or a policy names these kinds, by their keys. */
  noticed(keys: Iterable<string>): void {
    for (const key of keys) this.#custom.noticed(key);
  }

  /** The pod and its owners, as far as they are known. */
  chainOf(pod: KubeObject): OwnerChain {
    const chain: [TypedObject, ...TypedObject[]] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
    let above = controllerOf(pod);
    while (above !== undefined && chain.length <= MAX_OWNERS) {
      const object = this.#find(above, pod.metadata.namespace) ?? unknownOwner(above, pod);
      chain.push(inNamespaceOf(pod, object));
      above = controllerOf(object);
    }
    return chain;
  }

  /** By its UID, of a kind of Kubernetes' own. */
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

  /** Why labels of objects of a kind are not known, in words; undefined while they are, or that is being found out. */
  whyUnread(apiVersion: string, kind: string): string | undefined {
    if (this.#informers.has(kindKey(apiVersion, kind)) || (apiVersion === 'v1' && kind === 'Pod')) return undefined;
    const key = customKindKey({ apiVersion, kind });
    return key === undefined ? 'objects of this kind own no pods' : this.#custom.whyUnread(key);
  }

  /** Whether objects of a kind that is not Kubernetes' own are waited for while they are not known, as the kind cannot be read now. */
  holds(apiVersion: string, kind: string): boolean {
    const key = this.#informers.has(kindKey(apiVersion, kind)) ? undefined : customKindKey({ apiVersion, kind });
    return key !== undefined && this.#custom.holds(key);
  }

  /** Whether an owner is in the caches, with its labels: what was read stays known while its kind cannot be. */
  isRead({ apiVersion, kind, metadata: { name, namespace, uid = '' } }: TypedObject): boolean {
    const found = this.#find({ apiVersion, kind, name, uid }, namespace);
    return found !== undefined && whyBare(found) === undefined;
  }

  /** Whether the host does not have a kind that is not Kubernetes' own, as far as is known. */
  isAbsent(apiVersion: string, kind: string): boolean {
    const key = customKindKey({ apiVersion, kind });
    return key !== undefined && this.#custom.isAbsent(key);
  }

  /** Objects that it controls: the ReplicaSets of a Deployment. */
  ownedBy(owner: TypedObject): readonly TypedObject[] {
    const key = ownerKeyOf(owner);
    return [...this.#informers.values()].flatMap((informer) => informer.byIndex(OWNER, key));
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
      const { owner, ofKind } = missing;
      if (ofKind === undefined) this.#lookUp.ask(owner, pod.metadata.namespace, () => this.#settled(owner.uid));
      if (left <= 0) {
        if (ofKind !== undefined) this.#custom.noticed(ofKind, true);
        return owner;
      }
      const isSettled =
        ofKind === undefined ? await this.#wait(owner.uid, left) : await this.#waitForKind(ofKind, left);
      const tookMs = this.#monotonic() - started;
      const isVain =
        ofKind === undefined ? this.#lookUp.isGone(owner, pod.metadata.namespace) : !this.#custom.isFollowed(ofKind);
      vainMs = isVain ? tookMs : 0;
      left = isSettled ? taken - tookMs : 0;
      missing = this.#missing(pod);
      if (missing === undefined) break;
    }
    this.#budget.giveBack(Math.max(0, taken - vainMs));
    return undefined;
  }

  /** Whether all owners of a pod are known, as far as they are there. */
  isKnown(pod: Pod): boolean {
    return this.#missing(pod) === undefined;
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

  /** Resolves early when it is known what there is to know of the kind. */
  async #waitForKind(key: string, ms: number): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => {
        takeBack();
        resolve(false);
      }, ms);
      const takeBack = this.#custom.want(key, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  /** Of the owners the nearest one that is not in the caches, and perhaps there. */
  #missing(pod: Pod): Missing | undefined {
    let above = controllerOf(pod);
    for (let steps = 0; above !== undefined && steps < MAX_OWNERS; steps += 1) {
      const object = this.#find(above, pod.metadata.namespace);
      if (object === undefined) return this.#mayCome(above, pod.metadata.namespace);
      above = controllerOf(object);
    }
    return undefined;
  }

  #mayCome(owner: OwnerReference, namespace: string | undefined): Missing | undefined {
    const isOwn = this.#informers.has(kindKey(owner.apiVersion, owner.kind));
    const key = isOwn ? undefined : customKindKey(owner);
    const state = key === undefined ? undefined : this.#custom.stateOf(key);
    if (state?.is === 'pending') return { owner, ofKind: key };
    if (!isOwn && state?.is !== 'followed') return undefined;
    // Its watch may have stopped before this one.
    if (key !== undefined && this.#custom.problemOf(key) !== undefined) return undefined;
    return this.#lookUp.isGone(owner, namespace) ? undefined : { owner, ofKind: undefined };
  }

  #seen(object: TypedObject): void {
    this.#settled(object.metadata.uid);
    this.noticed(kindAbove(object));
  }

  #settled(uid: string | undefined): void {
    if (uid === undefined) return;
    const waiters = this.#waiters.get(uid);
    this.#waiters.delete(uid);
    for (const arrived of waiters ?? []) arrived();
  }

  #find(owner: OwnerReference, namespace: string | undefined): TypedObject | undefined {
    const { apiVersion, kind, name, uid } = owner;
    const own = this.#informers.get(kindKey(apiVersion, kind));
    const found = own === undefined ? this.#custom.find(owner, namespace) : own.get(keyFor(namespace, name));
    // Another object may have the name by now.
    return found?.metadata.uid === uid ? found : undefined;
  }

  #customResource(owner: OwnerReference): Resource | undefined {
    const resource = this.#custom.resourceOf(owner);
    return resource === undefined ? undefined : metadataOnly(resource);
  }

  *#named(byPods: Iterable<string>): Generator<string> {
    yield* byPods;
    for (const informer of this.#informers.values()) yield* informer.indexValues(ABOVE);
  }
}

type OwnerHandler = (object: TypedObject, old: TypedObject | undefined) => void;

function kindKey(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}

/** Policies of a namespace choose pods there by their owners, be these in no namespace. */
function inNamespaceOf({ metadata: { namespace } }: KubeObject, owner: TypedObject): TypedObject {
  if (namespace === undefined || owner.metadata.namespace !== undefined) return owner;
  return { ...owner, metadata: { ...owner.metadata, namespace } };
}

function unknownOwner({ apiVersion, kind, name, uid }: OwnerReference, pod: KubeObject): TypedObject {
  const { namespace } = pod.metadata;
  return { apiVersion, kind, metadata: { name, uid, ...(namespace === undefined ? {} : { namespace }) } };
}
