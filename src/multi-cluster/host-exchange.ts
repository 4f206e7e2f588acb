import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import { isSystemNamespace } from '../api/namespace-mapping.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isConflict, isNotFound, isRightMissing } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { splitKey } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { ClusterExports, type LocalServices } from './cluster-exports.ts';
import type { ImportPlace } from './derived-service.ts';
import type { ExportOutcome } from './export-conditions.ts';
import { type ExportRecord, judgeExport } from './export-record.ts';
import type { Hub } from './hub.ts';
import { importedSlices } from './imported-slices.ts';
import { acceptedPorts } from './merged-service.ts';

/** Delay that batches changes of one Service into one look (ms). */
const GATHER_MS = 300;
/** Retry delay while something is in the way, or a right is missing (ms). */
const PROBLEM_MS = 60_000;
/** Requeue after a conflict, once caches have caught up. */
const SOON = { requeueAfterMs: 250 };
const POLL_MS = 1_000;
const AT_ONCE = 8;
const NO_MEMBERS = 'No member exchanges Services with the host (spec.services.multiCluster of its MemberClusters).';

export interface HostExchangeOptions {
  host: KubeClient;
  hub: Hub;
  /** Services of the host; `on` is called with the key of a Service that changed, or that leads elsewhere. */
  local: LocalServices & { on(listener: (key: string) => void): () => void };
  /** Names of the MemberClusters that exchange Services; undefined while they are not known. */
  members: () => readonly string[] | undefined;
  /** Whether what is kept of a cluster may stay: it exchanges Services, or there is one of the name whose spec cannot be read. */
  mayStay: (cluster: string) => boolean;
  mayWrite: () => boolean;
  metrics: { informer?: InformerMetrics | undefined; queue?: WorkQueueMetrics | undefined };
  logger: Logger;
}

/**
 * The host as one of the clusters that exchange Services, and the one that brings together what all export: the ServiceImport of each
 * name, its address in the host, and that what is left of clusters that do not take part any more goes. One process does it.
 */
export class HostExchange {
  readonly #o: HostExchangeOptions;
  readonly #exports: ClusterExports;
  readonly #queue: WorkQueue;
  #refusedUntil = 0;
  #known = '';

