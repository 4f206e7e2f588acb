import { LRUCache } from 'lru-cache';
import { podSubject } from '../api/pod-subject.ts';
import { cleanText } from '../kube/clean-text.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { uidOf } from '../kube/object.ts';
import type { MovingOptions } from './moving-options.ts';
import { ToldCauses } from './told-causes.ts';
import { STRATEGIES, type Strategy } from './strategies.ts';
import type { WantedMove } from './wanted-move.ts';

/** While the cause lasts its details are those of so long ago at most, in ms: they may change with each look. */
const DETAILS_MS = 60_000;
/** Of what is kept of a pod, in bytes: it stands in the status of what wants the pod elsewhere. */
const LONGEST = 500;

export type HeldMovesOptions = Pick<MovingOptions, 'events' | 'metrics' | 'monotonic'>;

interface Kept {
  /** Without details. */
  readonly cause: string;
  /** In monotonic ms. */
  readonly at: number;
  readonly why: string;
}

/**
 * Why pods stay that strategies want elsewhere. By UID and strategy: several may want a pod elsewhere by turns, and each tells of it under its own
 * reason. State held here may be lost in a restart.
 */
export class HeldMoves {
  readonly #o: HeldMovesOptions;
  readonly #told: ToldCauses;
  readonly #kept = new LRUCache<string, Kept>(atMost());
  /** By UID alone. */
  readonly #last = new LRUCache<string, Kept>(atMost());

  constructor(options: HeldMovesOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  /** One Event per strategy and cause, again while it lasts; a change in the parenthesised details is not a new cause. */
  record(wanted: WantedMove, why: string): void {
    const { events, metrics } = this.#o;
    const { pod, from, strategy, stays } = wanted;
    this.keep(wanted, why);
    if (!this.#told.isToBeTold(keyOf(pod, strategy), causeOf(why))) return;
    events.record(podSubject(pod), 'Warning', STRATEGIES[strategy].heldReason, `${stays}: ${why}`);
    metrics.moves.inc({ strategy, member: from, outcome: 'held' });
  }

  /** Only for {@link why}, which is to say the same for a while, as it stands in a status. */
  keep({ pod, strategy }: WantedMove, why: string): void {
    const at = this.#o.monotonic();
    const key = keyOf(pod, strategy);
    const cause = causeOf(why);
    const known = this.#kept.get(key);
    const isSame = known?.cause === cause && at - known.at < DETAILS_MS;
    const kept = isSame ? known : { cause, at, why: cleanText(why, LONGEST) };
    this.#kept.set(key, kept);
    this.#last.set(uidOf(pod), kept);
  }

  /** Nothing holds the pod any more, as far as this strategy is concerned. */
  forget({ pod, strategy }: WantedMove): void {
    this.#kept.delete(keyOf(pod, strategy));
    this.#last.delete(uidOf(pod));
  }

  /** A dry run holds the pod, as `why` says; whether it is to be told now that it would be moved in earnest. */
  isRehearsalToBeTold(wanted: WantedMove, why: string): boolean {
    const { pod, strategy } = wanted;
    this.keep(wanted, why);
    return this.#told.isToBeTold(keyOf(pod, strategy), 'would move');
  }

  /** Why the pod stayed when the strategy last wanted it elsewhere, in words, at most 500 bytes; undefined: nothing held it. */
  why(pod: Pod, strategy: Strategy): string | undefined {
    return this.#kept.get(keyOf(pod, strategy))?.why;
  }

  /** The same of whichever strategy wanted it elsewhere last. */
  lastOf(pod: Pod): string | undefined {
    return this.#last.get(uidOf(pod))?.why;
  }
}

function keyOf(pod: Pod, strategy: Strategy): string {
  return `${uidOf(pod)} ${strategy}`;
}

function causeOf(why: string): string {
  return why.replace(/ \(.*/s, '');
}
