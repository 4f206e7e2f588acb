import { monotonic } from '../kube/clock.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';

/** How long it counts which ones are the oldest, in ms. */
const COUNTED_MS = 1_000;

/** Keys of those that may be exported when there are more than `most`: the oldest ones, which no later one pushes out. */
export function oldestExports(found: Iterable<KubeObject>, most: number): Set<string> {
  const ordered = [...found].toSorted((a, b) => {
    const [timeA, timeB] = [a, b].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') || 0);
    return (timeA ?? 0) - (timeB ?? 0) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1);
  });
  return new Set(ordered.slice(0, most).map((one) => keyOf(one)));
}

/** Which exports of a cluster count while it has more than `most`. */
export class ExportLimit {
  readonly most: number;
  readonly #mayCount: (key: string) => boolean;
  #counting: { keys: Set<string>; at: number } | undefined;

  /** `mayCount`: whether others could be told of it, if there were few. */
  constructor(most: number, mayCount: (key: string) => boolean) {
    this.most = most;
    this.#mayCount = mayCount;
  }

  counts(key: string, exports: { readonly size: number; values(): Iterable<KubeObject> }): boolean {
    if (exports.size <= this.most) return true;
    const now = monotonic();
    if (this.#counting === undefined || now - this.#counting.at > COUNTED_MS) {
      const open = [...exports.values()].filter((one) => this.#mayCount(keyOf(one)));
      this.#counting = { keys: oldestExports(open, this.most), at: now };
    }
    return this.#counting.keys.has(key);
  }
}
