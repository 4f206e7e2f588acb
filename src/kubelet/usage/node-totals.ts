import type { ContainerReading } from './pod-reading.ts';

/** What one pod uses, as far as the sum needs it. */
export interface PodTotals {
  readonly uid: string;
  /** Counters of different sources have nothing to do with each other. */
  readonly source: string;
  /** When the pod started, in ms; undefined: unknown. */
  readonly startedAt: number | undefined;
  readonly containers: readonly ContainerReading[];
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

interface KnownPod {
  source: string;
  last: Map<string, number>;
}

/**
 * What a virtual node uses: the sum of its pods. Its CPU counter and its time never go back while this process lives, and
 * grow by nothing but what was used meanwhile: pods that are gone stay in it with their last counters, a counter that
 * starts anew adds to what it was before, one that is first seen late or comes from another source counts from there.
 */
export class NodeCounter {
  readonly #pods = new Map<string, KnownPod>();
  #since: number | undefined;
  /** What pods that are gone used, less what others had used before they were seen. */
  #others = 0;
  #cpuSeconds = LEAST_CPU_SECONDS;
  #at = 0;

  /** `present`: UIDs of all pods there are, whether there is a reading of them or not. `now`: wall clock in ms. */
  observe(readings: Iterable<PodTotals>, present: ReadonlySet<string>, now: number): NodeTotals {
    let memoryBytes = 0;
    let at = 0;
    for (const reading of readings) {
      this.#take(reading);
      memoryBytes += reading.memoryBytes;
      at = Math.max(at, reading.at);
    }
    this.#since ??= now;
    let sum = 0;
    for (const [uid, { last }] of this.#pods) {
      const used = total(last.values());
      if (present.has(uid)) {
        sum += used;
      } else {
        this.#others += used;
        this.#pods.delete(uid);
      }
    }
    // The order of a floating-point sum changes with its parts: the last digit must not count down.
    this.#cpuSeconds = Math.max(this.#cpuSeconds, sum + this.#others);
    this.#at = Math.max(this.#at, at === 0 ? now : at);
    return { cpuSeconds: this.#cpuSeconds, memoryBytes: Math.max(LEAST_MEMORY_BYTES, memoryBytes), at: this.#at };
  }

  #take({ uid, source, startedAt, containers }: PodTotals): void {
    const known = this.#pods.get(uid);
    if (known?.source === source) {
      for (const { container, cpuSeconds } of containers) {
        const last = known.last.get(container) ?? 0;
        if (cpuSeconds < last) this.#others += last;
        known.last.set(container, cpuSeconds);
      }
      return;
    }
    const used = total(containers.map(({ cpuSeconds }) => cpuSeconds));
    if (known !== undefined) this.#others += total(known.last.values()) - used;
    else if (this.#since !== undefined && (startedAt ?? 0) < this.#since) this.#others -= used;
    this.#pods.set(uid, {
      source,
      last: new Map(containers.map(({ container, cpuSeconds }) => [container, cpuSeconds])),
    });
  }
}

function total(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}
