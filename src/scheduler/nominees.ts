import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { CapacityOf } from './member-fit.ts';
import type { HeldRooms } from './held-rooms.ts';

export interface NomineesOptions {
  readonly capacityOf: CapacityOf;
  readonly heldRooms: HeldRooms;
  /** Whether the node stands for a member. */
  readonly isVirtual: (nodeName: string) => boolean;
  /** Pods of the host that are bound to the node. */
  readonly podsOn: (nodeName: string) => readonly Pod[];
  /** The node to which the watch shows the pod to be nominated. */
  readonly nominationOf: (pod: Pod) => string | undefined;
  /** In ms. */
  readonly monotonic: () => number;
}

/** Room is held so long, in ms; longer than kube-scheduler leaves a pod that waits without another try. */
const HOLD_MS = 600_000;
const MOST = 1_024;
/** By then the pod shows to which node it was nominated, in ms. */
const NOMINATED_MS = 10_000;
/**
 * Within one attempt questions come one right after the other, in ms. Another attempt that comes so soon, and proposes the same victims,
 * may have them as well: kube-scheduler evicts nobody twice.
 */
const SAME_ATTEMPT_MS = 900;
/**
 * For one that lost its nomination before its victims left, in ms. kube-scheduler comes back to it after the next event of the host. There may
 * be none but that by which waiting pods are waked every 20 s (waiting-pods.ts); by then its rest, of 10 s at the most, is over.
 */
const NEXT_TRY_MS = 25_000;
/** For a question gangs are not lifted again for so many times as long as it took to lift them and to put them back. */
const REST = 4;
/** Nobody is in a hurry whose question was asked with gangs lifted so short a time ago, in ms: so long pods may wait to be asked about. */
const PATIENCE_MS = 20_000;

interface Nominee {
  readonly pod: Pod;
  readonly node: string;
  /** The watch does not show its nomination, or not any more: until when it may, in monotonic ms. */
  readonly until?: number;
}

interface Asked {
  /** The whole pod. */
  readonly pod: Pod;
  /** UIDs of the victims by node. */
  readonly victims: ReadonlyMap<string, readonly string[]>;
  /** Monotonic, in ms. */
  readonly at: number;
}

/**
 * Pods for which others are being evicted behind a virtual node: what these leave is set aside until the pod is bound, as
 * kube-scheduler sets it aside on the node as a whole. Only pods of higher priority may have it.
 */
