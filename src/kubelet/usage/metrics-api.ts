import { ApiError, isForbidden } from '../../kube/errors.ts';
import { parseQuantity } from '../../kube/quantity.ts';
import { resourceOf, resourcePath } from '../../kube/resource.ts';
import type { UsageClient } from './member-kubelets.ts';
import { type PodReading, type PodSample, readingOf } from './pod-reading.ts';
import { uidOf, type UsageTarget } from './usage-target.ts';

const POD_METRICS = resourceOf('metrics.k8s.io/v1beta1', 'PodMetrics', 'pods');

/** What metrics.k8s.io says about one container: an average over the time before `at`. */
export interface ContainerUsage {
  readonly name: string;
  readonly cores: number;
  readonly memoryBytes: number;
}
export interface PodMetrics {
  /** End of the measured time, in ms. */
  readonly at: number;
  readonly windowSeconds: number;
  readonly containers: readonly ContainerUsage[];
}

/** Core-seconds by the time `at` in ms. */
interface Counter {
  cpuSeconds: number;
  at: number;
}

const DEADLINE_MS = 5000;
const FRESH_MS = 5000;
/** How long a member without metrics.k8s.io, or without the right to it, is not asked again, in ms. */
const ABSENT_MS = 60_000;

/**
 * Usage from the metrics.k8s.io API of a member, for want of its kubelets' own counters. The API gives rates; they are
 * integrated into counters that never go down, each stamped with the member's time of measurement.
 */
export class MetricsApi {
  readonly #client: UsageClient;
  readonly #monotonic: () => number;
  readonly #counters = new Map<string, Map<string, Counter>>();
  #readings = new Map<string, PodReading>();
  #takenAt = Number.NEGATIVE_INFINITY;
  #absentUntil = Number.NEGATIVE_INFINITY;
  #byNamespace = false;
  #problem: unknown;
  #reading: Promise<void> | undefined;

  constructor(client: UsageClient, monotonic: () => number) {
    this.#client = client;
    this.#monotonic = monotonic;
  }

  /** Why the last read failed; undefined when it did not. */
  get problem(): unknown {
    return this.#problem;
  }

  /** Lets the counters of a pod go on from what its kubelet said last. */
  seed(uid: string, { containers, at }: PodReading): void {
    this.#counters.set(uid, new Map(containers.map(({ container, cpuSeconds }) => [container, { cpuSeconds, at }])));
  }

  /** By the UID of the host pod. */
  reading(uid: string): PodReading | undefined {
    return this.#readings.get(uid);
  }

  /** Brings the readings up to date; false when there was no need to ask. Never rejects: see {@link problem}. */
  async refresh(targets: readonly UsageTarget[], selector: string, signal: AbortSignal): Promise<boolean> {
    const now = this.#monotonic();
    if (now < this.#absentUntil || now - this.#takenAt < FRESH_MS) return false;
    this.#reading ??= this.#read(targets, selector, signal).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
    return true;
  }

  async #read(targets: readonly UsageTarget[], selector: string, signal: AbortSignal): Promise<void> {
    const began = this.#monotonic();
    try {
      const found = await this.#list(targets, selector, signal);
      this.#readings = this.#integrate(targets, found);
      this.#takenAt = began;
      this.#problem = undefined;
    } catch (error) {
      this.#problem = error;
      // 503 is what an API server says whose metrics-server is not there.
      const absent = error instanceof ApiError && [403, 404, 503].includes(error.code);
      if (absent) this.#absentUntil = began + ABSENT_MS;
      this.#readings = new Map();
    }
  }

  async #list(
    targets: readonly UsageTarget[],
    labelSelector: string,
    signal: AbortSignal,
  ): Promise<Map<string, PodMetrics>> {
    if (!this.#byNamespace) {
      try {
        return podMetricsIn(await this.#get(undefined, labelSelector, signal));
      } catch (error) {
        if (!isForbidden(error)) throw error;
      }
    }
    const namespaces = new Set(targets.map(({ memberPod }) => memberPod.metadata.namespace ?? ''));
    const lists = await Promise.all(
      [...namespaces].map((namespace) => this.#get(namespace, labelSelector, signal).then(podMetricsIn)),
    );
    this.#byNamespace = true;
    return new Map(lists.flatMap((list) => [...list]));
  }

  async #get(namespace: string | undefined, labelSelector: string, signal: AbortSignal): Promise<unknown> {
    return await this.#client.request({
      path: resourcePath(POD_METRICS, namespace),
      query: { labelSelector },
      gzip: true,
      retry: false,
      deadlineMs: DEADLINE_MS,
      signal,
    });
  }

  #integrate(targets: readonly UsageTarget[], found: ReadonlyMap<string, PodMetrics>): Map<string, PodReading> {
    const readings = new Map<string, PodReading>();
    const present = new Set(targets.map(uidOf));
    for (const uid of this.#counters.keys()) if (!present.has(uid)) this.#counters.delete(uid);
    for (const target of targets) {
      const usage = found.get(target.memberKey);
      if (usage === undefined) continue;
      const uid = uidOf(target);
      const counters = this.#counters.get(uid) ?? new Map<string, Counter>();
      this.#counters.set(uid, counters);
      readings.set(uid, readingFrom(usage, counters, target));
    }
    return readings;
  }
}

