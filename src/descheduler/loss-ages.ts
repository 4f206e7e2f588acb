import type { PlacedMember } from '../placement/placed-pods.ts';
import { isLost } from '../placement/lost-members.ts';

/**
 * How long each member has been lost, measured by this process on its monotonic clock. Timestamps written by others can only
 * shorten that: a new outage starts at 0, and an outage first seen by another process starts when this one sees it. So a wall
 * clock that is ahead, here or at the writer, moves no pod early; the cost is that the time starts again when all replicas
 * restart, as in Kubernetes' node lifecycle controller.
 */
export class LossAges {
  readonly #monotonic: () => number;
  /** By member, when the current outage was first seen (monotonic ms). */
  #seen = new Map<string, { readonly since: number; readonly at: number }>();

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
  }

  /** In ms; 0 for a member that is not known to be lost. */
  lostForMs(member: string): number {
    const known = this.#seen.get(member);
    return known === undefined ? 0 : this.#monotonic() - known.at;
  }
}
