import { RESOURCE_FAMILIES } from './families.ts';
import { MetricsApi } from './metrics-api.ts';
import type { MemberKubelets, UsageClient } from './member-kubelets.ts';
import { NodeReadings, type NodeReadingsOptions } from './node-readings.ts';
import { type PodReading, ResourceReader } from './pod-reading.ts';
import { byNode, uidOf, type UsageTarget } from './usage-target.ts';

/** What could be had: readings by the host pod's UID, and whether something could not. */
export interface Gathered {
  readonly readings: ReadonlyMap<string, PodReading>;
  readonly failed: boolean;
}

export interface ResourceUsageOptions {
  client: UsageClient;
  kubelets: MemberKubelets;
  /** The path that a node serves its metrics at. */
  pathOf: (node: string) => string;
  /** Label selector of our pods in the member. */
  selector: string;
  onRead: (source: 'resource' | 'metrics-api', ...what: Parameters<NodeReadingsOptions<never>['onRead']>) => void;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
  signal: AbortSignal;
}

/** A kubelet that is silent for a moment is spoken for by its last words, which scrapers know for old by their time. */
const KEEP_MS = 120_000;
/**
 * A pod whose counters come from a kubelet again is not shown for so long, in ms: longer than scrapers take between two
 * looks, so that none of them takes the step between the two counters for usage.
 */
const MUTE_MS = 70_000;

/** CPU and memory of our pods in one member: from its kubelets' /metrics/resource, or else from its metrics.k8s.io. */
export class ResourceUsage {
  readonly #o: ResourceUsageOptions;
  readonly #nodes: NodeReadings<Map<string, PodReading>>;
  readonly #metricsApi: MetricsApi;
  /** What was shown last of a pod, by UID. */
  readonly #shown = new Map<string, PodReading>();
  readonly #mutedUntil = new Map<string, number>();

  constructor(options: ResourceUsageOptions) {
    const { client, kubelets, pathOf, clock, monotonic, signal } = options;
    this.#o = options;
    this.#metricsApi = new MetricsApi(client, monotonic);
    this.#nodes = new NodeReadings({
      read: async (node, targets, signal) => {
        const keys = new Set(targets.map(({ memberKey }) => memberKey));
        const reader = new ResourceReader(RESOURCE_FAMILIES, (key) => keys.has(key), clock());
        await kubelets.lines(node, pathOf(node), (line) => reader.line(line), signal);
        return reader.result();
      },
      onRead: (...what) => options.onRead('resource', ...what),
      keepMs: KEEP_MS,
      monotonic,
      signal,
    });
  }

  /** Reads what is not fresh, within 8 s. Never rejects. */
  async refresh(targets: readonly UsageTarget[]): Promise<void> {
    await this.#nodes.refresh(byNode(targets));
    const others = targets.filter(({ memberNode }) => this.#nodes.of(memberNode)?.refused === true);
    if (others.length === 0) return;
    for (const uid of others.map(uidOf)) {
      const shown = this.#shown.get(uid);
      if (shown?.source === 'kubelet') this.#metricsApi.seed(uid, shown);
    }
    const began = this.#o.monotonic();
    const read = await this.#metricsApi.refresh(others, this.#o.selector, this.#o.signal);
    const { problem } = this.#metricsApi;
    if (read)
      this.#o.onRead(
        'metrics-api',
        problem === undefined ? 'ok' : 'failed',
        (this.#o.monotonic() - began) / 1000,
        problem,
      );
  }

  /** What is known now. `all`: these are all pods of the node, and others are forgotten. */
  gather(targets: readonly UsageTarget[], all: boolean): Gathered {
    const readings = new Map<string, PodReading>();
    let failed = false;
    for (const target of targets) {
      const uid = uidOf(target);
      const node = this.#nodes.of(target.memberNode);
      if (node === undefined || node.failed || (node.refused && this.#metricsApi.problem !== undefined)) failed = true;
      const reading = node?.refused === true ? this.#metricsApi.reading(uid) : readingOf(node, uid, target);
      if (reading !== undefined && !this.#isMuted(uid, reading)) readings.set(uid, reading);
    }
    if (all) {
      for (const known of [this.#shown, this.#mutedUntil]) {
        const present = new Set(targets.map(uidOf));
        for (const uid of known.keys()) if (!present.has(uid)) known.delete(uid);
      }
    }
    return { readings, failed };
  }

  #isMuted(uid: string, reading: PodReading): boolean {
    const now = this.#o.monotonic();
    const before = this.#shown.get(uid);
    this.#shown.set(uid, reading);
    if (before?.source === 'metrics-api' && reading.source === 'kubelet') this.#mutedUntil.set(uid, now + MUTE_MS);
    return reading.source === 'kubelet' && now < (this.#mutedUntil.get(uid) ?? 0);
  }

  async idle(): Promise<void> {
    await this.#nodes.idle();
  }
}

/** Only if it was read while this very pod was there: another pod of that name has other counters. */
function readingOf(
  node: { value: Map<string, PodReading> | undefined; uids: ReadonlySet<string> } | undefined,
  uid: string,
  { memberKey }: UsageTarget,
): PodReading | undefined {
  return node?.uids.has(uid) === true ? node.value?.get(memberKey) : undefined;
}
