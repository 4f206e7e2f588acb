import { keyOf, type KubeObject } from './object.ts';
import { compareResourceVersions } from './resource-version.ts';

/** How we know that an object is gone: its own DELETED event (`watched`), or a trusted list without it and other inference. */
export type DeleteEvidence = 'watched' | 'relisted';

export interface StoreListener<T> {
  added(object: T): void;
  updated(object: T, old: T): void;
  deleted(object: T, evidence: DeleteEvidence): void;
}

/**
 * What a change to the store turned out to be: `stale` events are older than what is known; `inferred`: another object of
 * that name was deleted later, so this one must be gone too.
 */
export type Outcome = 'applied' | 'duplicate' | 'stale' | 'inferred';

/** Keeps account of what the objects take. */
export interface StoreWeights<T> {
  set(key: string, object: T): void;
  delete(key: string): void;
  /** Of what is remembered beside the objects; false when there is no room for it. */
  hold(bytes: number): boolean;
  drop(bytes: number): void;
}

/** Deleted objects whose late events could still bring them back: reordering happens over short distances. */
const MAX_TOMBSTONES = 1_000;
/** What one takes in memory, in bytes, beside its characters. */
const TOMBSTONE = 160;

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
  readonly #weights: StoreWeights<T> | undefined;

  /** `weights` are told what comes and goes. */
  constructor(
    listener: StoreListener<T>,
    indexes: Record<string, (o: T) => readonly string[]> = {},
    weights?: StoreWeights<T>,
  ) {
    this.#listener = listener;
    this.#weights = weights;
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

  /** The values that objects are found under now. */
  indexValues(index: string): Iterable<string> {
    return this.#index(index).keys();
  }

  byIndex(index: string, value: string): readonly T[] {
    const found: T[] = [];
    for (const key of this.#index(index).get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) {
        found.push(object);
      }
    }
    return found;
  }

  /** The same, one by one: who needs only the first of thousands takes no longer for the others. */
  *eachByIndex(index: string, value: string): Generator<T> {
    for (const key of this.#index(index).get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) yield object;
    }
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

  /**
   * A DELETED event with the object's last state. It says nothing of another object of that name, but that it can only have
   * been there before or after: then a later one proves that the one we know is gone, an earlier one is news of the past.
   */
  delete(object: KubeObject): Outcome {
    const key = keyOf(object);
    const version = object.metadata.resourceVersion;
    const old = this.#objects.get(key);
    const order = compareResourceVersions(version, old?.metadata.resourceVersion ?? this.#tombstones.get(key));
    const isAnother = old !== undefined && old.metadata.uid !== object.metadata.uid;
    if ((order !== undefined && order < 0) || (isAnother && order === undefined)) {
      return 'stale';
    }
    if (old !== undefined) this.#drop(key, old);
    this.#bury(key, version);
    if (old === undefined) {
      return 'duplicate';
    }
    this.#listener.deleted(old, isAnother ? 'relisted' : 'watched');
    return isAnother ? 'inferred' : 'applied';
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
    for (const key of this.#tombstones.keys()) this.#unbury(key);
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
    this.#weights?.set(key, object);
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

  #index(name: string): Map<string, Set<string>> {
    const keys = this.#indexes.get(name);
    if (keys === undefined) {
      throw new Error(`no index named ${name}`);
    }
    return keys;
  }

  #drop(key: string, old: T): void {
    this.#unindex(key, old);
    this.#objects.delete(key);
    this.#weights?.delete(key);
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
    this.#unbury(key);
    if (this.#weights?.hold(tombstoneBytes(key, version)) === false) return;
    this.#tombstones.set(key, version);
    if (this.#tombstones.size > MAX_TOMBSTONES) {
      for (const [oldest] of this.#tombstones) {
        this.#unbury(oldest);
        break;
      }
    }
  }

  #unbury(key: string): void {
    const version = this.#tombstones.get(key);
    if (version === undefined) return;
    this.#tombstones.delete(key);
    this.#weights?.drop(tombstoneBytes(key, version));
  }
}

function tombstoneBytes(key: string, version: string): number {
  return TOMBSTONE + 2 * (key.length + version.length);
}

/** The same object in the same state. */
export function isSame({ metadata: a }: KubeObject, { metadata: b }: KubeObject): boolean {
  return a.uid === b.uid && compareResourceVersions(a.resourceVersion, b.resourceVersion) === 0;
}