export class Nominees {
  readonly #o: NomineesOptions;
  /** Pods that victims were named for, by UID. */
  readonly #asked = new LRUCache<string, Asked>({
    ...atMost(MOST),
    dispose: ({ victims }, uid) => this.#unname(uid, victims),
  });
  /** What no scheduler heard of, with what it had taken the place of. */
  readonly #unheard = new WeakMap<Asked, Asked | undefined>();
  /** By UID of a victim, the UIDs of the pods that it was named for. */
  readonly #namedFor = new Map<string, Set<string>>();
  /** By UID. */
  readonly #held = new Map<string, Nominee>();
  /** Monotonic, in ms. */
  #gangsAgainAt = 0;
  /** When a question about a pod was asked with gangs lifted, by its UID, in monotonic ms. */
  readonly #askedWithout = new LRUCache<string, number>(atMost(MOST));

  constructor(options: NomineesOptions) {
    this.#o = options;
  }

  /**
   * Others are about to be evicted for the pod. Which of these nodes it gets stands in its status in a moment.
   * @returns to be called when nobody is evicted after all, as no scheduler heard of it: what was named for the pod before counts again
   */
  asked(pod: Pod, victims: ReadonlyMap<string, readonly string[]>): () => void {
    const { uid: own = '' } = pod.metadata;
    const former = this.#asked.peek(own);
    const asked = { pod, victims, at: this.#o.monotonic() };
    this.#name(own, asked);
    return () => {
      this.#unheard.set(asked, former);
      if (this.#asked.peek(own) !== asked) return;
      let heard = former;
      while (heard !== undefined && this.#unheard.has(heard)) heard = this.#unheard.get(heard);
      if (heard === undefined) this.#asked.delete(own);
      else this.#name(own, heard);
    };
  }

  /**
   * Whether these are the very victims that were named for the pod a moment ago: where two extenders are asked about a pod, as
   * manifests/scheduler have it for marked ones, the second question shows what the answer to the first one left.
   */
  wereJustNamed({ metadata }: Pod, victims: ReadonlyMap<string, { readonly uids: readonly string[] }>): boolean {
    const asked = this.#asked.peek(metadata.uid ?? '');
    if (asked === undefined || this.#o.monotonic() - asked.at > SAME_ATTEMPT_MS) return false;
    return asked.victims.size === victims.size && [...victims].every(([node, { uids }]) => hasOnly(asked, node, uids));
  }

  /**
   * Whether those that were named for the node it is nominated to still take room there. The scheduler knows that of the host's
   * own pods only, and these are gone when the caches that answer here still show their copies. Right after they were named the
   * question may be older than the nomination, or the scheduler may have taken it back meanwhile.
   */
  waitsForVictims({ metadata, status }: Pod): boolean {
    const asked = this.#asked.get(metadata.uid ?? '');
    if (asked === undefined) return false;
    const node = status?.nominatedNodeName ?? '';
    const isNew = this.#o.monotonic() - asked.at <= NOMINATED_MS;
    if (node !== '') return isNew ? this.#holdsAny(node, asked) : this.#isLeftByAny(node, asked);
    if (!isNew) return false;
    return [...asked.victims.keys()].some((one) => this.#holdsAny(one, asked));
  }

  /** The same, and whether others of lower priority leave the node: for whom, only the process knew that named them. */
  waitsForRoom(pod: Pod): boolean {
    const node = pod.status?.nominatedNodeName ?? '';
    if (node === '' || !this.#o.isVirtual(node)) return false;
    const isLeaving = (one: Pod): boolean =>
      one.metadata.deletionTimestamp !== undefined && priorityOf(one) < priorityOf(pod);
    return this.waitsForVictims(pod) || this.#o.podsOn(node).some(isLeaving);
  }

  /** As the watch shows it, which is less than the whole pod. */
  podSeen({ metadata, spec, status }: Pod): void {
    const { uid = '', deletionTimestamp } = metadata;
    const node = status?.nominatedNodeName ?? '';
    const isNominee = spec.nodeName === undefined && deletionTimestamp === undefined && node !== '';
    if (!isNominee) {
      const mayComeBack = spec.nodeName === undefined && deletionTimestamp === undefined;
      if (mayComeBack && this.#loses(uid)) return;
      if (spec.nodeName !== undefined || this.#held.has(uid)) this.#forget(uid, spec.nodeName === undefined);
      return;
    }
    const pod = this.#held.get(uid)?.pod ?? this.#asked.get(uid)?.pod;
    if (pod !== undefined) this.#hold(uid, { pod, node });
  }

  /**
   * Whatever room the pod was nominated to, if that is behind a virtual node. The whole pod, as a scheduler sends it: it may know of a
   * nomination before the watch does, or still of one that is no more.
   */
  hold(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const node = pod.status?.nominatedNodeName ?? '';
    if (node === '' || pod.spec.nodeName !== undefined) return;
    if (this.#o.nominationOf(pod) === node) {
      this.#hold(uid, { pod, node });
      return;
    }
    const held = this.#held.get(uid);
    const until = held?.node === node ? held.until : this.#o.monotonic() + NOMINATED_MS;
    this.#hold(uid, until === undefined ? { pod, node } : { pod, node, until });
  }

  gone(uid: string): void {
    this.#asked.delete(uid);
    this.#forget(uid, true);
  }

  /**
   * Those that were named a moment ago for pods which come before this one, of which it is not known yet which node they get: what they
   * leave is not for this one as well.
   */
  namedForOthers(asking: Pod): (victimUid: string) => boolean {
    const since = this.#o.monotonic() - NOMINATED_MS;
    const comesBefore = (uid: string): boolean => {
      if (uid === asking.metadata.uid || this.#held.has(uid)) return false;
      const asked = this.#asked.peek(uid);
      return asked !== undefined && asked.at >= since && priorityOf(asked.pod) >= priorityOf(asking);
    };
    return (victimUid) => {
      const askers = this.#namedFor.get(victimUid);
      if (askers !== undefined) for (const asker of askers) if (comesBefore(asker)) return true;
      return false;
    };
  }

  /**
   * What others leave for those of lower priority counts as free meanwhile, and whatever it holds for itself. A place that one of them
   * was told is nobody else's.
   */
  whileAside<T>(asking: Pod, ask: () => T): T {
    return this.#o.heldRooms.whileLifted(this.#ownAndLower(asking), ask);
  }

  /**
   * The same, and what gangs of lower priority hold counts as free, too: for a pod that finds no room without it, as it keeps a gang from
   * its place. Undefined: no such gang holds any, or so many pods do that they cannot be lifted all the time: see {@link restOfGangs}.
   */
  whileGangsAside<T>(asking: Pod, ask: () => T): T | undefined {
    const { heldRooms, monotonic } = this.#o;
    const since = monotonic();
    if (since < this.#gangsAgainAt) return undefined;
    const lower = heldRooms.gangsBelow(priorityOf(asking));
    if (lower.length === 0) return undefined;
    let asked = 0;
    const answer = heldRooms.whileLifted([...this.#ownAndLower(asking), ...lower], () => {
      const began = monotonic();
      const found = ask();
      asked = monotonic() - began;
      return found;
    });
    const now = monotonic();
    this.#gangsAgainAt = now + (now - since - asked) * REST;
    this.#askedWithout.set(asking.metadata.uid ?? '', now);
    return answer;
  }

  /** The same at all times, whatever it takes: for questions that their scheduler paces. */
  whileAllAside<T>(asking: Pod, ask: () => T): T {
    const { heldRooms } = this.#o;
    return heldRooms.whileLifted([...this.#ownAndLower(asking), ...heldRooms.gangsBelow(priorityOf(asking))], ask);
  }

  /**
   * In so many ms the pod may have what gangs of lower priority hold, which it was not asked about with now. Undefined: no such gang holds
   * any, or that was asked a moment ago.
   */
  restOfGangs(asking: Pod): number | undefined {
    const { heldRooms, monotonic } = this.#o;
    const now = monotonic();
    const wasAsked =
      now - (this.#askedWithout.get(asking.metadata.uid ?? '') ?? Number.NEGATIVE_INFINITY) < PATIENCE_MS;
    if (now >= this.#gangsAgainAt || wasAsked || heldRooms.gangsBelow(priorityOf(asking)).length === 0)
      return undefined;
    return this.#gangsAgainAt - now;
  }

  #name(own: string, asked: Asked): void {
    this.#asked.set(own, asked);
    for (const victim of [...asked.victims.values()].flat()) {
      const askers = this.#namedFor.get(victim);
      if (askers === undefined) this.#namedFor.set(victim, new Set([own]));
      else askers.add(own);
    }
  }

  #unname(own: string, victims: Asked['victims']): void {
    for (const victim of [...victims.values()].flat()) {
      const askers = this.#namedFor.get(victim);
      askers?.delete(own);
      if (askers?.size === 0) this.#namedFor.delete(victim);
    }
  }

  #ownAndLower(asking: Pod): string[] {
    this.#expire();
    const { uid: own = '' } = asking.metadata;
    const lower = [...this.#held]
      .filter(([uid, { pod }]) => uid !== own && priorityOf(pod) < priorityOf(asking))
      .toSorted(([, a], [, b]) => priorityOf(b.pod) - priorityOf(a.pod))
      .map(([uid]) => uid);
    return [own, ...lower];
  }

  #hold(uid: string, nominee: Nominee): void {
    this.#expire();
    if (!this.#o.isVirtual(nominee.node)) return;
    if (!this.#held.has(uid) && this.#held.size >= MOST) return;
    this.#held.set(uid, nominee);
    this.#reserve(uid, nominee);
  }

  #expire(): void {
    const now = this.#o.monotonic();
    for (const [uid, { until }] of this.#held) if (until !== undefined && until <= now) this.#forget(uid, true);
  }

  #reserve(uid: string, { pod, node, until }: Nominee): void {
    const forMs = until === undefined ? HOLD_MS : until - this.#o.monotonic();
    const request = this.#o.capacityOf(node)?.request(pod);
    if (forMs <= 0 || request === undefined || !('key' in request)) return;
    const insteadOf = this.#asked.get(uid)?.victims.get(node) ?? [];
    const priority = priorityOf(pod);
    this.#o.heldRooms.hold('nomination', uid, { node, request, insteadOf, priority }, forMs);
  }

  #holdsAny(node: string, { victims }: Asked): boolean {
    const capacity = this.#o.capacityOf(node);
    return victims.get(node)?.some((uid) => capacity?.holds(uid) === true) === true;
  }

  /** The same, of those that are on their way out, or gone from the host: one that nobody deleted after all is not waited for. */
  #isLeftByAny(node: string, { victims }: Asked): boolean {
    const { capacityOf, podsOn } = this.#o;
    const capacity = capacityOf(node);
    // Nothing is heard of a member that does not answer: what leaves it may take for ever.
    if (capacity?.ready !== true) return false;
    const staying = new Set(
      podsOn(node).flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? (metadata.uid ?? '') : [])),
    );
    return victims.get(node)?.some((uid) => !staying.has(uid) && capacity.holds(uid)) === true;
  }

  /**
   * It is not nominated any more. If others leave for it still, a scheduler found nothing to evict in a node that is as good as free, and
   * comes back to the pod: what they leave is held until then. False: nobody does.
   */
  #loses(uid: string): boolean {
    const [held, asked] = [this.#held.get(uid), this.#asked.get(uid)];
    const now = this.#o.monotonic();
    if (held?.until !== undefined) return held.until > now;
    if (held === undefined || asked === undefined || !this.#holdsAny(held.node, asked)) return false;
    const lost = { ...held, until: now + NEXT_TRY_MS };
    this.#held.set(uid, lost);
    this.#reserve(uid, lost);
    return true;
  }

  /** `frees`: it is not bound, so its room is free again. */
  #forget(uid: string, frees: boolean): void {
    if (this.#held.delete(uid) && frees) this.#o.heldRooms.release(uid, 'nomination');
  }
}

function hasOnly({ victims }: Asked, node: string, uids: readonly string[]): boolean {
  const named = new Set(victims.get(node));
  return named.size === uids.length && uids.every((uid) => named.has(uid));
}

function priorityOf({ spec }: Pod): number {
  return spec.priority ?? 0;
}
