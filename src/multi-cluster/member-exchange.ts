import type { Logger } from 'pino';
import type { NamespaceMapping } from '../api/namespace-mapping.ts';
import { hostNamespaceFor } from '../api/namespace-mapping.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { describeError, isConflict, isNotFound, isRightMissing } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import type { ServiceExport } from '../kube/multicluster-v1.ts';
import { keyFor, keyOf, splitKey } from '../kube/object.ts';
import { refusalIn } from '../kube/refusal-words.ts';
import { pause } from '../kube/timers.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { ClusterExports } from './cluster-exports.ts';
import type { ImportPlace } from './derived-service.ts';
import { exchangeFinding, type ExchangeFinding, isRefusedForGood } from './exchange-finding.ts';
import type { ExchangeMetrics } from './exchange-metrics.ts';
import { oldestExports } from './export-limit.ts';
import { type ExportRecord, judgeExport } from './export-record.ts';
import { outcomeOf } from './host-exchange.ts';
import type { Hub } from './hub.ts';
import { copiedSlice, importedSlices } from './imported-slices.ts';
import { ImportedServices, type ImportProblem, toldByOthers } from './imported-services.ts';
import { MemberLocalServices } from './member-local-services.ts';
import { acceptedPorts } from './merged-service.ts';

/** Delay that batches changes of one Service into one look (ms). */
const GATHER_MS = 300;
/** Retry delay while nothing may be written (ms). */
const IDLE_MS = 5_000;
/** Retry delay while something is in the way, or a right is missing (ms). */
const PROBLEM_MS = 60_000;
/** Requeue after a conflict, once caches have caught up. */
const SOON = { requeueAfterMs: 250 };
const POLL_MS = 1_000;
const AT_ONCE = 8;
/** Services that one member may export. */
const MAX_EXPORTS = 1_000;
const NO_PART =
  'Services are not exchanged with this cluster. Condition ServicesExchanged of its MemberCluster, in the host, says why, while there is one.';
/** Before the key of something of the host that no namespace of the member stands for. */
const UNMAPPED = '>';

export interface MemberExchangeOptions {
  hub: Hub;
  member: {
    readonly name: string;
    readonly client: KubeClient;
    readonly namespaces: Pick<Informer<Namespace>, 'get' | 'on' | 'hasSynced'>;
    /** Whether a namespace of it is ours: made by us, or lent to us. */
    readonly isUsable: (namespace: Namespace) => boolean;
    readonly memberNamespaceOf: (hostNamespace: string) => string | undefined;
    readonly reachable: () => boolean;
    /** It has not answered for so long that its pods count as not ready, or another cluster answers in its place. */
    readonly isLost: () => boolean;
    /** Another MemberCluster stands for the same cluster. */
    readonly isShared: () => boolean;
    /** Whether the MemberCluster of that name stands for the same cluster, or may. */
    readonly sharesCluster: (member: string) => boolean;
  };
  spec: () => { wanted: boolean; isIsolated: boolean; mapping: NamespaceMapping };
  mayWrite: () => boolean;
  /** Whether the host may be told of the member, whatever is known of the member itself. */
  mayWriteHost: () => boolean;
  /** Services that the member may export. */
  maxExports?: number;
  /** Retry delay while something is in the way, or a right is missing (ms). */
  problemMs?: number;
  /** Services were exchanged before this process began, or may have been. */
  wereExchanged: boolean;
  metrics: {
    exchange: ExchangeMetrics;
    informer?: InformerMetrics | undefined;
    queue?: WorkQueueMetrics | undefined;
  };
  logger: Logger;
}

/** What is read of the member while Services are exchanged with it. */
interface Followed {
  readonly exports: ClusterExports;
  readonly local: MemberLocalServices;
  readonly imported: ImportedServices;
}

/**
 * One member as one of the clusters that exchange Services: what is exported there is told to the host, and what others export stands
 * there. Level-triggered, by namespace and name in the member.
 */
