import type { Logger } from 'pino';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor, type KubeObject, type OwnerReference } from '../kube/object.ts';
import { apiVersionOf, type Resource } from '../kube/resource.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { ownerProjection } from './projections.ts';

const workload = (group: string, kind: string, plural: string): Resource => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: true,
});

/** Kinds that own pods or their owners. Of other kinds only what their dependents say of them is known. */
const OWNER_KINDS: readonly Resource[] = [
  workload('apps', 'ReplicaSet', 'replicasets'),
  workload('apps', 'Deployment', 'deployments'),
  workload('apps', 'StatefulSet', 'statefulsets'),
  workload('apps', 'DaemonSet', 'daemonsets'),
  workload('batch', 'Job', 'jobs'),
  workload('batch', 'CronJob', 'cronjobs'),
  workload('', 'ReplicationController', 'replicationcontrollers'),
];

/** Job, CronJob is two; custom kinds may have more on top. */
const MAX_OWNERS = 4;
const OWNER = 'owner';
const UID = 'uid';
/** After so long without an owner that a pod names, it is taken to be gone for good. */
const MISSED_MS = 60_000;
const MAX_MISSED = 1_000;
/** So long an owner is waited for, in ms. */
const OWNER_WAIT_MS = 500;

export interface OwnerDirectoryOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  clock: () => number;
}

/** Who owns pods of the host, from caches that hold of every workload what placement looks at. */
export class OwnerDirectory {
  readonly #clock: () => number;
  readonly #informers: ReadonlyMap<string, Informer<TypedObject>>;
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #missed = new Map<string, number>();

  constructor({ host, logger, metrics, clock }: OwnerDirectoryOptions) {
    this.#clock = clock;
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
    const off = informers.map((informer) => informer.on({ added: ({ metadata }) => this.#arrived(metadata.uid) }));
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

  /** Objects whose controller has that UID: the ReplicaSets of a Deployment. */
  ownedBy(uid: string): readonly TypedObject[] {
    return [...this.#informers.values()].flatMap((informer) => informer.byIndex(OWNER, uid));
  }

  /**
   * Waits for the controller that a pod names to arrive in the caches, at most `ms` (half a second): a pod can be heard of before its new
   * ReplicaSet. One that has not come is not waited for again for a minute.
   */
  async whenKnown(pod: Pod, ms = OWNER_WAIT_MS): Promise<void> {
    const reference = controllerOf(pod);
    if (reference === undefined || !this.#informers.has(kindKey(reference.apiVersion, reference.kind))) return;
    if (this.#find(reference, pod.metadata.namespace) !== undefined || this.#wasMissed(reference.uid)) return;
    const { uid } = reference;
    const waiters = this.#waiters.get(uid) ?? new Set();
    this.#waiters.set(uid, waiters);
    const came = await new Promise<boolean>((resolve) => {
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
    if (came) return;
    if (this.#missed.size >= MAX_MISSED) this.#missed.clear();
    this.#missed.set(uid, this.#clock());
  }

  #wasMissed(uid: string): boolean {
    const at = this.#missed.get(uid);
    return at !== undefined && this.#clock() - at < MISSED_MS;
  }

  #arrived(uid: string | undefined): void {
    if (uid === undefined) return;
    this.#missed.delete(uid);
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

export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function kindKey(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}

function unknownOwner({ apiVersion, kind, name, uid }: OwnerReference, pod: KubeObject): TypedObject {
  const { namespace } = pod.metadata;
  return { apiVersion, kind, metadata: { name, uid, ...(namespace === undefined ? {} : { namespace }) } };
}
