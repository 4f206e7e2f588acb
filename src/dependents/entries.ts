import type { Pod } from '../api/wire.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { type Entry, entryKeyOf, newEntry } from './entry.ts';
import { EntrySource } from './entry-source.ts';
import type { FollowedObject, HostObjectSource, HostRef } from './host-objects.ts';
import { findReferences, type Reference } from './references.ts';

interface User {
  uid: string;
  node: string;
  references: readonly Reference[];
  /** Optional objects whose absence was reported. */
  told: Set<string>;
}

export interface EntriesOptions {
  objects: HostObjectSource;
  /** The entry is new, has a new user, or its object changed. Called when everything has been noted. */
  changed: (entryKey: string) => void;
  /** The last user of the entry is gone. */
  unused: (entryKey: string) => void;
}

/** Who needs what: the pods of a member on one side, the host's objects that they refer to on the other. */
export class Entries {
  readonly #o: EntriesOptions;
  readonly #users = new Map<string, User>();
  readonly #entries = new Map<string, Entry>();

  constructor(options: EntriesOptions) {
    this.#o = options;
  }

  get(ref: HostRef): Entry | undefined {
    return this.#entries.get(entryKeyOf(ref));
  }

  byKey(entryKey: string): Entry | undefined {
    return this.#entries.get(entryKey);
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  /**
   * Notes what a pod refers to; `wanting` says that it is to run in the member, or does. Answers the entries with the
   * way they are referred to.
   */
  track(pod: Pod, wanting: boolean): { entry: Entry; optional: boolean }[] {
    const podKey = keyOf(pod);
    const { namespace = '', uid = '' } = pod.metadata;
    const node = pod.spec?.nodeName ?? '';
    const references = findReferences(pod);
    const before = this.#users.get(podKey);
    // A pod of the same name may be on another node.
    if (before !== undefined && before.node !== node) this.release(podKey);
    this.#users.set(podKey, { uid, node, references, told: before?.uid === uid ? before.told : new Set() });
    const needed = references.map(({ kind, name, optional }) => ({
      entry: this.#entry({ kind, namespace, name }),
      optional,
    }));
    const changed = needed.filter(({ entry }) => !entry.users.has(podKey) || (wanting && !entry.wanting.has(podKey)));
    for (const { entry } of changed) {
      if (!entry.users.has(podKey)) entry.source.need(node);
      entry.users.add(podKey);
      if (wanting) entry.wanting.add(podKey);
    }
    const kept = new Set(keysOf(podKey, references));
    for (const entryKey of keysOf(podKey, before?.references ?? [])) {
      if (!kept.has(entryKey)) this.#drop(entryKey, podKey, node);
    }
    for (const { entry } of changed) this.#o.changed(entryKeyOf(entry));
    return needed;
  }

  release(podKey: string): void {
    const user = this.#users.get(podKey);
    if (user === undefined) return;
    this.#users.delete(podKey);
    for (const entryKey of keysOf(podKey, user.references)) this.#drop(entryKey, podKey, user.node);
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
    this.#entries.delete(entryKeyOf(entry));
    entry.source.stop();
  }

  /** Stops following all objects. */
  stop(): void {
    for (const entry of this.#entries.values()) entry.source.stop();
  }

  #entry(ref: HostRef): Entry {
    const entryKey = entryKeyOf(ref);
    let entry = this.#entries.get(entryKey);
    if (entry === undefined) {
      const follow = (node: string): FollowedObject =>
        this.#o.objects.follow(ref, node, () => this.#o.changed(entryKey));
      entry = newEntry(ref, new EntrySource(follow));
      this.#entries.set(entryKey, entry);
    }
    return entry;
  }

  #drop(entryKey: string, podKey: string, node: string): void {
    const entry = this.#entries.get(entryKey);
    if (entry === undefined) return;
    if (entry.users.has(podKey)) entry.source.leave(node);
    for (const set of [entry.users, entry.wanting, entry.waiting]) set.delete(podKey);
    if (entry.users.size === 0) this.#o.unused(entryKey);
  }
}

function keysOf(podKey: string, references: readonly Reference[]): string[] {
  const { namespace = '' } = splitKey(podKey);
  return references.map((reference) => entryKeyOf({ ...reference, namespace }));
}
