import type { Pod } from '../kube/core-v1.ts';
import { evictionRefusal, whyNotLetGo } from './eviction-refusal.ts';
import type { ReleaseReport } from './release-report.ts';
import type { EndStep } from './release-step.ts';
import { SLOW_MS, slowRestMs } from './slow-refusals.ts';

/** What fails may pass by itself; what has failed for so long is told (ms). */
const FAILING_MS = 60_000;
/** What is said of a budget to which nobody comes in the place of the pod. */
const NOBODYS =
  ', which may last as long as the budget chooses this pod; delete the pod, or the budget if it is for nothing else';

/** What is to be done about a released pod, or about several together. */
export interface Turn {
  readonly pods: readonly Pod[];
  /** Does not throw. `goesOn`: whether what it was judged by still counts. */
  readonly take: (goesOn: () => boolean) => Promise<void>;
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
  /** By key of a ReplicaSet, until when nothing of it is tried (monotonic ms). */
  readonly #restsUntil = new Map<string, number>();
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
   * One after the other, those first that had no turn at the last look, as long as what was judged a moment ago counts. @returns whether to judge anew at
   * once, as some may be left
   */
  async take(setKey: string, turns: readonly Turn[], signal: AbortSignal): Promise<boolean> {
    const judgedAt = this.#o.monotonic();
    const goesOn = (): boolean => !signal.aborted && this.#o.monotonic() - judgedAt < SLOW_MS;
    const before = new Map((this.#left.get(setKey) ?? []).map((uid, index) => [uid, index]));
    const place = ({ pods }: Turn): number =>
      pods.reduce((first, pod) => Math.min(first, before.get(uidOf(pod)) ?? Infinity), before.size);
    const left = turns.toSorted((a, b) => place(a) - place(b));
    while (left.length > 0 && goesOn()) await left.shift()?.take(goesOn);
    this.#left.set(
      setKey,
      left.flatMap(({ pods }) => pods.map(uidOf)),
    );
    return !goesOn();
  }

  /**
   * Undefined: there was nothing to do by then, or the host does not let the pod go. Only for what is written the host asks others (webhooks), so only that says anything of the pods
   * like it. @throws what may pass, or says nothing of the pod
   */
  async attempt<F, T>(
    setKey: string,
    step: EndStep,
    read: () => Promise<F | undefined>,
    write: (found: F) => Promise<T>,
  ): Promise<T | undefined> {
    const { monotonic } = this.#o;
    let began = Infinity;
    try {
      const found = await read();
      began = monotonic();
      return found === undefined ? undefined : await write(found);
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
  }

  /** None of the ReplicaSet's pods is released. */
  forget(setKey: string): void {
    this.#left.delete(setKey);
    this.#restsUntil.delete(setKey);
  }
}

function uidOf({ metadata: { uid = '' } }: Pod): string {
  return uid;
}