  constructor(options: HostExchangeOptions) {
    const { host, metrics, logger } = options;
    this.#o = options;
    this.#exports = new ClusterExports({
      client: host,
      changed: (key) => this.#queue.addAfter(key, GATHER_MS),
      metrics: metrics.informer,
      logger,
    });
    this.#queue = new WorkQueue({
      name: 'exchange-local',
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      metrics: metrics.queue,
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { hub, local } = this.#o;
    const lookSoon = (key: string): void => this.#queue.addAfter(key, GATHER_MS);
    const ofExported = (key: string): void => {
      if (this.#exports.get(key) !== undefined) lookSoon(key);
    };
    const off = [hub.on(lookSoon), local.on(ofExported)];
    await Promise.all([this.#exports.run(signal), this.#queue.run(signal), this.#followMembers(signal)]);
    for (const end of off) end();
  }

  /** All is looked at once everything is known, and when a member, or another implementation, begins or ends to take part. */
  async #followMembers(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { hub, members } = this.#o;
      const now = this.#isKnown ? [...(members() ?? []).toSorted(), hub.foreign() ?? ''].join(' ') : undefined;
      if (now !== undefined && `=${now}` !== this.#known) {
        this.#known = `=${now}`;
        for (const key of [...this.#exports.keys(), ...this.#o.hub.objects.keys()]) this.#queue.add(key);
      }
      await pause(POLL_MS, signal);
    }
  }

  get #isKnown(): boolean {
    const { hub, local, members } = this.#o;
    return hub.objects.synced && this.#exports.synced && local.synced && members() !== undefined;
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    if (!this.#o.mayWrite()) return { requeueAfterMs: POLL_MS };
    // All keys are queued again once the caches have synced.
    if (!this.#isKnown) return undefined;
    const isExported = this.#exports.get(key) !== undefined;
    const rest = Math.max(this.#refusedUntil - monotonic(), this.#o.hub.restMs(key, LOCAL, isExported));
    if (rest > 0) return { requeueAfterMs: rest };
    try {
      return await this.#sync(key, signal);
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (!isRightMissing(error)) throw error;
      this.#o.logger.warn(`Services are not exchanged: ${describeError(error)}`);
      this.#refusedUntil = monotonic() + PROBLEM_MS;
      return { requeueAfterMs: PROBLEM_MS };
    }
  }

  async #sync(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, local, members, mayStay } = this.#o;
    const isForeign = hub.foreign() !== undefined;
    const isOn = (members() ?? []).length > 0 && !isForeign;
    // One that others tell of is theirs. What members export under its name stands in the host nevertheless.
    const known = this.#exports.get(key);
    const told = known?.toldBy === undefined && !isForeign ? known : undefined;
    const exported = isOn ? told : undefined;
    const { namespace = '', name } = splitKey(key);
    const judged =
      exported === undefined || isSystemNamespace(namespace)
        ? undefined
        : judgeExport(exported, local.serviceOf(key), local.slicesOf(key).length);
    const record = judged !== undefined && 'record' in judged ? judged.record : undefined;
    // First, as what is to be written may need the room.
    for (const cluster of hub.clustersOf(key)) {
      if (cluster === LOCAL || (isOn && mayStay(cluster))) continue;
      await hub.keepRecord(key, cluster, undefined, signal);
      await hub.keepSlices(key, cluster, [], signal);
    }
    let problem = await hub.keepRecord(key, LOCAL, record, signal);
    const merged = hub.merged(key);
    const place: ImportPlace = { hostId: hub.hostId, member: undefined, namespace, name };
    let again: HandlerResult =
      problem === undefined || record === undefined ? undefined : { requeueAfterMs: PROBLEM_MS };
    if (merged === undefined) await hub.objects.remove(key, signal);
    else {
      let refused = await hub.objects.keep(key, merged, place, signal);
      const unled = await hub.keepSlices(key, LOCAL, this.#ownSlices(key, record, place), signal);
      refused ??= unled;
      if (refused !== undefined) {
        this.#o.logger.warn({ serviceImport: key }, refused.message);
        problem ??= refused;
        again = { requeueAfterMs: PROBLEM_MS };
      }
    }
    if (exported !== undefined) {
      const outcome = outcomeOf(judged, problem, merged, namespace);
      await this.#exports.tell(exported, outcome, signal);
    } else if (told !== undefined) await this.#exports.tell(told, { refusal: { failed: NO_MEMBERS } }, signal);
    return again;
  }

  #ownSlices(hostKey: string, record: ExportRecord | undefined, place: ImportPlace): ReturnType<typeof importedSlices> {
    const { hub, local } = this.#o;
    const merged = hub.merged(hostKey);
    if (record === undefined || merged === undefined) return [];
    const ports = record.ports.length === 0 ? undefined : acceptedPorts(record, merged);
    const slices = local.slicesOf(hostKey);
    return importedSlices({ hostKey, type: merged.type, cluster: LOCAL, slices, ports }, place);
  }
}

/** What is to be told of an export. */
export function outcomeOf(
  judged: ReturnType<typeof judgeExport> | undefined,
  problem: Awaited<ReturnType<Hub['keepRecord']>>,
  merged: ReturnType<Hub['merged']>,
  hostNamespace: string,
): ExportOutcome {
  if (judged === undefined) return { refusal: { failed: `Namespace ${hostNamespace} belongs to the cluster itself.` } };
  if ('refusal' in judged) return judged;
  if (problem === 'no namespace')
    return { pending: `The host has no namespace ${hostNamespace}. It is tried again by itself.` };
  if (problem !== undefined) return { refusal: { failed: problem.message } };
  return merged === undefined ? { pending: 'The host is being told of it.' } : { merged };
}
