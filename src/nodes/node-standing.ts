import { memberOfNode } from '../api/provider-id.ts';
import type { Node } from '../kube/core-v1.ts';
import { whyNotOurs, type NodeOwner } from './node-changes.ts';

/** Why nothing may act for a name. */
export interface NodeRefusal {
  /** Whose the Node is, for people. */
  readonly why: string;
  /** The same, and what to do. */
  readonly message: string;
  /** It stands for another MemberCluster, which may stand for the same cluster. */
  readonly isVirtual: boolean;
}

/**
 * Whether the Node of a virtual node is ours: one for each virtual node. While it is not seen to be ours nothing may act
 * for its name, as its pods may be those of a real node. Whoever watches the Node decides.
 */
export class NodeStanding {
  readonly #owner: NodeOwner;
  readonly #listeners = new Set<() => void>();
  #ours = false;
  #refusal: NodeRefusal | undefined;

  constructor(owner: NodeOwner) {
    this.#owner = owner;
  }

  /** It was seen to be ours, and nothing else was seen since. A Node that somebody deleted is made anew and stays ours. */
  get ours(): boolean {
    return this.#ours;
  }

  /** Whose it is instead; undefined unless it was seen to be somebody else's. */
  get refusal(): NodeRefusal | undefined {
    return this.#refusal;
  }

  /** Why nothing may act for the name, for people; undefined while it is ours. */
  get problem(): string | undefined {
    if (this.#ours) return undefined;
    return this.#refusal === undefined
      ? `the Node of virtual node "${this.#owner.name}" has not been seen yet`
      : this.#refusal.message;
  }

  /** The Node as the watch shows it; answers whether it is ours. */
  see(node: Node): boolean {
    const refusal = this.#refusalOf(node);
    this.#set(refusal === undefined, refusal);
    return this.#ours;
  }

  /** The watch shows no Node of that name: nobody else has it now. */
  absent(): void {
    this.#set(this.#ours, undefined);
  }

  /** The watch shows no Node, and none is to be made: what is left of it is ours until somebody else makes one. */
  vacant(): void {
    this.#set(true, undefined);
  }

  /** The Node, or that there is none, as somebody read it before it is watched; answers the refusal. Nothing is ours by that. */
  hear(node: Node | undefined): NodeRefusal | undefined {
    const refusal = node === undefined ? undefined : this.#refusalOf(node);
    if (!this.#ours) this.#refusal = refusal;
    return refusal;
  }

  /** Called when it becomes ours or ceases to be. Returns how to stop that. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves once it is ours, or is not any more, or when the signal aborts. Never rejects. */
  async when(wanted: 'ours' | 'lost', signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#ours === (wanted === 'ours')) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        off();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const off = this.on(end);
      signal.addEventListener('abort', end, { once: true });
    });
  }

  #refusalOf(node: Node): NodeRefusal | undefined {
    const why = whyNotOurs(node, this.#owner);
    if (why === undefined) return undefined;
    const advice = 'Nothing is done for that name: rename the MemberCluster or its pool, or remove that Node';
    return { why, message: `${why}. ${advice}`, isVirtual: memberOfNode(node) !== undefined };
  }

  #set(ours: boolean, refusal: NodeRefusal | undefined): void {
    const changed = ours !== this.#ours;
    this.#ours = ours;
    this.#refusal = refusal;
    if (changed) for (const listener of this.#listeners) listener();
  }
}
