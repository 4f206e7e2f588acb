import type { Logger } from 'pino';
import { monotonic } from '../../kube/clock.ts';
import { describeError } from '../../kube/errors.ts';
import { stringifyJson } from '../../kube/json.ts';
import { type CadvisorLines, cadvisorLines, CadvisorReader, cadvisorText } from './cadvisor.ts';
import { MemberKubelets, type UsageClient } from './member-kubelets.ts';
import type { UsageMetrics } from './metrics.ts';
import { NodeReadings, type NodeReadingsOptions } from './node-readings.ts';
import { NodeCounter, type PodTotals } from './node-totals.ts';
import type { PodReading } from './pod-reading.ts';
import { Rates } from './rates.ts';
import { resourceMetricsPath } from './resource-metrics-path.ts';
import { resourceText } from './resource-text.ts';
import { ResourceUsage } from './resource-usage.ts';
import { podStatsIn, type PodStats, renamed, statsOf, summaryOf, totalsOf } from './summary.ts';
import { byNode, startedAt, uidOf, type UsageTarget } from './usage-target.ts';

export interface PodUsageOptions {
  nodeName: string;
  member: string;
  client: UsageClient;
  /** The pods of this virtual node that run on a node of the member. */
  targets: () => Iterable<UsageTarget>;
  /** Label selector of these pods in the member. */
  selector: string;
  /** Annotations of a node of the member. */
  annotationsOf: (node: string) => Record<string, string> | undefined;
  /** Why the member cannot be asked now, or undefined. */
  unavailable: () => string | undefined;
  metrics: UsageMetrics;
  logger: Logger;
  /** Wall clock in ms. */
  clock?: () => number;
  /** In ms. */
  monotonic?: () => number;
}

type Source = 'resource' | 'cadvisor' | 'summary' | 'metrics-api';

/** What stays of a kubelet that is silent: nothing, or what was read a few seconds ago for another scraper. */
const KEEP_MS = 6000;

/**
 * What the pods of one virtual node use, in the three forms that a kubelet shows it: read from the member's kubelets when
 * somebody asks, our pods only, under the names they have in the host. Counters and times are the member's.
 */
export class PodUsage {
  readonly #o: PodUsageOptions;
  readonly #clock: () => number;
  readonly #stop = new AbortController();
  readonly #since: number;
  readonly #resource: ResourceUsage;
  readonly #cadvisor: NodeReadings<CadvisorLines>;
  readonly #summaries: Record<'all' | 'less', NodeReadings<Map<string, PodStats>>>;
  readonly #resourceCounter = new NodeCounter();
  readonly #summaryCounter = new NodeCounter();
  readonly #rates = new Rates();
  readonly #problems = new Map<Source, string>();

