import type { PlacedMember } from '../placement/placed-pods.ts';
import { isLost, lostMembers } from '../placement/lost-members.ts';

/**
 * How long each member has been lost, measured by this process on its monotonic clock. Timestamps written by others can only
 * shorten that: a new outage starts at 0, and an outage first seen by another process starts when this one sees it. So a wall
 * clock that is ahead, here or at the writer, moves no pod early; the cost is that the time starts again when all replicas
 * restart, as in Kubernetes' node lifecycle controller.
 *
 * A second clock says how long so few have been lost that pods are moved for it: when the way out of here is whole again, members are asked
 * one after the other, and those that have yet to be must not lose their pods for the time that the fault was here. That node lifecycle controller gives
 * all nodes their time anew then. No former process' pause is known, which is as well: nor is any loss, so none is older than this process.
 */
export class LossAges {
  readonly #monotonic: () => number;
  /** By member, when the current outage was first seen (monotonic ms). */
  #seen = new Map<string, { readonly since: number; readonly at: number }>();
  /** Moves are paused, as of the last look. */
  #isPaused = false;
  /** When a pause was seen to be over (monotonic ms). */
  #pauseEnded = Number.NEGATIVE_INFINITY;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** All members as they are now. */
  observe(members: readonly PlacedMember[]): void {
    const at = this.#monotonic();
    const lost = members.filter(isLost).map(({ name, since }) => {
      const known = this.#seen.get(name);
      return [name, known?.since === since ? known : { since, at }] as const;
    });
    this.#seen = new Map(lost);
    const isPaused = lostMembers(members).paused !== undefined;
    if (this.#isPaused && !isPaused) this.#pauseEnded = at;
    this.#isPaused = isPaused;
  }

  /** In ms; 0 for a member that is not known to be lost. */
  lostForMs(member: string): number {
    const known = this.#seen.get(member);
    return known === undefined ? 0 : this.#monotonic() - known.at;
  }

  /** How long moves for loss have not been paused, in ms: 0 while they are, Infinity when this process has seen no pause. */
  unpausedForMs(): number {
    return this.#isPaused ? 0 : this.#monotonic() - this.#pauseEnded;
  }

  /** How long it has been lost as far as that moves pods, in ms, whatever stands on these: by both clocks. A word that it is out of service counts by the first one alone. */
  countedMs(member: string): number {
    return Math.min(this.lostForMs(member), this.unpausedForMs());
  }
}
