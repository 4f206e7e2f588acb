import type { PlacedMember } from '../placement/placed-pods.ts';
import { isLost } from '../placement/lost-members.ts';

/**
 * For how long members have been lost before the eyes of this process, by its monotonic clock. What others wrote about the
 * time can make that only shorter: an outage that began anew counts anew, and one that another process saw counts from now
 * on. A wall clock that is ahead, here or where the condition was written, so moves nothing early; what it costs is that
 * the time begins anew when all replicas are started anew, as that of Kubernetes' node lifecycle controller does.
 */
export class LossAges {
  readonly #monotonic: () => number;
  /** By member, when this outage was first seen, in monotonic ms. */
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
