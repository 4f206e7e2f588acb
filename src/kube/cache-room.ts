import { getHeapStatistics } from 'node:v8';
import { Scale } from './scale.ts';

/** Of the heap that Node.js may use, this part may hold what members say; the rest is for the host and the work itself. */
const PART_OF_HEAP = 0.4;

/**
 * The memory that caches of several clusters may take together, so that none can end the process by sending without end. Half
 * of it is divided evenly among them: that much each can always have. The other half is for whoever comes first.
 */
export class CacheRoom {
  readonly bytes: number;
  readonly #shares = new Set<CacheShare>();

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  /** For one cluster, until {@link CacheShare.end}. */
  share(): CacheShare {
    const share: CacheShare = new CacheShare(
      (more) => this.#fits(share, more),
      () => this.#shares.delete(share),
    );
    this.#shares.add(share);
    return share;
  }

  #fits(share: CacheShare, more: number): boolean {
    const own = this.bytes / 2 / Math.max(1, this.#shares.size);
    const wanted = share.used + more;
    if (wanted <= own) return true;
    let others = 0;
    for (const one of this.#shares) if (one !== share) others += Math.max(one.used, own);
    return others + wanted <= this.bytes;
  }
}

/** What one cluster has of a {@link CacheRoom}. Bytes are estimates, see scale.ts. */
export class CacheShare {
  readonly scale = new Scale();
  #used = 0;
  readonly #fits: (more: number) => boolean;
  readonly #end: () => void;

  constructor(fits: (more: number) => boolean, end: () => void) {
    this.#fits = fits;
    this.#end = end;
  }

  get used(): number {
    return this.#used + this.scale.bytes;
  }

  fits(more: number): boolean {
    return this.#fits(more);
  }

  /** More, or less than before, is held now; what was asked for with {@link fits}, or need not be asked for. */
  change(bytes: number): void {
    this.#used += bytes;
  }

  /** Takes what fits, and says whether it did. */
  take(bytes: number): boolean {
    const fits = this.#fits(bytes);
    if (fits) this.#used += bytes;
    return fits;
  }

  /** Nothing is held any more. */
  end(): void {
    this.#used = 0;
    this.#end();
  }
}

/** There is one heap in a process, so there is one room in it. */
export const PROCESS_CACHE_ROOM = new CacheRoom(PART_OF_HEAP * getHeapStatistics().heap_size_limit);
