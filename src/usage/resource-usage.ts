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
  clock: () => number;
  signal: AbortSignal;
}

/** A kubelet that is silent for a moment is spoken for by its last words, which scrapers know for old by their time. */
const KEEP_MS = 120_000;

/** CPU and memory of our pods in one member: from its kubelets' /metrics/resource, or else from its metrics.k8s.io. */
export class ResourceUsage {
  readonly #o: ResourceUsageOptions;
  readonly #nodes: NodeReadings<Map<string, PodReading>>;
  readonly #metricsApi: MetricsApi;

  constructor(options: ResourceUsageOptions) {
    const { client, kubelets, pathOf, clock, signal } = options;
    this.#o = options;
    this.#metricsApi = new MetricsApi(client, clock);
    this.#nodes = new NodeReadings({
      read: async (node, targets, signal) => {
        const keys = new Set(targets.map(({ memberKey }) => memberKey));
        const reader = new ResourceReader(RESOURCE_FAMILIES, (key) => keys.has(key), clock());
        await kubelets.lines(node, pathOf(node), (line) => reader.line(line), signal);
        return reader.result();
      },
      onRead: (...what) => options.onRead('resource', ...what),
      keepMs: KEEP_MS,
      clock,
      signal,
    });
  }

  /** Reads what is not fresh, within 8 s. Never rejects. */
  async refresh(targets: readonly UsageTarget[]): Promise<void> {
    await this.#nodes.refresh(byNode(targets));
    const others = targets.filter(({ memberNode }) => this.#nodes.of(memberNode)?.refused === true);
    if (others.length === 0) return;
    const began = this.#o.clock();
    const read = await this.#metricsApi.refresh(others, this.#o.selector, this.#o.signal);
    const { problem } = this.#metricsApi;
    if (read)
      this.#o.onRead('metrics-api', problem === undefined ? 'ok' : 'failed', (this.#o.clock() - began) / 1000, problem);
  }

  /** What is known now. */
  gather(targets: readonly UsageTarget[]): Gathered {
    const readings = new Map<string, PodReading>();
    let failed = false;
    for (const target of targets) {
      const uid = uidOf(target);
      const node = this.#nodes.of(target.memberNode);
      if (node === undefined || node.failed || (node.refused && this.#metricsApi.problem !== undefined)) failed = true;
      const reading = node?.refused === true ? this.#metricsApi.reading(uid) : readingOf(node, uid, target);
      if (reading !== undefined) readings.set(uid, reading);
    }
    return { readings, failed };
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
