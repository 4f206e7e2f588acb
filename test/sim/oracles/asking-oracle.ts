import type { Call } from '../sim-pool.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

/** Followed by every process from its start to its end. */
const FOLLOWED = '/apis/spillway.dev/v1alpha1/memberclusters';
/** Longer than any pause between two tries, in ms. */
const LONGEST_PAUSE_MS = 100_000;

/** Who was refused asks again before long, whatever the server says of when. */
export class AskingOracle {
  readonly #world: World;
  readonly #report: Report;
  /** When each process was refused, by name, unless it has asked again, in ms. */
  readonly #refusedAt = new Map<string, number>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  received({ path, owner }: Call, text: string): void {
    if (owner !== undefined && text === '' && path === FOLLOWED) {
      this.#refusedAt.set(owner.name, this.#world.loop.now);
    }
  }

  sent({ path, owner }: Call): void {
    if (owner === undefined) return;
    if (path === FOLLOWED) this.#refusedAt.delete(owner.name);
    const at = this.#refusedAt.get(owner.name);
    // Who gets no answer at all first asks whether that is still its host.
    if (at !== undefined && this.#world.network.isCut(this.#world.host.origin, owner)) {
      this.#refusedAt.set(owner.name, this.#world.loop.now);
      return;
    }
    if (at === undefined || this.#world.loop.now - at < LONGEST_PAUSE_MS) return;
    this.#report('asking', `${owner.name} was refused at ${Math.round(at / 1_000)} s and has not asked again`);
    this.#refusedAt.delete(owner.name);
  }
}
