import type { WatchEvent } from '../../hack/api-access.ts';

/** A pod that was moved, as its Event tells it; `from` is the message where that has other words. */
interface ToldMove {
  readonly pod: string;
  /** Wall clock in ms when it was heard of. */
  at: number;
  from: string;
  /** Where rules wanted it; undefined when it only had to leave. */
  to: string | undefined;
}

interface Told {
  reason?: string;
  message?: string;
  involvedObject: { kind?: string; name?: string };
}

const WANTED_ELSEWHERE = /^it is in (?:member )?(\S+) \(.*\), and (?:member )?(\S+) would take it for /;
const HAD_TO_LEAVE = /^(?:member )?(\S+) has taints /;
const WORDS: Readonly<Record<string, RegExp>> = {
  PodRepatriated: WANTED_ELSEWHERE,
  PodRedivided: WANTED_ELSEWHERE,
  PodSpread: WANTED_ELSEWHERE,
  PodMovedByPolicy: WANTED_ELSEWHERE,
  TaintedPodMoved: HAD_TO_LEAVE,
};

/** Which pods were moved by rules and for taints, from a watch of Events. */
export class ToldMoves {
  readonly all: ToldMove[] = [];

  /** One that is told again, as a pod that was given back is moved once more, is counted in the same Event. */
  event({ type, object }: WatchEvent): void {
    const { reason = '', message = '', involvedObject } = object as unknown as Told;
    const words = WORDS[reason];
    if ((type !== 'ADDED' && type !== 'MODIFIED') || involvedObject.kind !== 'Pod' || words === undefined) return;
    const [, from = message, to] = words.exec(message) ?? [];
    this.all.push({ pod: involvedObject.name ?? '', at: Date.now(), from, to });
  }

  /** Those for a better place. */
  get byRules(): ToldMove[] {
    return this.all.filter(({ to }) => to !== undefined);
  }

  /** Those that only had to leave. */
  get forTaints(): ToldMove[] {
    return this.all.filter(({ to }) => to === undefined);
  }

  /**
   * Moves by rules out of a cluster to which another one had led, or to a cluster that another one had left, less than so many ms
   * before. A taint may come at any moment: what it moves turns nothing round.
   */
  turnedRound(withinMs: number): ToldMove[] {
    return this.all.filter(
      ({ at, from, to }, index) =>
        to !== undefined &&
        this.all
          .slice(0, index)
          .some((before) => (before.to === from || before.from === to) && at - before.at < withinMs),
    );
  }
}
