import { type Taint, taintInWords } from '../kube/taints.ts';
import type { PlacedMember } from '../placement/placed-pods.ts';

/** How long this process has seen each taint of a member. Starts again after a restart, so tolerations never end too early. */
export class TaintAges {
  readonly #monotonic: () => number;
  /** By member and taint, in monotonic ms. */
  #since = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** All members as they are now. */
  observe(members: readonly PlacedMember[]): void {
    const now = this.#monotonic();
    const keys = members.flatMap(({ name, nodeTaints, outOfService, clusterTaints }) =>
      [...[...nodeTaints.values(), ...outOfService.values()].flat(), ...clusterTaints].map((taint) =>
        keyOf(name, taint),
      ),
    );
    this.#since = new Map(keys.map((key) => [key, this.#since.get(key) ?? now]));
  }

  ageMs(member: string, taint: Taint): number {
    const since = this.#since.get(keyOf(member, taint));
    return since === undefined ? 0 : this.#monotonic() - since;
  }
}

function keyOf(member: string, taint: Taint): string {
  return `${member} ${taintInWords(taint)}`;
}
