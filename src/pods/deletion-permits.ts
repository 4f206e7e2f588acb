/**
 * What the deletion breakers of this process have permitted, by virtual node. Whatever makes a virtual node begin anew (its Node was
 * somebody else's for a while, the lease was lost, the member has another address), so many are few, not so many each time.
 */
export class DeletionPermits {
  readonly #byNode = new Map<string, Map<string, number>>();

  /** Member pods of the virtual node that may go, by UID, and since when in monotonic ms. */
  of(nodeName: string): Map<string, number> {
    const known = this.#byNode.get(nodeName);
    if (known !== undefined) return known;
    const permits = new Map<string, number>();
    this.#byNode.set(nodeName, permits);
    return permits;
  }
}
