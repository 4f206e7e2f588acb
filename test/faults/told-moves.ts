import type { WatchEvent } from '../../hack/api-access.ts';

/** A pod that rules wanted elsewhere, as its Event tells it; both are its message where that has other words. */
interface ToldMove {
  /** Wall clock in ms when it was heard of. */
  at: number;
  from: string;
  to: string;
}

interface Told {
  reason?: string;
  message?: string;
  involvedObject: { kind?: string };
}

const BY_RULES = new Set(['PodRepatriated', 'PodRedivided', 'PodSpread', 'PodMovedByPolicy']);
const WORDS = /^it is in (?:member )?(\S+) \(.*\), and (?:member )?(\S+) would take it for /;

/** Which pods rules moved, from a watch of Events. */
export class ToldMoves {
  readonly all: ToldMove[] = [];

  event({ type, object }: WatchEvent): void {
    const { reason = '', message = '', involvedObject } = object as unknown as Told;
    if (type !== 'ADDED' || involvedObject.kind !== 'Pod' || !BY_RULES.has(reason)) return;
    const [, from = message, to = message] = WORDS.exec(message) ?? [];
    this.all.push({ at: Date.now(), from, to });
  }

  /** Moves out of a cluster to which another one had led less than so many ms before. */
  turnedRound(withinMs: number): ToldMove[] {
    return this.all.filter(({ at, from }, index) =>
      this.all.slice(0, index).some((before) => before.to === from && at - before.at < withinMs),
    );
  }
}
