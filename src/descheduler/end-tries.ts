import type { Pod } from '../kube/core-v1.ts';
import { uidOf } from '../kube/object.ts';
import { evictionRefusal, SLOW_MS, slowRestMs, whyNotLetGo } from './eviction-refusal.ts';
import type { ReleaseReport } from './release-report.ts';
import type { EndStep } from './release-step.ts';

/** What fails may pass by itself; what has failed for so long is told (ms). */
const FAILING_MS = 60_000;
/** What was judged so long ago counts no more, however far a turn has come (ms). */
const TOO_OLD_MS = 5_000;
/** So long one that the host did not let go has no other turn when the others of its ReplicaSet have theirs at once (ms). */
const REFUSED_MS = 5_000;
/** What is said of a budget to which nobody comes in the place of the pod. */
const NOBODYS =
  ', which may last as long as the budget chooses this pod; delete the pod, or the budget if it is for nothing else';

/** Until when what was judged counts. */
export interface Judgement {
  /** Whether to begin with anything else by it. */
  readonly goesOn: () => boolean;
  /** Whether to do what was begun. */
  readonly counts: () => boolean;
}

/** What is to be done about a released pod, or about several together. */
export interface Turn {
  readonly pods: readonly Pod[];
  /** It comes after all turns of pods by themselves: what becomes of those changes how many may go. */
  readonly isLast?: true;
  /** Does not throw. */
  readonly take: (judgement: Judgement) => Promise<void>;
}

export interface EndTriesOptions {
  report: Pick<ReleaseReport, 'stays'>;
  /** In ms. */
  monotonic: () => number;
}

/** Tries to end released pods, or to give them back, so that what takes the host long neither rests on what was judged long ago nor takes up the time of others. */
export class EndTries {
  readonly #o: EndTriesOptions;
  /** By key of a ReplicaSet, UIDs of pods that had no turn at its last look, those first that are to be the first. */
  readonly #left = new Map<string, readonly string[]>();
  /** By key of a ReplicaSet whose last turn was left, UIDs of pods that have had theirs since. */
  readonly #hadBeforeLast = new Map<string, ReadonlySet<string>>();
  /** By key of a ReplicaSet, until when nothing of it is tried (monotonic ms). */
  readonly #restsUntil = new Map<string, number>();
  /** By UID of a pod that the host did not let go, when that was (monotonic ms). */
  readonly #refusedAt = new Map<string, number>();
  /** By UID of a pod that the host fails to end or to give back, since when (monotonic ms), and why, in words. */
  readonly #fails = new Map<string, { readonly since: number; readonly why: string }>();

  constructor(options: EndTriesOptions) {
    this.#o = options;
  }

  /** Time until anything of the ReplicaSet may be tried again (ms); 0: now. */
  restMs(setKey: string): number {
    return Math.max(0, (this.#restsUntil.get(setKey) ?? 0) - this.#o.monotonic());
  }

  /**
   * One after the other, those first that had no turn at the last look, as long as what was judged a moment ago counts. While the last turn is left none has a second
   * one before it. @returns whether some are left, for which to judge anew at once
   */
  async take(setKey: string, turns: readonly Turn[], signal: AbortSignal): Promise<boolean> {
    const judgedAt = this.#o.monotonic();
    const isWithin = (ms: number): boolean => !signal.aborted && this.#o.monotonic() - judgedAt < ms;
    const judgement = { goesOn: () => isWithin(SLOW_MS), counts: () => isWithin(TOO_OLD_MS) };
    const before = new Map((this.#left.get(setKey) ?? []).map((uid, index) => [uid, index]));
    const place = ({ pods, isLast }: Turn): number =>
      isLast === true
        ? before.size + 1
        : pods.reduce((first, pod) => Math.min(first, before.get(uidOf(pod)) ?? Infinity), before.size);
    const rests = (pod: Pod): boolean =>
      before.size > 0 && judgedAt - (this.#refusedAt.get(uidOf(pod)) ?? -Infinity) < REFUSED_MS;
    const had = new Set(this.#hadBeforeLast.get(setKey));
    const waits = (pod: Pod): boolean => rests(pod) || had.has(uidOf(pod));
    const due = turns.filter(({ pods, isLast }) => isLast === true || !pods.every(waits));
    const left = due.toSorted((a, b) => place(a) - place(b));
    while (left.length > 0 && judgement.goesOn()) {
      const turn = left.shift();
      await turn?.take(judgement);
      for (const pod of turn?.pods ?? []) had.add(uidOf(pod));
    }
    if (left.at(-1)?.isLast === true) this.#hadBeforeLast.set(setKey, had);
    else this.#hadBeforeLast.delete(setKey);
    this.#left.set(
      setKey,
      left.flatMap(({ pods }) => pods.map(uidOf)),
    );
    return left.length > 0;
  }

  /**
   * Undefined: there was nothing to do by then, or the host does not let the pod go. `write` says when it begins to: only for what is written the host asks others (webhooks), so
   * only that says anything of the pods like it. @throws what may pass, or says nothing of the pod
   */
  async attempt<F, T>(
    { setKey, step, judgement }: { setKey: string; step: EndStep; judgement: Judgement },
    read: () => Promise<F | undefined>,
    write: (found: F, begins: () => void) => Promise<T>,
  ): Promise<T | undefined> {
    const { monotonic } = this.#o;
    let began = Infinity;
    try {
      const found = await read();
      // What it was judged by may be otherwise by now.
      if (found === undefined || !judgement.counts()) return undefined;
      return await write(found, () => (began = monotonic()));
    } catch (error) {
      const restMs = slowRestMs(monotonic() - began);
      if (restMs > 0 && evictionRefusal(error) !== 'unheard') this.#restsUntil.set(setKey, monotonic() + restMs);
      this.#refused(step, error);
      return undefined;
    }
  }

  #refused(step: EndStep, error: unknown): void {
    const refusal = evictionRefusal(error);
    if (refusal === 'changed') return;
    if (refusal === 'unheard') throw error;
    const isNobodys = step.kind === 'evict' && step.why === 'Gone';
    const why = whyNotLetGo(refusal, error, isNobodys ? NOBODYS : '');
    const uid = uidOf(step.pod);
    this.#refusedAt.set(uid, this.#o.monotonic());
    if (refusal !== 'fails') {
      this.#fails.delete(uid);
      this.#o.report.stays(step, why, refusal);
      return;
    }
    this.#fails.set(uid, { since: this.#fails.get(uid)?.since ?? this.#o.monotonic(), why });
    this.tell(step);
    throw error;
  }

  /** What the host has failed to do for long, be it tried now or not. */
  tell(step: EndStep): void {
    const { since, why } = this.#fails.get(uidOf(step.pod)) ?? {};
    if (since === undefined || why === undefined || this.#o.monotonic() - since < FAILING_MS) return;
    this.#o.report.stays(step, why, 'fails');
  }

  /** The pod is gone, or nothing is to become of it now. */
  notDue(pod: Pod): void {
    this.#fails.delete(uidOf(pod));
    this.#refusedAt.delete(uidOf(pod));
  }

  /** None of the ReplicaSet's pods is released. */
  forget(setKey: string): void {
    this.#left.delete(setKey);
    this.#hadBeforeLast.delete(setKey);
    this.#restsUntil.delete(setKey);
  }
}
