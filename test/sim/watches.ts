import type { WatchStream } from './watch-stream.ts';

/** The open watches of a cluster. */
export class Watches extends Set<WatchStream> {
  readonly #byCollection = new Map<string, Set<WatchStream>>();

  override add(watch: WatchStream): this {
    const known = this.#byCollection.get(watch.collection);
    if (known === undefined) this.#byCollection.set(watch.collection, new Set([watch]));
    else known.add(watch);
    return super.add(watch);
  }

  override delete(watch: WatchStream): boolean {
    this.#byCollection.get(watch.collection)?.delete(watch);
    return super.delete(watch);
  }

  /** Of one collection. */
  of(collection: string): Iterable<WatchStream> {
    return this.#byCollection.get(collection) ?? [];
  }
}