export class MemberExchange {
  readonly #o: MemberExchangeOptions;
  readonly #queue: WorkQueue;
  readonly #refused = new Map<string, ImportProblem>();
  #followed: Followed;
  #was: boolean;
  /** Keys of the exports that count while there are too many, worked out so long ago (monotonic ms). */
  #counting: { keys: Set<string>; at: number } | undefined;
  /** Nothing of the member is followed any more. */
  #hasEnded = false;
  #refusal: { host: boolean; words: string } | undefined;
  #refusedUntil = 0;
  #state = '';

  constructor(options: MemberExchangeOptions) {
    const { member, metrics, logger } = options;
    this.#o = options;
    this.#was = options.wereExchanged;
    this.#queue = new WorkQueue({
      name: `exchange-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      ...(metrics.queue === undefined ? {} : { metrics: metrics.queue }),
    });
    this.#followed = this.#newFollowed();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { hub, member } = this.#o;
    const seen = ({ metadata: { name } }: Namespace): void => this.#lookAtNamespace(name);
    const off = [
      hub.on((hostKey) => this.#lookSoon(this.#keyOf(hostKey))),
      member.namespaces.on({ added: seen, updated: (now, old) => this.#isUsableNow(now, old) && seen(now) }),
    ];
    await Promise.all([this.#queue.run(signal), this.#follow(signal)]);
    for (const end of off) end();
  }

  /** The spec of the MemberCluster was edited, or the member answers again. */
  changed(): void {
    this.#lookAtAll();
  }

  /** What of ours stands in the member, as far as is known. */
  inMember(): ReturnType<ImportedServices['own']> {
    return this.#followed.imported.own();
  }

  /** Undefined while there is nothing to say. Cheap. */
  finding(): ExchangeFinding | undefined {
    const { hub, member, spec } = this.#o;
    const { exports, local, imported } = this.#followed;
    const { wanted, isIsolated } = spec();
    if (!wanted && !this.#was) return undefined;
    // What stands there is not known yet.
    if (!wanted && !this.#hasEnded && !imported.synced) return undefined;
    const refusal = this.#refusal;
    const unread = [exports, local, imported].find(({ synced, problem }) => !synced && problem !== undefined)?.problem;
    return exchangeFinding({
      member: member.name,
      wanted,
      isIsolated,
      isShared: member.isShared(),
      foreign: { host: hub.foreign(), member: imported.foreign() },
      problems: {
        host:
          (hub.objects.synced ? undefined : hub.objects.problem) ??
          (refusal?.host === true ? refusal.words : undefined),
        member: unread ?? (refusal?.host === false ? refusal.words : undefined),
      },
      synced: exports.synced && local.synced && imported.synced && hub.objects.synced,
      remains: imported.own().length,
      refused: this.#refused,
    });
  }

  /** The member takes part. */
  get #takesPart(): boolean {
    const { hub, member, spec } = this.#o;
    const { wanted, isIsolated } = spec();
    const isOthers = hub.foreign() ?? this.#followed.imported.foreign();
    return wanted && !isIsolated && !member.isShared() && isOthers === undefined;
  }

  /** Its ServiceExports are told that it does not: not where another implementation, or another MemberCluster, tells them. */
  get #tellsNoPart(): boolean {
    const { member, spec } = this.#o;
    return this.#followed.imported.foreign() === undefined && (spec().wanted || !member.isShared());
  }

  #newFollowed(): Followed {
    const { hub, member, metrics, logger } = this.#o;
    const { client, name } = member;
    const common = { client, metrics: metrics.informer, logger };
    const ofExported = (key: string): void => {
      if (this.#followed.exports.get(key) !== undefined) this.#lookSoon(key);
    };
    return {
      exports: new ClusterExports({ ...common, changed: (key) => this.#lookSoon(key) }),
      local: new MemberLocalServices({ ...common, changed: ofExported }),
      imported: new ImportedServices({
        client,
        cluster: name,
        hostId: hub.hostId,
        isOthers: (writer) => writer !== name && member.sharesCluster(writer),
        changed: (key) => this.#lookSoon(key),
        metrics: { exchange: metrics.exchange, informer: metrics.informer },
        logger,
      }),
    };
  }

  /** Follows the member while Services are exchanged, and afterwards until nothing of ours is there. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { hub, member, spec } = this.#o;
    while (!signal.aborted) {
      const isWanted = (): boolean => spec().wanted;
      while (!isWanted() && !this.#was && !signal.aborted) await pause(POLL_MS, signal);
      if (signal.aborted) return;
      hub.use();
      const child = childSignal(signal);
      const followed = this.#newFollowed();
      this.#followed = followed;
      const { exports, local, imported } = followed;
      const running = Promise.all([exports.run(child.signal), local.run(child.signal), imported.run(child.signal)]);
      const isDone = ({ synced, problem }: ClusterExports | ImportedServices, isAllDone: () => boolean): boolean =>
        synced ? isAllDone() : member.reachable() && isRefusedForGood(problem);
      const isUsed = (): boolean =>
        isWanted() ||
        !isDone(imported, () => hub.objects.synced && imported.own().length === 0) ||
        !isDone(exports, () => !exports.sayReady || !this.#tellsNoPart || this.#refusal !== undefined);
      this.#hasEnded = false;
      while (isUsed() && !signal.aborted) {
        if (isWanted()) this.#was = true;
        this.#lookIfChanged();
        await pause(POLL_MS, signal);
      }
      child.abort();
      child.release();
      await running;
      if (signal.aborted) return;
      this.#hasEnded = true;
      this.#refused.clear();
      this.#state = '';
      // What may not be read is left there.
      while (!isWanted() && !signal.aborted) await pause(POLL_MS, signal);
    }
  }

  /** What every name depends on is asked for, as nobody tells of it. */
  #lookIfChanged(): void {
    const { member } = this.#o;
    const state = [this.#isKnown, this.#takesPart, member.reachable(), member.isLost()].join(' ');
    if (state === this.#state) return;
    this.#state = state;
    this.#lookAtAll();
  }

  get #isKnown(): boolean {
    const { hub, member } = this.#o;
    const { exports, local, imported } = this.#followed;
    const isRead = exports.synced && local.synced && imported.synced && hub.objects.synced;
    // A namespace that is not known yet would count as not lent, which takes all of its Services away.
    return isRead && member.namespaces.hasSynced;
  }

  #isUsableNow(now: Namespace, old: Namespace): boolean {
    const { isUsable } = this.#o.member;
    return isUsable(now) !== isUsable(old) || now.metadata.deletionTimestamp !== old.metadata.deletionTimestamp;
  }

  /** The key here of something of the host's. */
  #keyOf(hostKey: string): string {
    const { namespace = '', name } = splitKey(hostKey);
    const mapped = this.#o.member.memberNamespaceOf(namespace);
    return mapped === undefined ? `${UNMAPPED}${hostKey}` : keyFor(mapped, name);
  }

  #hostKeyOf(key: string): string | undefined {
    const { namespace = '', name } = splitKey(key);
    const mapped = hostNamespaceFor(this.#o.spec().mapping, namespace);
    return mapped === undefined ? undefined : keyFor(mapped, name);
  }

  #lookAtAll(): void {
    if (!this.#o.spec().wanted && !this.#was) return;
    const { exports, imported } = this.#followed;
    const hostKeys = [...this.#o.hub.objects.keys()].map((key) => this.#keyOf(key));
    for (const key of new Set([...exports.keys(), ...imported.keys(), ...hostKeys])) this.#queue.add(key);
  }

  #lookAtNamespace(name: string): void {
    if (!this.#o.spec().wanted && !this.#was) return;
    const { exports } = this.#followed;
    const hostKeys = [...this.#o.hub.objects.keys()].map((key) => this.#keyOf(key));
    for (const key of new Set([...exports.keys(), ...hostKeys])) if (key.startsWith(`${name}/`)) this.#queue.add(key);
  }

  #lookSoon(key: string): void {
    if (this.#o.spec().wanted || this.#was) this.#queue.addAfter(key, GATHER_MS);
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, mayWrite, mayWriteHost, member } = this.#o;
    if (!mayWriteHost()) return { requeueAfterMs: IDLE_MS };
    if (!hub.objects.synced) return undefined;
    const rest = this.#refusedUntil - monotonic();
    if (rest > 0) return { requeueAfterMs: rest };
    try {
      if (key.startsWith(UNMAPPED)) {
        await this.#tellHost(key.slice(UNMAPPED.length), undefined, [], signal);
        return undefined;
      }
      if (!member.reachable() || member.isLost()) return await this.#unreached(key, signal);
      if (!mayWrite()) return { requeueAfterMs: IDLE_MS };
      // All keys are queued again once the caches have synced.
      if (!this.#isKnown) return undefined;
      const again = await this.#sync(key, signal);
      this.#refusal = undefined;
      return again;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (!isRightMissing(error)) throw error;
      const words = describeError(error);
      if (this.#refusal === undefined)
        this.#o.logger.warn({ member: member.name }, `Services are not exchanged: ${words}`);
      this.#refusal = { host: error.cluster !== member.name, words };
      this.#refusedUntil = monotonic() + this.#problemMs;
      return { requeueAfterMs: this.#problemMs };
    }
  }

  /** Nothing is known of it then. What it exports stays, as others may depend on the name, but leads nowhere once it counts as lost. */
  async #unreached(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, member } = this.#o;
    const hostKey = this.#hostKeyOf(key);
    if (member.isLost() && hostKey !== undefined) await hub.keepSlices(hostKey, member.name, [], signal);
    return undefined;
  }

  async #sync(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, member } = this.#o;
    const { exports, local, imported } = this.#followed;
    const { namespace = '', name } = splitKey(key);
    const takesPart = this.#takesPart;
    const hostKey = this.#hostKeyOf(key);
    const isOpen = takesPart && hostKey !== undefined && this.#openHostKey(key) !== undefined;
    const known = exports.get(key);
    const told = known?.toldBy === undefined ? known : undefined;
    const exported = takesPart ? told : undefined;
    const judged = exported === undefined || !isOpen ? undefined : this.#judge(exported, key);
    const record = judged !== undefined && 'record' in judged ? judged.record : undefined;
    const place: ImportPlace = { hostId: hub.hostId, member: member.name, namespace, name };
    let problem: Awaited<ReturnType<Hub['keepRecord']>>;
    if (hostKey !== undefined) {
      const { namespace: hostNamespace = '' } = splitKey(hostKey);
      const inHost = { ...place, member: undefined, namespace: hostNamespace };
      problem = await hub.keepRecord(hostKey, member.name, record, signal);
      const own = this.#ownSlices(hostKey, local.slicesOf(key), record, inHost);
      problem ??= await this.#tellSlices(hostKey, own, signal);
    }
    const merged = isOpen ? hub.merged(hostKey) : undefined;
    let refused = !takesPart || known?.toldBy === undefined ? undefined : toldByOthers(key, known.toldBy);
    if (merged === undefined || hostKey === undefined || refused !== undefined) await imported.remove(key, signal);
    else {
      refused = await imported.keep(hostKey, merged, place, signal);
      const others = hub
        .slicesOf(hostKey, (cluster) => cluster !== member.name)
        .map((slice) => copiedSlice(slice, place));
      const own = this.#ownSlices(hostKey, local.slicesOf(key), record, place);
      if (refused === undefined || (refused.reason === 'ImportRefused' && imported.hasService(key)))
        await imported.keepSlices(key, [...others, ...own], () => true, signal);
    }
    if (refused === undefined) this.#refused.delete(key);
    else this.#refused.set(key, refused);
    if (exported !== undefined) {
      const outcome = isOpen
        ? outcomeOf(judged, problem, merged, splitKey(hostKey).namespace ?? '')
        : { refusal: { failed: this.#whyClosed(namespace, hostKey) } };
      await exports.tell(exported, outcome, signal);
    } else if (told !== undefined && this.#tellsNoPart) {
      await exports.tell(told, { refusal: { failed: NO_PART } }, signal);
    }
    const isOneTooMany = judged !== undefined && !this.#isCounted(key);
    return refused === undefined && !isOneTooMany && (problem === undefined || record === undefined)
      ? undefined
      : { requeueAfterMs: this.#problemMs };
  }

  /** A member may say what the host's API server does not take. */
  async #tellSlices(
    hostKey: string,
    own: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<ImportProblem | undefined> {
    const { hub, member } = this.#o;
    try {
      await hub.keepSlices(hostKey, member.name, own, signal);
      return undefined;
    } catch (error) {
      const words = refusalIn(error);
      if (words === undefined) throw error;
      return {
        reason: 'ImportRefused',
        message: `The host does not take its endpoints: ${words}. It is tried again by itself.`,
      };
    }
  }

  #judge(exported: ServiceExport, key: string): ReturnType<typeof judgeExport> {
    const { local } = this.#followed;
    if (!this.#isCounted(key)) {
      const failed = `This cluster has more than ${this.#maxExports} ServiceExports, which is more than the host takes: the oldest ones count. It is tried again by itself.`;
      return { refusal: { failed } };
    }
    return judgeExport(exported, local.serviceOf(key), local.slicesOf(key).length);
  }