function readingFrom(usage: PodMetrics, counters: Map<string, Counter>, target: UsageTarget): PodReading {
  const samples = new Map<string, PodSample[]>();
  const put = (family: string, container: string, value: number, at: number | undefined): void => {
    const list = samples.get(family) ?? [];
    list.push({ container, value: String(value), timestamp: at === undefined ? undefined : String(at) });
    samples.set(family, list);
  };
  let [cpuSeconds, memoryBytes, newest] = [0, 0, usage.at];
  for (const container of usage.containers) {
    const counter = advance(counters.get(container.name), container.cores, usage);
    counters.set(container.name, counter);
    put('container_cpu_usage_seconds_total', container.name, counter.cpuSeconds, counter.at);
    put('container_memory_working_set_bytes', container.name, container.memoryBytes, counter.at);
    const startedAt = startOf(target, container.name);
    if (startedAt !== undefined) put('container_start_time_seconds', container.name, startedAt / 1000, undefined);
    cpuSeconds += counter.cpuSeconds;
    memoryBytes += container.memoryBytes;
    newest = Math.max(newest, counter.at);
  }
  put('pod_cpu_usage_seconds_total', '', cpuSeconds, newest);
  put('pod_memory_working_set_bytes', '', memoryBytes, newest);
  return readingOf('metrics-api', samples);
}

function advance(counter: Counter | undefined, cores: number, { at, windowSeconds }: PodMetrics): Counter {
  // Readers take 0 for a container that could not be measured.
  if (counter === undefined) return { cpuSeconds: Math.max(1e-9, cores * windowSeconds), at };
  if (at <= counter.at) return counter;
  return { cpuSeconds: counter.cpuSeconds + (cores * (at - counter.at)) / 1000, at };
}

/** When a container of the pod started, in ms, as its status says. */
export function startOf({ memberPod }: UsageTarget, container: string): number | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = memberPod.status ?? {};
  const status = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === container);
  const startedAt = Date.parse(status?.state?.running?.startedAt ?? '');
  return Number.isFinite(startedAt) ? startedAt : undefined;
}

/** The readable part of a PodMetricsList, by `namespace/name`. Throws when it is no list. */
function podMetricsIn(list: unknown): Map<string, PodMetrics> {
  const items = (list as { items?: unknown } | null)?.items;
  if (!Array.isArray(items)) throw new Error('the answer of metrics.k8s.io is no list');
  const found = new Map<string, PodMetrics>();
  for (const item of items as unknown[]) {
    const { metadata, timestamp, window, containers } = item as {
      metadata?: { namespace?: string; name?: string };
      timestamp?: string;
      window?: string;
      containers?: { name?: string; usage?: Record<string, string> }[];
    };
    const at = Date.parse(timestamp ?? '');
    if (metadata?.namespace === undefined || metadata.name === undefined || !Number.isFinite(at)) continue;
    found.set(`${metadata.namespace}/${metadata.name}`, {
      at,
      windowSeconds: secondsOf(window ?? ''),
      // Names become keys of ours.
      containers: (containers ?? [])
        .filter(({ name }) => typeof name === 'string')
        .map(({ name = '', usage }) => ({
          name,
          cores: amountOf(usage?.['cpu']),
          memoryBytes: amountOf(usage?.['memory']),
        })),
    });
  }
  return found;
}

function amountOf(quantity: string | undefined): number {
  try {
    return Math.max(0, Number(parseQuantity(quantity ?? '0').nanos) / 1e9);
  } catch {
    return 0;
  }
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['h', 3600],
  ['m', 60],
  ['s', 1],
  ['ms', 1e-3],
  ['us', 1e-6],
  ['µs', 1e-6],
  ['ns', 1e-9],
]);

/** A Go duration such as `1m15.5s`, in seconds; 0 for anything else. */
function secondsOf(duration: string): number {
  if (!/^(\d+(\.\d+)?(h|m|s|ms|us|µs|ns))+$/.test(duration)) return 0;
  const parts = [...duration.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/g)];
  return parts.reduce((sum, [, number = '0', unit = 's']) => sum + Number(number) * (UNITS.get(unit) ?? 0), 0);
}
