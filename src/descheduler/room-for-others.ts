import type { Pod } from '../kube/core-v1.ts';
import { uidOf } from '../kube/object.ts';
import { CAUGHT_UP_MS } from '../kube/reflector-timings.ts';
import { mayBeDone } from './eviction-refusal.ts';
import { type Room, RoomLeft, type RoomLeftOptions, type SetLook } from './room-left.ts';

/** A ReplicaSet for which none could make room is asked about anew after so long (ms). */
const NO_ROOM_MS = 15_000;
/** So many that are tried at a look and do not go are enough: the others have their turns at the next ones. */
const IN_VAIN = 10;

/** `noPlace`: the one that would come has none. Undefined: it stays by itself, or the host does not let it go. */
export type MadeRoom = 'went' | 'noPlace' | undefined;

interface Tried {
  /** Monotonic ms. */
  readonly at: number;
  /** The host gave no answer: it may have gone. */
  readonly isUnheard: boolean;
}

/** Of the pods that a ReplicaSet released lets go as many as others come for, each in its turn. */
export class RoomForOthers {
  readonly #monotonic: () => number;
  readonly #left: RoomLeft;
  /** By key of a ReplicaSet for which none could make room, until when that is not tried again, in monotonic ms. */
  readonly #restsUntil = new Map<string, number>();
  /** By key of a ReplicaSet, how many were tried in vain since one went, or since it rested. */
  readonly #inVain = new Map<string, number>();
  /** By UID of a pod that did not go, as far as is known, when it was tried last. */
  readonly #tried = new Map<string, Tried>();

  constructor(options: RoomLeftOptions) {
    this.#monotonic = options.monotonic;
    this.#left = new RoomLeft(options);
  }

  /** At each look, so that it is seen who comes. */
  look(setKey: string, look: SetLook): Room {
    const room = this.#left.look(setKey, look);
    return (this.#restsUntil.get(setKey) ?? 0) > this.#monotonic() ? { ...room, mayGo: 0 } : room;
  }

  /**
   * As many of them as may, those last that did not go before. Where the next one that comes would have no place, none of those after it has one: all are
   * alike. `tryOne` is told how many come in the room of those before it, and `failed` what it throws. `goesOn`: whether more may be tried by what was
   * judged.
   */
  async make<T extends { readonly pod: Pod }>(
    setKey: string,
    steps: readonly T[],
    { open, mayGo }: Room,
    tryOne: (step: T, comeBefore: number) => Promise<MadeRoom>,
    failed: (error: unknown) => void,
    goesOn: () => boolean,
  ): Promise<void> {
    const inTurn = this.#inTurn(steps);
    let mayGoYet = mayGo - (steps.length - inTurn.length);
    let mayRest = inTurn.length > 0;
    for (const step of inTurn) {
      if (!goesOn() || mayGoYet <= 0) return;
      const became = await tryOne(step, open + mayGo - mayGoYet).catch((error: unknown) => {
        failed(error);
        mayRest = false;
        return mayBeDone(error) ? 'unheard' : undefined;
      });
      if (became === 'noPlace') break;
      if (became === 'went') {
        mayRest = false;
        this.#inVain.delete(setKey);
      } else this.#tried.set(uidOf(step.pod), { at: this.#monotonic(), isUnheard: became === 'unheard' });
      if (became !== undefined) mayGoYet -= 1;
      else if (this.#triedInVain(setKey) === IN_VAIN) break;
    }
    this.#inVain.delete(setKey);
    if (mayRest) this.#restsUntil.set(setKey, this.#monotonic() + NO_ROOM_MS);
  }

  #triedInVain(setKey: string): number {
    const times = (this.#inVain.get(setKey) ?? 0) + 1;
    this.#inVain.set(setKey, times);
    return times;
  }

  /** One that may have gone has no turn until caches must show whether it did. */
  #inTurn<T extends { readonly pod: Pod }>(steps: readonly T[]): T[] {
    const now = this.#monotonic();
    const tried = (step: T): Tried => this.#tried.get(uidOf(step.pod)) ?? { at: 0, isUnheard: false };
    return steps
      .filter((step) => !tried(step).isUnheard || now - tried(step).at >= CAUGHT_UP_MS)
      .toSorted((a, b) => tried(a).at - tried(b).at);
  }

  /** A pod is gone. `setKey`: the ReplicaSet that released it. */
  gone(pod: Pod, setKey: string | undefined): void {
    this.#tried.delete(uidOf(pod));
    if (setKey !== undefined) this.#left.gone(setKey, pod);
  }

  /** None of its pods is released. */
  forget(setKey: string): void {
    this.#left.forget(setKey);
    this.#inVain.delete(setKey);
  }

  /** What kept others from coming is over, or not known any more. */
  tryAnew(setKey: string): void {
    this.#restsUntil.delete(setKey);
  }
}
