import { podKeyOf, parseSample, type Sample } from './sample.ts';

/** One number about a pod or one of its containers. */
export interface PodSample {
  /** '' for the pod as a whole. */
  readonly container: string;
  /** As the member wrote them; samples of a moment always have a timestamp here, start times never. */
  readonly value: string;
  readonly timestamp: string | undefined;
}

/** What one container uses; '' stands for a pod that is only measured as a whole. */
export interface ContainerReading {
  readonly container: string;
  /** CPU time so far, in core-seconds. */
  readonly cpuSeconds: number;
}

/** Who measured: the kubelet's own counters, or counters made from the rates of metrics.k8s.io. */
export type ReadingSource = 'kubelet' | 'metrics-api';

/** What a pod uses, at about one moment. */
export interface PodReading {
  readonly source: ReadingSource;
  /** Samples by family, of RESOURCE_FAMILIES only. */
  readonly samples: ReadonlyMap<string, readonly PodSample[]>;
  readonly containers: readonly ContainerReading[];
  readonly memoryBytes: number;
  /** Newest time of the CPU counters in ms; 0 when there is none. */
  readonly at: number;
}

const START_TIME = 'container_start_time_seconds';
/** Names of containers are DNS labels; anything else is nobody's container. */
const CONTAINER = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** Collects what one kubelet's /metrics/resource says about pods of ours, line by line. Foreign pods leave no trace. */
export class ResourceReader {
  readonly #families: ReadonlySet<string>;
  readonly #isOurs: (podKey: string) => boolean;
  readonly #takenAt: string;
  readonly #pods = new Map<string, Map<string, PodSample[]>>();

  /** `takenAt`: time in ms for samples whose timestamp the member leaves to the scraper. */
  constructor(families: Iterable<{ name: string }>, isOurs: (podKey: string) => boolean, takenAt: number) {
    this.#families = new Set([...families].map(({ name }) => name));
    this.#isOurs = isOurs;
    this.#takenAt = String(Math.round(takenAt));
  }

  line(line: string): void {
    const key = podKeyOf(line);
    if (key === undefined || !this.#isOurs(key)) return;
    const sample = parseSample(line);
    if (sample === undefined || !this.#families.has(sample.family) || !NUMBER.test(sample.value)) return;
    const container = containerOf(sample);
    if (container === undefined) return;
    const samples = entry(this.#pods, key, () => new Map<string, PodSample[]>());
    const timestamp = sample.family === START_TIME ? undefined : (sample.timestamp ?? this.#takenAt);
    entry(samples, sample.family, () => []).push({ container, value: sample.value, timestamp });
  }

  /** Readings by the member's `namespace/name`. */
  result(): Map<string, PodReading> {
    return new Map([...this.#pods].map(([key, samples]) => [key, readingOf('kubelet', samples)]));
  }
}

/**
 * A reading from its samples. Containers come first: kubelets measure them when asked, pods as a whole only every ten
 * seconds or so.
 */
export function readingOf(source: ReadingSource, samples: PodReading['samples']): PodReading {
  const cpu = firstOf(samples, 'container_cpu_usage_seconds_total', 'pod_cpu_usage_seconds_total');
  const memory = firstOf(samples, 'container_memory_working_set_bytes', 'pod_memory_working_set_bytes');
  return {
    source,
    samples,
    containers: cpu.map(({ container, value }) => ({ container, cpuSeconds: Math.max(0, Number(value)) })),
    memoryBytes: memory.reduce((sum, { value }) => sum + Math.max(0, Number(value)), 0),
    at: cpu.reduce((newest, { timestamp }) => Math.max(newest, Number(timestamp ?? 0)), 0),
  };
}

function firstOf(samples: PodReading['samples'], ...families: string[]): readonly PodSample[] {
  return families.map((family) => samples.get(family)).find((list) => list !== undefined) ?? [];
}

function containerOf({ family, labels }: Sample): string | undefined {
  const name = labels.find((label) => label.name === 'container')?.value;
  if (family.startsWith('pod_')) return '';
  return name !== undefined && CONTAINER.test(name) ? name : undefined;
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
