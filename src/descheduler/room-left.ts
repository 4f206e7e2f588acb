import type { Pod } from '../kube/core-v1.ts';
import { uidOf } from '../kube/object.ts';
import type { MovingOptions } from './moving-options.ts';

/**
 * A quota counts a pod that is going until its grace period has passed once more after its end (`QuotaV1Pod`). How long it may take from then on until
 * the quota is counted anew, and the ReplicaSet, which waits ever longer, has tried again, in ms.
 */
const FREED_MS = 600_000;
/** Its room is used, or was for nothing. */
const OVER = -Infinity;

export type RoomLeftOptions = Pick<MovingOptions, 'clock' | 'monotonic'>;

/** A look at a ReplicaSet. */
export interface SetLook {
  /** Pods that were released from it, those that are going among them. */
  readonly released: readonly Pod[];
  /** Pods that it has. */
  readonly owned: readonly Pod[];
  /** How many fewer it has than it wants. */
  readonly missing: number;
}

/** What a look finds. */
export interface Room {
  /** How many others are yet to come in room that was left, or will be. */
  readonly open: number;
  /** How many more may go for others: one until it is seen that another one comes for it, then as many at once as have come. */
  readonly mayGo: number;
}

interface Known {
  /** UIDs of all of them at the last look; undefined before the first one. */
  had: ReadonlySet<string> | undefined;
  /** By UID of one that is going or gone, until when its room may yet be used, in monotonic ms. */
  readonly left: Map<string, number>;
  /** How many others came in such room, one after the other, since it was last for nothing. */
  came: number;
}

/**
 * Room that released pods leave to their ReplicaSets, and whether other pods come in it. It may be no quota that keeps these from making any: a webhook
 * or PodSecurity does so whatever goes.
 */
export class RoomLeft {
  readonly #o: RoomLeftOptions;
  /** By key of the ReplicaSet. */
  readonly #sets = new Map<string, Known>();

  constructor(options: RoomLeftOptions) {
    this.#o = options;
  }

  look(setKey: string, { released, owned, missing }: SetLook): Room {
    const known = this.#sets.get(setKey) ?? { had: undefined, left: new Map<string, number>(), came: 0 };
    this.#sets.set(setKey, known);
    const { had, left } = known;
    const now = this.#o.monotonic();
    const there = new Set([...released, ...owned].map(uidOf));
    for (const pod of released) {
      if (pod.metadata.deletionTimestamp === undefined || left.has(uidOf(pod))) continue;
      left.set(uidOf(pod), now + this.#usedInMs(pod));
    }
    let made = had === undefined ? 0 : owned.filter((pod) => !had.has(uidOf(pod))).length;
    known.had = there;
    if (missing <= 0) known.came = 0;
    let open = 0;
    for (const [uid, until] of left) {
      if (until === OVER) {
        if (!there.has(uid)) left.delete(uid);
        continue;
      }
      const isUsed = missing > 0 && made > 0;
      if (missing > 0 && !isUsed && !(until <= now)) {
        open += 1;
        continue;
      }
      left.set(uid, OVER);
      made -= 1;
      known.came = isUsed ? known.came + 1 : 0;
    }
    return { open, mayGo: Math.min(missing, Math.max(1, known.came)) - open };
  }

  /** A released pod is gone: no quota counts it. */
  gone(setKey: string, pod: Pod): void {
    const left = this.#sets.get(setKey)?.left;
    const until = Math.min(left?.get(uidOf(pod)) ?? Infinity, this.#o.monotonic() + FREED_MS);
    left?.set(uidOf(pod), until);
  }

  forget(setKey: string): void {
    this.#sets.delete(setKey);
  }

  /** Of one that was going before this process looked, a clock that is wrong may say anything. */
  #usedInMs({ metadata: { deletionTimestamp = '', deletionGracePeriodSeconds = 0 } }: Pod): number {
    const graceMs = deletionGracePeriodSeconds * 1_000;
    const forMs = Date.parse(deletionTimestamp) + graceMs + FREED_MS - this.#o.clock();
    return Math.max(0, Math.min(forMs, 2 * graceMs + FREED_MS));
  }
}
