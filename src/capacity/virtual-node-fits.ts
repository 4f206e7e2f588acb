import type { VirtualNodeCapacity } from './virtual-node-capacity.ts';

/**
 * The rooms behind virtual nodes as this process knows them. While it begins or ceases to act for a member there are two
 * behind a node: the newest that is ready answers, so that no question falls between them.
 */
export class VirtualNodeFits {
  readonly #rooms = new Map<string, readonly VirtualNodeCapacity[]>();

  /**
   * Two members may want one name: only the one that the Node stands for answers.
   * @returns undefined: this process knows nothing of that node (yet)
   */
  get(nodeName: string, member: string | undefined): VirtualNodeCapacity | undefined {
    const rooms = this.#rooms.get(nodeName)?.filter((room) => room.member === member);
    return rooms?.findLast(({ ready }) => ready) ?? rooms?.at(-1);
  }

  /** Has it asked until the returned function is called. */
  add(room: VirtualNodeCapacity): () => void {
    const { nodeName } = room;
    this.#rooms.set(nodeName, [...(this.#rooms.get(nodeName) ?? []), room]);
    return () => {
      const rest = this.#rooms.get(nodeName)?.filter((one) => one !== room) ?? [];
      if (rest.length > 0) this.#rooms.set(nodeName, rest);
      else this.#rooms.delete(nodeName);
    };
  }
}
