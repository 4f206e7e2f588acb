import { keyOf, type KubeObject } from './object.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';

/** How we know that an object is gone: its own DELETED event, or a trusted list without it. */
export type DeleteEvidence = 'watched' | 'relisted';

export interface StoreListener<T> {
  added(object: T): void;
  updated(object: T, old: T): void;
  deleted(object: T, evidence: DeleteEvidence): void;
}

/** What a change to the store turned out to be: `stale` events are older than what is known. */
export type Outcome = 'applied' | 'duplicate' | 'stale';

/** Deleted objects whose late events could still bring them back: reordering happens over short distances. */
const MAX_TOMBSTONES = 1_000;

/**
 * Objects by `namespace/name` with secondary indexes. Each object only moves forward in resourceVersion, a replayed
 * event never brings a deleted object back, and another UID under the same key is a delete and an add. The listener
 * hears of each change after the store, and for a replacement the whole store, shows it.
 */
export class ObjectStore<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexers: readonly { values: (o: T) => readonly string[]; keys: Map<string, Set<string>> }[];
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  readonly #tombstones = new Map<string, string>();
  readonly #listener: StoreListener<T>;

  constructor(listener: StoreListener<T>, indexes: Record<string, (o: T) => readonly string[]> = {}) {
    this.#listener = listener;
    this.#indexers = Object.entries(indexes).map(([name, values]) => {
      const keys = new Map<string, Set<string>>();
      this.#indexes.set(name, keys);
      return { values, keys };
    });
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  byIndex(index: string, value: string): readonly T[] {
    const keys = this.#indexes.get(index);
    if (keys === undefined) {
      throw new Error(`no index named ${index}`);
    }
    const found: T[] = [];
    for (const key of keys.get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) {
        found.push(object);
      }
    }
    return found;
  }

  /** An ADDED or MODIFIED event: both mean "this is the object now". */
  put(object: T): Outcome {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    const version = object.metadata.resourceVersion;
    const order = compareResourceVersions(version, old?.metadata.resourceVersion ?? this.#tombstones.get(key));
    if (order !== undefined && order <= 0) {
      return order === 0 ? 'duplicate' : 'stale';
    }
    this.#set(key, object, old);
    this.#report(object, old);
    return 'applied';
  }

  /** A DELETED event with the object's last state. */
  delete(object: KubeObject): Outcome {
    const key = keyOf(object);
    const version = object.metadata.resourceVersion;
    const old = this.#objects.get(key);
    if (isOlder(version, old?.metadata.resourceVersion ?? this.#tombstones.get(key))) {
      return 'stale';
    }
    this.#bury(key, version);
    if (old === undefined) {
      return 'duplicate';
    }
    this.#drop(key, old);
    this.#listener.deleted(old, 'watched');
    return 'applied';
  }

  /**
   * A trusted list of everything there is, also where it is older than what is known: then that was not true. An undefined
   * value stands for an object that exists but could not be transformed: what is known of it stays. Returns how many
   * objects differed.
   */
  replace(listed: ReadonlyMap<string, T | undefined>): number {
    const gone: T[] = [];
    for (const [key, old] of this.#objects) {
      if (!listed.has(key)) {
        this.#drop(key, old);
        gone.push(old);
      }
    }
    const changed: { object: T; old: T | undefined }[] = [];
    for (const [key, object] of listed) {
      const old = this.#objects.get(key);
      if (object !== undefined && (old === undefined || !isSame(object, old))) {
        this.#set(key, object, old);
        changed.push({ object, old });
      }
    }
    this.#tombstones.clear();
    for (const old of gone) {
      this.#listener.deleted(old, 'relisted');
    }
    for (const { object, old } of changed) {
      this.#report(object, old, 'relisted');
    }
    return gone.length + changed.length;
  }

  #report(object: T, old: T | undefined, evidence: DeleteEvidence = 'watched'): void {
    if (old === undefined) {
      this.#listener.added(object);
    } else if (old.metadata.uid === object.metadata.uid) {
      this.#listener.updated(object, old);
    } else {
      this.#listener.deleted(old, evidence);
      this.#listener.added(object);
    }
  }

  #set(key: string, object: T, old: T | undefined): void {
    if (old !== undefined) {
      this.#unindex(key, old);
    }
    this.#objects.set(key, object);
    for (const { values, keys } of this.#indexers) {
      for (const value of values(object)) {
        const set = keys.get(value);
        if (set === undefined) {
          keys.set(value, new Set([key]));
        } else {
          set.add(key);
        }
      }
    }
  }

  #drop(key: string, old: T): void {
    this.#unindex(key, old);
    this.#objects.delete(key);
  }

  #unindex(key: string, old: T): void {
    for (const { values, keys } of this.#indexers) {
      for (const value of values(old)) {
        const set = keys.get(value);
        set?.delete(key);
        if (set?.size === 0) {
          keys.delete(value);
        }
      }
    }
  }

  #bury(key: string, version: string | undefined): void {
    if (version === undefined) {
      return;
    }
    this.#tombstones.delete(key);
    this.#tombstones.set(key, version);
    if (this.#tombstones.size > MAX_TOMBSTONES) {
      for (const [oldest] of this.#tombstones) {
        this.#tombstones.delete(oldest);
        break;
      }
    }
  }
}

/** The same object in the same state. */
function isSame({ metadata: a }: KubeObject, { metadata: b }: KubeObject): boolean {
  return a.uid === b.uid && compareResourceVersions(a.resourceVersion, b.resourceVersion) === 0;
}