  get #problemMs(): number {
    return this.#o.problemMs ?? PROBLEM_MS;
  }

  get #maxExports(): number {
    return this.#o.maxExports ?? MAX_EXPORTS;
  }

  /** Whether it is one of those that the host takes. */
  #isCounted(key: string): boolean {
    const { exports } = this.#followed;
    if (exports.size <= this.#maxExports) return true;
    const now = monotonic();
    if (this.#counting === undefined || now - this.#counting.at > POLL_MS) {
      const open = [...exports.values()].filter((one) => this.#openHostKey(keyOf(one)) !== undefined);
      this.#counting = { keys: oldestExports(open, this.#maxExports), at: now };
    }
    return this.#counting.keys.has(key);
  }

  /** The key in the host of something in a namespace that is lent to us. */
  #openHostKey(key: string): string | undefined {
    const { member } = this.#o;
    const found = member.namespaces.get(splitKey(key).namespace ?? '');
    const isUsable = found !== undefined && found.metadata.deletionTimestamp === undefined && member.isUsable(found);
    return isUsable ? this.#hostKeyOf(key) : undefined;
  }

  #whyClosed(namespace: string, hostKey: string | undefined): string {
    return hostKey === undefined
      ? `No namespace of the host stands for namespace ${namespace}.`
      : `Namespace ${namespace} is not lent to the host (label spillway.dev/allow-host).`;
  }

  #ownSlices(
    hostKey: string,
    slices: readonly EndpointSlice[],
    record: ExportRecord | undefined,
    place: ImportPlace,
  ): EndpointSlice[] {
    const merged = this.#o.hub.merged(hostKey);
    if (record === undefined || merged === undefined) return [];
    const ports = record.ports.length === 0 ? undefined : acceptedPorts(record, merged);
    return importedSlices({ hostKey, type: merged.type, cluster: this.#o.member.name, slices, ports }, place);
  }

  async #tellHost(
    hostKey: string,
    record: ExportRecord | undefined,
    slices: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<void> {
    const { hub, member } = this.#o;
    await hub.keepRecord(hostKey, member.name, record, signal);
    await hub.keepSlices(hostKey, member.name, slices, signal);
  }
}
