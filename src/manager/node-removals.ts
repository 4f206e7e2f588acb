/**
 * Which Nodes may be removed at this moment: those of virtual nodes that retired and are empty, or whose member was given up (invariant I17). Asked by
 * the guard of the host when the request is about to be sent.
 */
export class NodeRemovals {
  readonly #allowed = new Map<string, () => boolean>();

  /** @param isEmpty whether it is still unwanted and nothing is on it, or nothing that counts. Returns how to end the permission. */
  allow(nodeName: string, isEmpty: () => boolean): () => void {
    this.#allowed.set(nodeName, isEmpty);
    return () => this.#allowed.delete(nodeName);
  }

  may(nodeName: string): boolean {
    return this.#allowed.get(nodeName)?.() === true;
  }
}
