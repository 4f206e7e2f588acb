import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOrOwnKeyOf } from '../kube/owner-references.ts';
import type { MigrationStep } from './migration.ts';
import type { MoveOutcome } from './mover.ts';

/** Most pods tried in one look; then it is seen whether the migration is still to go on. */
const AT_ONCE = 10;

/** A workload in one look, and what came of its turn. */
export interface Turn {
  readonly name: string;
  readonly step: Pick<MigrationStep, 'moves'>;
  /** What failed when a pod of it was to be moved; then it is the turn of the next one. */
  failed?: string;
  /** A pod of it is on its way. */
  hasBegun: boolean;
  /** It has never had its turn, nor in this look. */
  isUntried: boolean;
}

/**
 * Whose turn it is among the workloads of a migration. A look ends after some tries; those that were tried in vain come after all others in the next one, the last one of them
 * last. Forgotten in a restart.
 */
export class MigrationTurns {
  /** By name, which try was the last one in vain; 0: none was. */
  readonly #inVain = new Map<string, number>();
  #tries = 0;

  /** `move` answers `rests` where nothing was tried. */
  async give<T extends Turn>(
    all: readonly T[],
    move: (one: T, pod: Pod) => Promise<'rests' | MoveOutcome>,
  ): Promise<void> {
    const last = this.#tries + AT_ONCE;
    for (const one of all.toSorted((a, b) => this.#lastInVain(a) - this.#lastInVain(b))) {
      const passedOver = new Set<string>();
      for (const pod of one.step.moves) {
        if (one.failed !== undefined) break;
        if (this.#tries === last) {
          one.isUntried = !this.#inVain.has(one.name);
          break;
        }
        // What holds a pod that is Ready, such as a disruption budget, need not hold one that is not.
        const kind = String(isReady(pod));
        const controller = `${kind} ${controllerOrOwnKeyOf(pod)}`;
        if (passedOver.has(kind) || passedOver.has(controller)) continue;
        const outcome = await move(one, pod);
        if (outcome === 'rests') continue;
        this.#tries += 1;
        this.#inVain.set(one.name, outcome === 'moved' ? this.#lastInVain(one) : this.#tries);
        one.hasBegun ||= outcome === 'moved';
        if (outcome === 'workloadHeld') passedOver.add(kind);
        if (outcome === 'controllerHeld') passedOver.add(controller);
      }
    }
  }

  #lastInVain({ name }: Turn): number {
    return this.#inVain.get(name) ?? 0;
  }
}