  constructor(options: PodUsageOptions) {
    const { client, annotationsOf, selector } = options;
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#since = this.#clock();
    const elapsed = options.monotonic ?? monotonic;
    const kubelets = new MemberKubelets(client, elapsed);
    const { signal } = this.#stop;
    this.#resource = new ResourceUsage({
      client,
      kubelets,
      pathOf: (node) => resourceMetricsPath(annotationsOf(node)),
      selector,
      onRead: (source, ...what) => this.#onRead(source, ...what),
      clock: this.#clock,
      monotonic: elapsed,
      signal,
    });
    this.#cadvisor = new NodeReadings({
      read: async (node, targets, signal) => {
        const reader = new CadvisorReader(targets);
        await kubelets.lines(node, '/metrics/cadvisor', (line) => reader.line(line), signal);
        return reader.result();
      },
      onRead: (...what) => this.#onRead('cadvisor', ...what),
      keepMs: KEEP_MS,
      monotonic: elapsed,
      signal,
    });
    const summaries = (query: Record<string, string>) =>
      new NodeReadings<Map<string, PodStats>>({
        read: async (node, targets, signal) => {
          const keys = new Set(targets.map(({ memberKey }) => memberKey));
          return podStatsIn(await kubelets.json(node, '/stats/summary', query, signal), (key) => keys.has(key));
        },
        onRead: (...what) => this.#onRead('summary', ...what),
        keepMs: KEEP_MS,
        monotonic: elapsed,
        signal,
      });
    this.#summaries = { all: summaries({}), less: summaries({ only_cpu_and_memory: 'true' }) };
  }

  /** Ends what is under way when the signal aborts, and then resolves. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    this.#stop.abort();
    const { all, less } = this.#summaries;
    await Promise.all([this.#resource, this.#cadvisor, all, less].map((readings) => readings.idle()));
  }

  /** /metrics/resource, in pieces. */
  async resourceMetrics(): Promise<Iterable<string>> {
    const targets = [...this.#o.targets()];
    const reachable = await this.#ask(() => this.#resource.refresh(targets));
    const { readings, failed } = this.#resource.gather(targets, true);
    const broken = failed || !reachable;
    const pods = targets.flatMap(({ hostPod }) => {
      const { namespace = '', name, uid = '' } = hostPod.metadata;
      const reading = readings.get(uid);
      return reading === undefined ? [] : [{ namespace, name, reading }];
    });
    const measured = targets.flatMap((target): PodTotals[] => {
      const reading = readings.get(uidOf(target));
      return reading === undefined ? [] : [{ uid: uidOf(target), startedAt: startedAt(target), ...reading }];
    });
    const totals = this.#resourceCounter.observe(measured, new Set(targets.map(uidOf)), this.#clock());
    return resourceText(pods, pods.length === 0 && broken ? undefined : totals, broken);
  }

  /** /metrics/cadvisor, in pieces. */
  async cadvisorMetrics(): Promise<Iterable<string>> {
    const targets = [...this.#o.targets()];
    const nodes = byNode(targets);
    const reachable = await this.#ask(() => this.#cadvisor.refresh(nodes));
    const parts: CadvisorLines[] = [];
    let failed = !reachable;
    for (const node of nodes.keys()) {
      const reading = this.#cadvisor.of(node);
      if (reading?.value !== undefined) parts.push(reading.value);
      if (reading === undefined || reading.failed) failed = true;
    }
    const others = await this.#readings(targets.filter(({ memberNode }) => this.#cadvisor.of(memberNode)?.refused));
    for (const [target, reading] of others.readings) parts.push(cadvisorLines(target, reading));
    return cadvisorText(parts, failed || others.failed);
  }

  /** /stats/summary, as JSON. */
  async summary(onlyCpuAndMemory: boolean): Promise<string> {
    const targets = [...this.#o.targets()];
    const readings = this.#summaries[onlyCpuAndMemory ? 'less' : 'all'];
    await this.#ask(() => readings.refresh(byNode(targets)));
    const stats = new Map<string, PodStats>();
    for (const target of targets) {
      const node = readings.of(target.memberNode);
      const found = node?.uids.has(uidOf(target)) === true ? node.value?.get(target.memberKey) : undefined;
      if (found !== undefined) stats.set(uidOf(target), renamed(found, target));
    }
    const others = await this.#readings(targets.filter(({ memberNode }) => readings.of(memberNode)?.refused));
    for (const [target, reading] of others.readings) stats.set(uidOf(target), this.#statsOf(target, reading));
    const present = new Set(targets.map(uidOf));
    this.#rates.keep((key) => present.has(key.slice(0, key.indexOf('/'))));
    const pods = [...stats].map(([uid, pod]) => totalsOf(uid, pod));
    const totals = this.#summaryCounter.observe(pods, present, this.#clock());
    return stringifyJson(summaryOf(this.#o.nodeName, this.#since, [...stats.values()], totals));
  }

  /** Resource readings of these pods, for what their nodes do not show in the form asked for. */
  async #readings(
    targets: readonly UsageTarget[],
  ): Promise<{ readings: [UsageTarget, PodReading][]; failed: boolean }> {
    if (targets.length > 0) await this.#ask(() => this.#resource.refresh(targets));
    const { readings, failed } = this.#resource.gather(targets, false);
    const found = targets.flatMap((target): [UsageTarget, PodReading][] => {
      const reading = readings.get(uidOf(target));
      return reading === undefined ? [] : [[target, reading]];
    });
    return { readings: found, failed };
  }

  #statsOf(target: UsageTarget, reading: PodReading): PodStats {
    const keyOf = (container: string): string => `${uidOf(target)}/${container}`;
    let total = 0;
    for (const { container, cpuSeconds } of reading.containers) {
      this.#rates.observe(keyOf(container), cpuSeconds, reading.at);
      total += cpuSeconds;
    }
    this.#rates.observe(keyOf(''), total, reading.at);
    return statsOf(target, reading, (container) => this.#rates.of(keyOf(container)));
  }

  /** False when the member cannot be asked at all. */
  async #ask(read: () => Promise<void>): Promise<boolean> {
    if (this.#o.unavailable() !== undefined) return false;
    await read();
    return true;
  }

  #onRead(source: Source, ...[result, seconds, error]: Parameters<NodeReadingsOptions<never>['onRead']>): void {
    const { member, nodeName, metrics, logger } = this.#o;
    metrics.reads.inc({ member, source, result });
    metrics.readSeconds.observe({ member, source }, seconds);
    const problem = result === 'ok' ? undefined : describeError(error);
    const told = this.#problems.get(source);
    if (problem === undefined) this.#problems.delete(source);
    else this.#problems.set(source, problem);
    if (problem !== undefined && problem !== told) {
      // Without the right it is meant to be so: the other source is used.
      logger[result === 'failed' ? 'warn' : 'debug'](
        { node: nodeName, source },
        `usage of pods cannot be read: ${problem}`,
      );
    }
  }
}
