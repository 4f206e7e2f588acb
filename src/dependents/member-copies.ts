import { type Invariants, UNCOUNTED } from '../api/invariants.ts';
import { HOST_LABEL } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import { ifThere } from '../kube/if-there.ts';
import type { KubeObject } from '../kube/object.ts';
import { create, get, patch, remove, replace } from '../kube/verbs.ts';
import { type ClaimCopy, type CopyKind, type CopyRecord, RESOURCES } from './copy.ts';
import { CopyInformers, type CopyInformersOptions, type Knowledge } from './copy-informers.ts';
import { type DeletionEvidence, whyDataStay } from './data-guard.ts';

/** Our copies in one member, and the requests that change them. */
export interface CopyStore {
  /** Follows the member until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether all copies that existed in a place at some recent time are known. Asking makes the place be followed. */
  knowledge(kind: CopyKind, namespace: string): Knowledge;
  get(kind: CopyKind, namespace: string, name: string): CopyRecord | undefined;
  values(): Iterable<CopyRecord>;
  /**
   * `changed` is called with a copy that came, changed or went, `known` with a place that was asked for and is known
   * from now on. To be called before `run`.
   */
  on(changed: (copy: CopyRecord) => void, known: (kind: CopyKind, namespace: string) => void): void;
  /** Reads past the cache whatever has that name, ours or not. */
  read(kind: CopyKind, namespace: string, name: string, signal: AbortSignal): Promise<KubeObject | undefined>;
  create(kind: CopyKind, object: KubeObject, signal: AbortSignal): Promise<void>;
  /** metadata.uid and resourceVersion are preconditions. */
  replace(kind: CopyKind, object: KubeObject, signal: AbortSignal): Promise<void>;
  /** Asks for another size of a claim of ours. */
  resize(copy: ClaimCopy, storage: string | number, signal: AbortSignal): Promise<void>;
  /** With the UID as precondition. One that is gone already is no error. Claims hold data: without evidence they stay. */
  remove(copy: CopyRecord, signal: AbortSignal, evidence?: DeletionEvidence): Promise<void>;
}

/** The member's objects that carry our label, cached without their content. */
export class MemberCopies implements CopyStore {
  readonly #client: KubeClient;
  readonly #places: CopyInformers;
  readonly #listeners: {
    changed: (copy: CopyRecord) => void;
    known: (kind: CopyKind, namespace: string) => void;
  }[] = [];

  readonly #invariants: Invariants;
  readonly #hostId: string;

  constructor(options: Omit<CopyInformersOptions, 'changed' | 'known'> & { invariants?: Invariants }) {
    this.#client = options.client;
    this.#invariants = options.invariants ?? UNCOUNTED;
    this.#hostId = options.hostId;
    this.#places = new CopyInformers({
      ...options,
      changed: (copy) => {
        for (const { changed } of this.#listeners) changed(copy);
      },
      known: (kind, namespace) => {
        for (const { known } of this.#listeners) known(kind, namespace);
      },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#places.run(signal);
  }

  knowledge(kind: CopyKind, namespace: string): Knowledge {
    return this.#places.knowledge(kind, namespace);
  }

  get(kind: CopyKind, namespace: string, name: string): CopyRecord | undefined {
    return this.#places.get(kind, namespace, name);
  }

  values(): Iterable<CopyRecord> {
    return this.#places.values();
  }

  on(changed: (copy: CopyRecord) => void, known: (kind: CopyKind, namespace: string) => void): void {
    this.#listeners.push({ changed, known });
  }

  async read(kind: CopyKind, namespace: string, name: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    return await ifThere(get(this.#client, RESOURCES[kind], { namespace, name }, { signal }));
  }

  async create(kind: CopyKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    // A namespace may be new, and its watch not ready yet: what has that name is found by the creation itself.
    this.#checkKnown(this.#places.hasBegun, kind, object);
    await create(this.#client, RESOURCES[kind], object, { signal });
  }

  async replace(kind: CopyKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    this.#checkKnown(this.#places.isKnown(kind, object.metadata.namespace ?? ''), kind, object);
    await replace(this.#client, RESOURCES[kind], object, { signal });
  }

  async resize(copy: ClaimCopy, storage: string | number, signal: AbortSignal): Promise<void> {
    this.#checkOurs(copy, 'a change');
    const { kind, metadata } = copy;
    const { namespace, name, uid } = metadata;
    const body = { metadata: { uid }, spec: { resources: { requests: { storage } } } };
    await patch(this.#client, RESOURCES[kind], { namespace, name }, body, { type: 'merge' }, { signal });
  }

  async remove(copy: CopyRecord, signal: AbortSignal, evidence?: DeletionEvidence): Promise<void> {
    this.#checkOurs(copy, 'deletion');
    const { kind, metadata } = copy;
    const { namespace, name, uid } = metadata;
    if (kind === 'PersistentVolumeClaim') {
      const why = whyDataStay(copy, this.#hostId, evidence);
      if (why !== undefined)
        throw this.#invariants.violated('I20', `data would be deleted: ${why}`, { namespace, name });
    }
    await ifThere(remove(this.#client, RESOURCES[kind], { namespace, name }, { uid }, { signal }));
  }

  /** Pods have the same guard in PodWrites. */
  #checkKnown(known: boolean, kind: CopyKind, { metadata }: Pick<KubeObject, 'metadata'>): void {
    const { namespace, name } = metadata;
    if (!known)
      throw this.#invariants.violated('I7', 'a write to a copy before the caches are complete', {
        kind,
        namespace,
        name,
      });
  }

  /** The last look before something in the member is changed that is there already (I7, I15). */
  #checkOurs({ kind, metadata }: CopyRecord, what: string): void {
    const { namespace = '', name, labels } = metadata;
    this.#checkKnown(this.#places.isKnown(kind, namespace), kind, { metadata });
    if (labels?.[HOST_LABEL] === this.#hostId) return;
    throw this.#invariants.violated('I15', `${what} of an object that is not ours`, { kind, namespace, name });
  }
}
