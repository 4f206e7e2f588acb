import type { Pod } from '../kube/core-v1.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { type Dependent, dependentKeyIn, newDependent } from './dependent.ts';
import { HostObjectFollower } from './host-object-follower.ts';
import { BY_MANAGER, type FollowedObject, type HostObjectSource, type HostRef } from './host-objects.ts';
import { findReferences, type Reference } from '../pods/references.ts';

interface User {
  uid: string;
  node: string;
  /** In whose name each dependent is read: the pod's node, or {@link BY_MANAGER} where only a policy refers to it. */
  readers: ReadonlyMap<string, string>;
  /** Optional objects whose absence was reported. */
  told: Set<string>;
}

export interface DependentIndexOptions {
  objects: HostObjectSource;
  /** The namespace of the member in which a pod is, or is to be; undefined: nowhere. */
  placeOf: (pod: Pod) => string | undefined;
  /** The dependent is new, has a new user, or its object changed. Called when everything has been noted. */
  changed: (dependentKey: string) => void;
  /** The last user of the dependent is gone. */
  unused: (dependentKey: string) => void;
}

/** A dependent with the way a pod refers to it. */
export interface Need extends Pick<Reference, 'optional' | 'pulling'> {
  dependent: Dependent;
  /** An override policy refers to it, and the pod on the host does not. */
  byPolicy: boolean;
}

/** Who needs what: the pods of a member on one side, the host's objects that they refer to on the other. */
export class DependentIndex {
  readonly #o: DependentIndexOptions;
  readonly #users = new Map<string, User>();
  readonly #dependents = new Map<string, Dependent>();

  constructor(options: DependentIndexOptions) {
    this.#o = options;
  }

  get(ref: HostRef, memberNamespace: string | undefined): Dependent | undefined {
    return this.#dependents.get(dependentKeyIn(ref, memberNamespace));
  }

  /** One of them, wherever its copy belongs. */
  any({ kind, namespace, name }: HostRef): Dependent | undefined {
    for (const one of this.#dependents.values()) {
      if (one.kind === kind && one.namespace === namespace && one.name === name) return one;
    }
    return undefined;
  }

  byKey(dependentKey: string): Dependent | undefined {
    return this.#dependents.get(dependentKey);
  }

  keys(): IterableIterator<string> {
    return this.#dependents.keys();
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
    const readerOf = (dependentKey: string): string => (rendered === pod || own.has(dependentKey) ? node : BY_MANAGER);
    const readers = new Map(
      keysOf(podKey, place, references).map((dependentKey) => [dependentKey, readerOf(dependentKey)]),
    );
    const before = this.#users.get(podKey);
    // A pod of the same name may be on another node.
    if (before !== undefined && before.node !== node) this.release(podKey);
    this.#users.set(podKey, { uid, node, readers, told: before?.uid === uid ? before.told : new Set() });
    const needed = references.map(({ kind, name, optional, pulling }): Need => {
      const dependent = this.#dependent({ kind, namespace, name }, place);
      return { dependent, optional, pulling, byPolicy: readers.get(dependent.key) !== node };
    });
    const changed = needed.filter(
      ({ dependent }) => !dependent.users.has(podKey) || (wanting && !dependent.wanting.has(podKey)),
    );
    for (const { dependent } of needed) {
      const reader = readers.get(dependent.key) ?? node;
      const former = dependent.users.has(podKey) ? before?.readers.get(dependent.key) : undefined;
      if (former === reader) continue;
      dependent.source.need(reader);
      if (former !== undefined) dependent.source.leave(former);
    }
    for (const { dependent } of changed) {
      dependent.users.add(podKey);
      if (wanting) dependent.wanting.add(podKey);
    }
    for (const [dependentKey, reader] of before?.readers ?? []) {
      if (!readers.has(dependentKey)) this.#drop(dependentKey, podKey, reader);
    }
    for (const { dependent } of changed) this.#o.changed(dependent.key);
    return needed;
  }

  release(podKey: string): void {
    const user = this.#users.get(podKey);
    if (user === undefined) return;
    this.#users.delete(podKey);
    for (const [dependentKey, reader] of user.readers) this.#drop(dependentKey, podKey, reader);
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
  forget(dependent: Dependent): void {
    this.#dependents.delete(dependent.key);
    dependent.source.stop();
  }

  /** Stops following all objects. */
  stop(): void {
    for (const dependent of this.#dependents.values()) dependent.source.stop();
  }

  #dependent(ref: HostRef, place: string | undefined): Dependent {
    const dependentKey = dependentKeyIn(ref, place);
    let dependent = this.#dependents.get(dependentKey);
    if (dependent === undefined) {
      const follow = (node: string): FollowedObject =>
        this.#o.objects.follow(ref, node, () => this.#o.changed(dependentKey));
      dependent = newDependent(ref, place, new HostObjectFollower(follow));
      this.#dependents.set(dependentKey, dependent);
    }
    return dependent;
  }

  #drop(dependentKey: string, podKey: string, reader: string): void {
    const dependent = this.#dependents.get(dependentKey);
    if (dependent === undefined) return;
    if (dependent.users.has(podKey)) dependent.source.leave(reader);
    for (const set of [dependent.users, dependent.wanting, dependent.waiting]) set.delete(podKey);
    if (dependent.users.size === 0) this.#o.unused(dependentKey);
  }
}

function keysOf(podKey: string, place: string | undefined, references: readonly Reference[]): string[] {
  const { namespace = '' } = splitKey(podKey);
  return references.map((reference) => dependentKeyIn({ ...reference, namespace }, place));
}
