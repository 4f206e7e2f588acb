/** How many ports, from the first one on, belong to virtual nodes: what a firewall has to let through. */
export const KUBELET_PORT_COUNT = 1000;

/**
 * The ports of the virtual nodes of one process. With a first port each node gets the one its Node object says already,
 * if it is free, and else the first free one, so that a port outlives a restart and firewalls can know them all. With 0
 * each gets any free port.
 */
export class KubeletPorts {
  readonly #first: number;
  /** What Nodes said that were seen here, and what was opened since: others should not take these. */
  readonly #known = new Map<string, number>();

  constructor(first: number) {
    this.#first = first;
  }

  /** Whether it matters what a Node said before. */
  get fixed(): boolean {
    return this.#first !== 0;
  }

  /**
   * Opens the port of a virtual node.
   * @param before what its Node object says, from an earlier process or another replica
   * @param listen begins to listen; answers the port, or rejects with EADDRINUSE
   * @throws Error when every port of the range is taken; whatever else `listen` rejects with
   */
  async open(nodeName: string, before: number | undefined, listen: (port: number) => Promise<number>): Promise<number> {
    if (!this.fixed) return await listen(0);
    const last = lastKubeletPort(this.#first);
    const own = before !== undefined && before >= this.#first && before <= last ? before : undefined;
    if (own === undefined) this.#known.delete(nodeName);
    else this.#known.set(nodeName, own);
    for (const port of this.#toTry(nodeName, own)) {
      try {
        const opened = await listen(port);
        this.#known.set(nodeName, opened);
        return opened;
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
    }
    throw new Error(
      `no port from ${this.#first} to ${last} is free for virtual node ${nodeName}; free some, or set another kubelet.firstPort`,
    );
  }

  /** Its own, then the ones that nobody else is known by, then all the rest: a Node that says a port may be long gone. */
  *#toTry(nodeName: string, own: number | undefined): Generator<number> {
    if (own !== undefined) yield own;
    const tried = new Set([own]);
    const last = lastKubeletPort(this.#first);
    for (let port = this.#first; port <= last; port += 1) {
      if (tried.has(port) || this.#isOfAnother(nodeName, port)) continue;
      tried.add(port);
      yield port;
    }
    for (let port = this.#first; port <= last; port += 1) if (!tried.has(port)) yield port;
  }

  #isOfAnother(nodeName: string, port: number): boolean {
    for (const [name, known] of this.#known) if (known === port && name !== nodeName) return true;
    return false;
  }
}

function lastKubeletPort(first: number): number {
  return Math.min(first + KUBELET_PORT_COUNT - 1, 65_535);
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
