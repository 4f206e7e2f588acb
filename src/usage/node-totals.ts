/** CPU counter and memory of one pod. */
export interface PodTotals {
  readonly uid: string;
  /** Core-seconds since the pod started. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /** Time of the reading in ms. */
  readonly at: number;
}

export interface NodeTotals {
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /** ms */
  readonly at: number;
}

/** Scrapers take 0 for a broken node: the smallest figures that are none. */
const LEAST_CPU_SECONDS = 1e-9;
const LEAST_MEMORY_BYTES = 1;

/**
 * What a virtual node uses: the sum of its pods. Its CPU counter and its time never go back while this process lives:
 * pods that are gone stay in it with their last counter, and a counter that starts anew adds to what it was before.
 */
export class NodeCounter {
  readonly #last = new Map<string, number>();
  #retired = 0;
  #cpuSeconds = LEAST_CPU_SECONDS;
  #at = 0;

  /** `present`: UIDs of all pods there are, whether there is a reading of them or not. */
  observe(readings: Iterable<PodTotals>, present: ReadonlySet<string>, now: number): NodeTotals {
    let memoryBytes = 0;
    let at = 0;
    for (const reading of readings) {
      const last = this.#last.get(reading.uid) ?? 0;
      if (reading.cpuSeconds < last) this.#retired += last;
      this.#last.set(reading.uid, reading.cpuSeconds);
      memoryBytes += reading.memoryBytes;
      at = Math.max(at, reading.at);
    }
    let sum = 0;
    for (const [uid, cpuSeconds] of this.#last) {
      if (present.has(uid)) {
        sum += cpuSeconds;
      } else {
        this.#retired += cpuSeconds;
        this.#last.delete(uid);
      }
    }
    // The order of a floating-point sum changes with its parts: the last digit must not count down.
    this.#cpuSeconds = Math.max(this.#cpuSeconds, sum + this.#retired);
    this.#at = Math.max(this.#at, at === 0 ? now : at);
    return { cpuSeconds: this.#cpuSeconds, memoryBytes: Math.max(LEAST_MEMORY_BYTES, memoryBytes), at: this.#at };
  }
}
