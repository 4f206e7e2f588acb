import type { Logger } from 'pino';
import type { NamespaceMapping } from '../api/namespace-mapping.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import type { Namespace } from '../kube/core-v1.ts';
import { describeError, isConflict, isNotFound, isRightMissing } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import { NamespaceRefusals } from '../kube/namespace-refusals.ts';
import { splitKey } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { ClusterExports } from './cluster-exports.ts';
import { exchangeFinding, type ExchangeFinding, isRefusedForGood } from './exchange-finding.ts';
import type { ExchangeMetrics } from './exchange-metrics.ts';
import { ExchangedNames, UNMAPPED } from './exchanged-names.ts';
import { ExportLimit } from './export-limit.ts';
import type { Hub } from './hub.ts';
import { ImportedServices } from './imported-services.ts';
import { MemberLocalServices } from './member-local-services.ts';
import { type ExchangeRight, type Followed, NameSync } from './name-sync.ts';

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
/**
 * What these may take of other clusters together, in bytes: some 30,000 endpoints of pods, or three Services of as many EndpointSlices as
 * a Service may have, or 1,000 Services of 20 endpoints. The manager holds about as much of each member.
 */
const MAX_EXPORT_BYTES = 8 * 1024 * 1024;

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
  /** Room for these in other clusters, in bytes as exportSize counts. */
  maxExportBytes?: number;
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

/**
 * One member as one of the clusters that exchange Services: what is exported there is told to the host, and what others export stands
 * there. Level-triggered, by namespace and name in the member.
 */
export class MemberExchange {
  readonly #o: MemberExchangeOptions;
  readonly #queue: WorkQueue;
  readonly #names: ExchangedNames;
  readonly #services: NameSync;
  #followed: Followed;
  #was: boolean;
  /** The spec was edited: nothing else makes wanted what is not. */
  readonly #edited = new AutoResetEvent();
  /** Nothing of the member is followed any more. */
  #hasEnded = false;
  /** It was lost since all was read of it: that is as old, and led nowhere meanwhile. */
  #isOutdated = false;
  /** Where the member does not give a right. */
  readonly #refusals: Record<ExchangeRight, NamespaceRefusals>;
  /** In words of the host; `until`: nothing is tried before (monotonic ms). */
  #refusedByHost = { words: '', until: -Infinity };
  #state = '';

