import type { Pod } from '../kube/core-v1.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { type Entry, entryKeyIn, newEntry } from './entry.ts';
import { EntrySource } from './entry-source.ts';
import { BY_MANAGER, type FollowedObject, type HostObjectSource, type HostRef } from './host-objects.ts';
import { findReferences, type Reference } from '../pods/references.ts';

interface User {
  uid: string;
  node: string;
  /** In whose name each entry is read: the pod's node, or {@link BY_MANAGER} where only a policy refers to it. */
  readers: ReadonlyMap<string, string>;
  /** Optional objects whose absence was reported. */
  told: Set<string>;
}

export interface EntriesOptions {
  objects: HostObjectSource;
  /** The namespace of the member in which a pod is, or is to be; undefined: nowhere. */
  placeOf: (pod: Pod) => string | undefined;
  /** The entry is new, has a new user, or its object changed. Called when everything has been noted. */
  changed: (entryKey: string) => void;
  /** The last user of the entry is gone. */
  unused: (entryKey: string) => void;
}

/** An entry with the way a pod refers to it. */
export interface Need extends Pick<Reference, 'optional' | 'pulling'> {
  entry: Entry;
  /** An override policy refers to it, and the pod on the host does not. */
  byPolicy: boolean;
}

/** Who needs what: the pods of a member on one side, the host's objects that they refer to on the other. */
export class Entries {
  readonly #o: EntriesOptions;
  readonly #users = new Map<string, User>();
  readonly #entries = new Map<string, Entry>();

  constructor(options: EntriesOptions) {
    this.#o = options;
  }

  get(ref: HostRef, memberNamespace: string | undefined): Entry | undefined {
    return this.#entries.get(entryKeyIn(ref, memberNamespace));
  }

  /** One of them, wherever its copy belongs. */
  any({ kind, namespace, name }: HostRef): Entry | undefined {
    for (const one of this.#entries.values()) {
      if (one.kind === kind && one.namespace === namespace && one.name === name) return one;
    }
    return undefined;
  }

  byKey(entryKey: string): Entry | undefined {
    return this.#entries.get(entryKey);
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  /**
   * Notes what a pod refers to; `wanting` says that it is to run in the member, or does. `rendered` is the pod as it
   * refers to objects there.
   */
  track(pod: Pod, wanting: boolean, rendered: Pod = pod): Need[] {
    const podKey = keyOf(pod);
    const { namespace = '', uid = '' } = pod.metadata;
    const node = pod.spec?.nodeName ?? '';
    const references = findReferences(rendered);
    const place = this.#o.placeOf(pod);
    const own = new Set(rendered === pod ? [] : keysOf(podKey, place, findReferences(pod)));
    const readerOf = (entryKey: string): string => (rendered === pod || own.has(entryKey) ? node : BY_MANAGER);
    const readers = new Map(keysOf(podKey, place, references).map((entryKey) => [entryKey, readerOf(entryKey)]));
    const before = this.#users.get(podKey);
    // A pod of the same name may be on another node.
    if (before !== undefined && before.node !== node) this.release(podKey);
    this.#users.set(podKey, { uid, node, readers, told: before?.uid === uid ? before.told : new Set() });
    const needed = references.map(({ kind, name, optional, pulling }): Need => {
      const entry = this.#entry({ kind, namespace, name }, place);
      return { entry, optional, pulling, byPolicy: readers.get(entry.key) !== node };
    });
    const changed = needed.filter(({ entry }) => !entry.users.has(podKey) || (wanting && !entry.wanting.has(podKey)));
    for (const { entry } of needed) {
      const reader = readers.get(entry.key) ?? node;
      const former = entry.users.has(podKey) ? before?.readers.get(entry.key) : undefined;
      if (former === reader) continue;
      entry.source.need(reader);
      if (former !== undefined) entry.source.leave(former);
    }
    for (const { entry } of changed) {
      entry.users.add(podKey);
      if (wanting) entry.wanting.add(podKey);
    }
    for (const [entryKey, reader] of before?.readers ?? []) {
      if (!readers.has(entryKey)) this.#drop(entryKey, podKey, reader);
    }
    for (const { entry } of changed) this.#o.changed(entry.key);
    return needed;
  }

  release(podKey: string): void {
    const user = this.#users.get(podKey);
    if (user === undefined) return;
    this.#users.delete(podKey);
    for (const [entryKey, reader] of user.readers) this.#drop(entryKey, podKey, reader);
  }

  /** True the first time it is asked for that pod (by UID) and object. */
  isNews(podKey: string, { kind, name }: HostRef): boolean {
    const told = this.#users.get(podKey)?.told;
    const key = `${kind}/${name}`;
    if (told === undefined || told.has(key)) return false;
    told.add(key);
    return true;
  }

  /** Nobody needs it any more: stops following the host's object. */
  forget(entry: Entry): void {
    this.#entries.delete(entry.key);
    entry.source.stop();
  }

  /** Stops following all objects. */
  stop(): void {
    for (const entry of this.#entries.values()) entry.source.stop();
  }

  #entry(ref: HostRef, place: string | undefined): Entry {
    const entryKey = entryKeyIn(ref, place);
    let entry = this.#entries.get(entryKey);
    if (entry === undefined) {
      const follow = (node: string): FollowedObject =>
        this.#o.objects.follow(ref, node, () => this.#o.changed(entryKey));
      entry = newEntry(ref, place, new EntrySource(follow));
      this.#entries.set(entryKey, entry);
    }
    return entry;
  }

  #drop(entryKey: string, podKey: string, reader: string): void {
    const entry = this.#entries.get(entryKey);
    if (entry === undefined) return;
    if (entry.users.has(podKey)) entry.source.leave(reader);
    for (const set of [entry.users, entry.wanting, entry.waiting]) set.delete(podKey);
    if (entry.users.size === 0) this.#o.unused(entryKey);
  }
}

function keysOf(podKey: string, place: string | undefined, references: readonly Reference[]): string[] {
  const { namespace = '' } = splitKey(podKey);
  return references.map((reference) => entryKeyIn({ ...reference, namespace }, place));
}
