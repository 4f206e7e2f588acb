import { SinceWhen } from '../kube/since-when.ts';
import type { HostBudget } from './host-budget.ts';
import type { CoveredPods } from './covered-pods.ts';

/** A pod that the host ceased to count as healthy is taken for not accounted for at least so long, in ms. */
const LEAST_MS = 1_000;
/** And at most so long: as Kubernetes waits for a pod that was evicted to be deleted. */
const MOST_MS = 120_000;

/** What has to be remembered of a budget from one look to the next. Times are monotonic, in ms. */
export class BudgetMemory {
  #counted: ReadonlySet<string> = new Set();
  #mark = '';
  #losses: { at: number; mark: string }[] = [];
  readonly #since = new SinceWhen();

  /**
   * How many pods the host has ceased to count since its controller last counted them: until then the budget of the host
   * allows what they have used up already.
   */
  unsettled({ mark }: HostBudget, { counted }: CoveredPods, now: number): number {
    // With the mark of the last look: the host's controller is often as quick as the news of the pod.
    for (const uid of this.#counted) if (!counted.has(uid)) this.#losses.push({ at: now, mark: this.#mark });
    this.#counted = counted;
    this.#mark = mark;
    this.#losses = this.#losses.filter((loss) => {
      const age = now - loss.at;
      return age < MOST_MS && (loss.mark === mark || age < LEAST_MS);
    });
    return this.#losses.length;
  }

  /** For how long something has been so, in ms; 0: it is not. */
  lasting(what: string, isSo: boolean, now: number): number {
    return this.#since.lasting(what, isSo, now);
  }
}