  constructor(options: MemberExchangeOptions) {
    const { hub, member, metrics, logger, spec } = options;
    this.#o = options;
    this.#names = new ExchangedNames({ ...member, mapping: () => spec().mapping });
    const mayCount = (key: string): boolean => this.#names.openHostKey(key) !== undefined;
    const limit = new ExportLimit(options.maxExports ?? MAX_EXPORTS, mayCount);
    const mostBytes = options.maxExportBytes ?? MAX_EXPORT_BYTES;
    this.#services = new NameSync({ hub, member: member.name, names: this.#names, limit, mostBytes });
    this.#was = options.wereExchanged;
    const waits = { rest: this.#problemMs, late: this.#problemMs / 12 };
    this.#refusals = { imports: new NamespaceRefusals(waits), tells: new NamespaceRefusals(waits) };
    this.#queue = new WorkQueue({
      name: `exchange-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      metrics: metrics.queue,
    });
    this.#followed = this.#newFollowed();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { hub, member } = this.#o;
    const seen = ({ metadata: { name } }: Namespace): void => this.#lookAtNamespace(name);
    const off = [
      hub.on((hostKey) => this.#lookSoon(this.#names.keyOf(hostKey))),
      member.namespaces.on({ added: seen, updated: (now, old) => this.#isUsableNow(now, old) && seen(now) }),
    ];
    await Promise.all([this.#queue.run(signal), this.#follow(signal)]);
    for (const end of off) end();
  }

  /** The spec of the MemberCluster was edited, or the member answers again. */
  changed(): void {
    this.#edited.set();
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
    const unread = member.reachable() ? (exports.problem ?? local.problem ?? imported.problem) : undefined;
    return exchangeFinding({
      member: member.name,
      wanted,
      isIsolated,
      isShared: member.isShared(),
      foreign: { host: hub.foreign(), member: imported.foreign() },
      problems: {
        host: hub.objects.problem ?? this.#hostRefusal,
        member: unread,
      },
      limit: exports.limit ?? local.limit ?? imported.limit,
      refusals: new Map([...this.#refusals.tells.words(), ...this.#refusals.imports.words()]),
      synced: exports.synced && local.synced && imported.synced && hub.objects.synced,
      remains: imported.own().length,
      refused: this.#services.refused,
    });
  }

  /** Why the host takes nothing, in its words: until it is tried again, and a moment longer, as others may have had nothing to write. */
  get #hostRefusal(): string | undefined {
    const { words, until } = this.#refusedByHost;
    return monotonic() < until + this.#problemMs / 12 ? words : undefined;
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
        readsEndpoints: false,
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
      while (!isWanted() && !this.#was && !signal.aborted) await this.#edited.wait(signal);
      if (signal.aborted) return;
      hub.use();
      const child = childSignal(signal);
      const followed = this.#newFollowed();
      this.#followed = followed;
      this.#isOutdated = false;
      const { exports, local, imported } = followed;
      const running = Promise.all([exports.run(child.signal), local.run(child.signal), imported.run(child.signal)]);
      const isDone = ({ synced, problem }: ClusterExports | ImportedServices, isAllDone: () => boolean): boolean =>
        synced ? isAllDone() : member.reachable() && isRefusedForGood(problem);
      const mayTell = (namespace: string): boolean => !this.#refusals.tells.has(namespace);
      const isUsed = (): boolean =>
        isWanted() ||
        !isDone(imported, () => hub.objects.synced && imported.own().length === 0) ||
        !isDone(exports, () => !exports.sayReady(mayTell) || !this.#tellsNoPart || this.#hostRefusal !== undefined);
      this.#hasEnded = false;
      const isBack = (): boolean => this.#isOutdated && member.reachable() && !member.isLost();
      while (isUsed() && !isBack() && !signal.aborted) {
        if (isWanted()) this.#was = true;
        this.#lookIfChanged();
        await pause(POLL_MS, signal);
      }
      const isOver = !isUsed();
      child.abort();
      child.release();
      await running;
      if (signal.aborted) return;
      if (!isOver) continue;
      this.#hasEnded = true;
      this.#services.refused.clear();
      for (const refusals of Object.values(this.#refusals)) refusals.clear();
      this.#state = '';
      // What may not be read is left there.
      while (!isWanted() && !signal.aborted) await this.#edited.wait(signal);
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
    const isRead = !this.#isOutdated && exports.synced && local.synced && imported.synced && hub.objects.synced;
    // A namespace that is not known yet would count as not lent, which takes all of its Services away.
    return isRead && member.namespaces.hasSynced;
  }

  #isUsableNow(now: Namespace, old: Namespace): boolean {
    const { isUsable } = this.#o.member;
    return isUsable(now) !== isUsable(old) || now.metadata.deletionTimestamp !== old.metadata.deletionTimestamp;
  }

  #lookAtAll(): void {
    if (!this.#o.spec().wanted && !this.#was) return;
    const { exports, imported } = this.#followed;
    const hostKeys = [...this.#o.hub.objects.keys()].map((key) => this.#names.keyOf(key));
    // Nothing may be left of what was refused, but that is not known there.
    const refused = Object.values(this.#refusals).flatMap((refusals) => refusals.keys());
    for (const key of new Set([...exports.keys(), ...imported.keys(), ...hostKeys, ...refused])) this.#queue.add(key);
  }

  #lookAtNamespace(name: string): void {
    if (!this.#o.spec().wanted && !this.#was) return;
    const { exports } = this.#followed;
    const hostKeys = [...this.#o.hub.objects.keys()].map((key) => this.#names.keyOf(key));
    for (const key of new Set([...exports.keys(), ...hostKeys])) if (key.startsWith(`${name}/`)) this.#queue.add(key);
  }

  #lookSoon(key: string): void {
    if (this.#o.spec().wanted || this.#was) this.#queue.addAfter(key, GATHER_MS);
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, mayWrite, mayWriteHost, member } = this.#o;
    if (!mayWriteHost()) return { requeueAfterMs: IDLE_MS };
    if (!hub.objects.synced) return undefined;
    try {
      if (key.startsWith(UNMAPPED)) {
        const hostKey = key.slice(UNMAPPED.length);
        await hub.keepRecord(hostKey, member.name, undefined, signal);
        await hub.keepSlices(hostKey, member.name, [], signal);
        return undefined;
      }
      if (!member.reachable() || member.isLost()) return await this.#unreached(key, signal);
      const hostRest = this.#refusedByHost.until - monotonic();
      if (hostRest > 0) return { requeueAfterMs: hostRest };
      if (!mayWrite()) return { requeueAfterMs: IDLE_MS };
      // All keys are queued again once the caches have synced.
      if (!this.#isKnown) return undefined;
      const hostKey = this.#names.hostKeyOf(key);
      const isExported = this.#followed.exports.get(key) !== undefined;
      const wait = hostKey === undefined ? 0 : hub.restMs(hostKey, member.name, isExported);
      if (wait > 0) return { requeueAfterMs: wait };
      let again = Infinity;
      const ifAllowed = async (right: ExchangeRight, write: () => Promise<void>): Promise<void> => {
        again = Math.min(again, await this.#writeIfAllowed(right, key, write));
      };
      const part = { takesPart: this.#takesPart, tellsNoPart: this.#tellsNoPart };
      const asksAgain = await this.#services.sync(key, { followed: this.#followed, ...part, ifAllowed }, signal);
      if (asksAgain) again = Math.min(again, this.#problemMs);
      return Number.isFinite(again) ? { requeueAfterMs: again } : undefined;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (!isRightMissing(error)) throw error;
      const words = describeError(error);
      if (this.#hostRefusal === undefined)
        this.#o.logger.warn({ member: member.name }, `Services are not exchanged: ${words}`);
      this.#refusedByHost = { words, until: monotonic() + this.#problemMs };
      return { requeueAfterMs: this.#problemMs };
    }
  }

  /** Returns when to try again where the right is missing, in ms. */
  async #writeIfAllowed(right: ExchangeRight, key: string, write: () => Promise<void>): Promise<number> {
    const refusals = this.#refusals[right];
    const rest = refusals.restMs(key);
    if (rest > 0) return rest;
    const { namespace = '' } = splitKey(key);
    try {
      await write();
      if (refusals.passed(key)) this.#lookAtNamespace(namespace);
      return Infinity;
    } catch (error) {
      if (!isRightMissing(error)) throw error;
      const { member, logger } = this.#o;
      const words = describeError(error);
      if (refusals.note(key, words))
        logger.warn({ member: member.name, namespace }, `Services are not exchanged: ${words}`);
      return this.#problemMs;
    }
  }

  /** Nothing is known of it then. What it exports stays, as others may depend on the name, but leads nowhere once it counts as lost. */
  async #unreached(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hub, member } = this.#o;
    const hostKey = this.#names.hostKeyOf(key);
    if (!member.isLost() || hostKey === undefined) return undefined;
    this.#isOutdated = true;
    await hub.keepSlices(hostKey, member.name, [], signal);
    return undefined;
  }

  get #problemMs(): number {
    return this.#o.problemMs ?? PROBLEM_MS;
  }
}
