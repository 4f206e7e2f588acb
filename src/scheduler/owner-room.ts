import { entryBytes } from '../kube/cache-account.ts';
import { CacheRoom, type CacheShare } from '../kube/cache-room.ts';
import { keyOf, type KubeObject, splitKey } from '../kube/object.ts';
import { Scale } from '../kube/scale.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { bareOwner } from './bare-owner.ts';

/** What owners of all kinds that are not Kubernetes' own may take in memory together, beside those of which only the name is kept. */
const ROOM_BYTES = 64 * 1024 * 1024;
/** No namespace takes more than this part of it. */
const LARGEST_PART = 1 / 4;
const NO_ROOM = 'the owners in its namespace take as much memory as they may, so its labels are not kept';

/**
 * The room for owners of kinds that anybody may fill, by namespaces: who fills the part of one leaves the others theirs, see {@link CacheRoom}.
 * Of an owner that has no room no more is kept than which object it is, so that only its own pods have to wait.
 */
export class OwnerRoom {
  readonly #room: CacheRoom;
  readonly #scale = new Scale();
  /** By namespace; '' for what is in none. */
  readonly #parts = new Map<string, CacheShare>();

  constructor(bytes = ROOM_BYTES) {
    this.#room = new CacheRoom(bytes);
  }

  /** In bytes. */
  weigh(object: TypedObject): number {
    return entryBytes(keyOf(object)) + this.#scale.weigh(object);
  }

  fits(namespace: string, more: number): boolean {
    const part = this.#part(namespace);
    return more <= 0 || (part.used + more <= this.#room.bytes * LARGEST_PART && part.fits(more));
  }

  change(namespace: string, more: number): void {
    const part = this.#part(namespace);
    part.change(more);
    if (part.used > 0) return;
    part.end();
    this.#parts.delete(namespace);
  }

  #part(namespace: string): CacheShare {
    const part = this.#parts.get(namespace) ?? this.#room.share();
    this.#parts.set(namespace, part);
    return part;
  }
}

/** What the owners of one kind take of an {@link OwnerRoom}. */
export class OwnerAccount {
  readonly #room: OwnerRoom;
  /** By key; of those that are kept as a whole. */
  readonly #bytes = new Map<string, number>();
  /** What the others would take. */
  readonly #without = new Map<string, number>();

  constructor(room: OwnerRoom) {
    this.#room = room;
  }

  /** What is to be kept of an owner, in the place of what was: all of it, or which object it is. */
  keep(owner: TypedObject): TypedObject {
    const key = keyOf(owner);
    const bytes = this.#room.weigh(owner);
    const fits = this.#room.fits(namespaceOf(key), bytes - (this.#bytes.get(key) ?? 0));
    this.#set(key, fits ? bytes : 0);
    if (fits) return owner;
    this.#without.set(key, bytes);
    return bareOwner(owner, NO_ROOM);
  }

  /** Whether any of those that had none would have room now. */
  get hasRoomAgain(): boolean {
    const least = new Map<string, number>();
    for (const [key, bytes] of this.#without) {
      const namespace = namespaceOf(key);
      least.set(namespace, Math.min(bytes, least.get(namespace) ?? Infinity));
    }
    return [...least].some(([namespace, bytes]) => this.#room.fits(namespace, bytes));
  }

  forget(owner: KubeObject): void {
    this.#set(keyOf(owner), 0);
  }

  /** There are no others than these. */
  retain(keys: Pick<ReadonlySet<string>, 'has'>): void {
    for (const key of this.#keys()) if (!keys.has(key)) this.#set(key, 0);
  }

  end(): void {
    for (const key of this.#keys()) this.#set(key, 0);
  }

  #keys(): readonly string[] {
    return [...this.#bytes.keys(), ...this.#without.keys()];
  }

  #set(key: string, bytes: number): void {
    const more = bytes - (this.#bytes.get(key) ?? 0);
    this.#without.delete(key);
    if (bytes === 0) this.#bytes.delete(key);
    else this.#bytes.set(key, bytes);
    this.#room.change(namespaceOf(key), more);
  }
}

function namespaceOf(key: string): string {
  return splitKey(key).namespace ?? '';
}
