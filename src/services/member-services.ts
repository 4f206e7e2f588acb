import type { Pod } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { childSignal } from '../kube/child-signal.ts';
import { describeError, isConflict, isNotFound, isRightMissing } from '../kube/errors.ts';
import { NamespaceRefusals } from '../kube/namespace-refusals.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import { EndpointSource, zoneOf } from './endpoint-source.ts';
import { type MemberServicesOptions, SERVICE_WAITS, type ServiceWaits } from './member-services-options.ts';
import { OtherWriters } from './other-writers.ts';
import { ServiceAddresses } from './service-addresses.ts';
import { ServiceCopies } from './service-copies.ts';
import { hasAny } from './service-places.ts';
import { ServiceSync } from './service-sync.ts';
import { servicesFinding, type ServicesFinding } from './services-finding.ts';

/** Retry delay while nothing may be written (ms). */
const IDLE_MS = 5_000;
/** Requeue after a conflict, once caches have caught up. */
const SOON = { requeueAfterMs: 250 };
/** Poll interval for what is left in the member and cache sync (ms). */
const POLL_MS = 1_000;
/** Services of a member synced concurrently. */
const AT_ONCE = 8;

/**
 * Services of the host in one member: where pods of the host are, each Service of their namespace stands under its own name, with
 * the endpoints that the host knows. Level-triggered, by Service.
 */
export class MemberServices {
  readonly #o: MemberServicesOptions;
  readonly #waits: ServiceWaits;
  readonly #queue: WorkQueue;
  /** Namespaces of the host with pods on the member, as far as they were seen. */
  readonly #populated = new Set<string>();
  readonly #addresses: ServiceAddresses;
  readonly #sync: ServiceSync;
  readonly #others: OtherWriters;
  readonly #refusals: NamespaceRefusals;
  #copies: ServiceCopies;
  #complete = false;
  #wasMirrored: boolean;
  /** The spec was edited: nothing else makes wanted what is not. */
  readonly #edited = new AutoResetEvent();

  constructor(options: MemberServicesOptions) {
    const { host, member, spec, events, metrics, logger } = options;
    this.#o = options;
    this.#waits = options.waits ?? SERVICE_WAITS;
    this.#refusals = new NamespaceRefusals(this.#waits.refused);
    this.#wasMirrored = options.wereMirrored;
    this.#others = new OtherWriters(member, this.#waits.stalled);
    this.#copies = this.#newCopies();
    this.#addresses = this.#newAddresses();
    this.#sync = new ServiceSync({
      host,
      member,
      spec,
      endpoints: new EndpointSource(host, member, spec),
      others: this.#others,
      complete: () => this.#complete,
      events,
      waits: this.#waits,
    });
    this.#queue = new WorkQueue({
      name: `services-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      metrics: metrics.queue,
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { host, member, metrics } = this.#o;
    const seen = (service: Service): void => this.#lookSoon(keyOf(service));
    const off = [
      host.services.on({ added: seen, updated: seen, deleted: seen }),
      host.slices.on((key) => {
        if (this.#o.spec().network === 'Flat') this.#lookSoon(key);
      }),
      member.nodes.on({
        updated: (node, before) => {
          if (zoneOf(node) !== zoneOf(before)) this.#lookAtAll();
        },
      }),
    ];
    await Promise.all([this.#queue.run(signal), this.#follow(signal)]);
    for (const end of off) end();
    metrics.services.copies.remove({ member: member.name });
  }

  /** A pod of the host on a virtual node of the member came, changed or went. */
  hostPodChanged({ metadata: { namespace = '', labels } }: Pod, before?: Pod): void {
    const { mode } = this.#o.spec().services;
    if (mode === 'None') return;
    const isEmpty = !hasAny(this.#o.host.podsIn(namespace));
    const isNews = isEmpty === this.#populated.has(namespace);
    if (isEmpty) this.#populated.delete(namespace);
    else this.#populated.add(namespace);
    if (isNews) this.#lookAtNamespace(namespace);
    else if (this.#o.spec().network === 'Isolated') this.#lookAtSelecting(namespace, [labels, before?.metadata.labels]);
  }

  /** A pod of the host is gone from the member. */
  copyGone(hostNamespace: string): void {
    if (this.#o.spec().services.mode !== 'None' && !this.#populated.has(hostNamespace))
      this.#lookAtNamespace(hostNamespace);
  }

  /** All pods of the host in the member are known; only now may unneeded copies be removed. */
  setComplete(): void {
    this.#complete = true;
    this.#lookAtAll();
  }

  /** The spec of the MemberCluster was edited. */
  changed(): void {
    this.#edited.set();
    this.#lookAtAll();
  }

  /** Services and slices of this MemberCluster that are in the member, as far as is known. */
  inMember(): ReturnType<ServiceCopies['own']> {
    return this.#copies.own();
  }

  /** Undefined while there is nothing to say. Cheap. */
  finding(): ServicesFinding | undefined {
    const { spec, host, member } = this.#o;
    const copies = this.#copies;
    const { mode, namespaces } = spec().services;
    if (mode === 'None' && !this.#wasMirrored) return undefined;
    const slicesProblem = spec().network === 'Isolated' ? undefined : host.slices.problem;
    return servicesFinding({
      member: member.name,
      mode,
      copies: copies.own().length,
      hostProblem: host.services.unread ?? slicesProblem,
      memberProblem: member.reachable() ? copies.problem : undefined,
      memberLimit: copies.limit,
      refusals: this.#refusals.words(),
      synced: copies.synced,
      unmapped: namespaces.filter((namespace) => member.namespaces.memberNamespaceOf(namespace) === undefined),
      problems: this.#sync.problems,
    });
  }

  /**
   * Whether a pod can be made: the addresses of the Services that it gets variables for are known, or there is a reason why they will
   * not be, which is told on the MemberCluster and holds no pod up.
   */
  require(hostPod: Pod): ReturnType<ServiceAddresses['require']> {
    if (this.#o.spec().services.mode === 'None') return { ready: true };
    const answer = this.#addresses.require(hostPod);
    if (!answer.ready && answer.first) this.#lookAtNamespace(hostPod.metadata.namespace ?? '');
    return answer;
  }

  /**
   * The Services of a namespace of the host with the addresses that they have in the member, for the variables of pods. Undefined: as
   * in the host, as the member has none.
   */
  seenFrom(hostNamespace: string, memberNamespace: string): Service[] | undefined {
    if (this.#o.spec().services.mode === 'None') return undefined;
    return this.#addresses.seenFrom(hostNamespace, memberNamespace);
  }

  #newAddresses(): ServiceAddresses {
    const { host, member, requeue } = this.#o;
    return new ServiceAddresses({
      servicesIn: host.servicesIn,
      copiesOf: (key) => this.#copies.services.of(key),
      memberNamespaceOf: (namespace) => member.namespaces.memberNamespaceOf(namespace),
      isRefused: (key) => this.#sync.problems.has(key),
      state: (namespace) => {
        const { services } = this.#copies;
        if (this.#refusals.has(namespace)) return 'never';
        const unread = [services, { synced: host.services.hasSynced, problem: host.services.unread }].filter(
          ({ synced }) => !synced,
        );
        if (unread.length === 0) return 'known';
        return unread.some(({ problem }) => problem !== undefined) ? 'never' : 'soon';
      },
      requeue,
    });
  }

  #newCopies(): ServiceCopies {
    const { host, member, metrics, logger } = this.#o;
    const changed = (key: string): void => {
      this.#lookSoon(key);
      this.#addresses.wake(splitKey(key).namespace ?? '');
    };
    return new ServiceCopies({ host, member, others: this.#others, changed, metrics, logger });
  }

  /** Runs the member's informers while Services are mirrored, and with mode None until former copies are gone. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { spec, mayWrite, host, member, metrics } = this.#o;
    const canWrite = (): boolean => mayWrite() && member.reachable();
    while (!signal.aborted) {
      const isWanted = (): boolean => spec().services.mode !== 'None';
      while (!isWanted() && !this.#wasMirrored && !signal.aborted) await this.#edited.wait(signal);
      if (signal.aborted) return;
      const child = childSignal(signal);
      const copies = this.#newCopies();
      this.#copies = copies;
      const release = host.slices.use();
      const running = [copies.run(child.signal), this.#whenKnown(child.signal)];
      const isUsed = (): boolean =>
        isWanted() || (copies.synced && this.#complete ? copies.own().length > 0 : copies.problem === undefined);
      let couldWrite = canWrite();
      while (isUsed() && !signal.aborted) {
        if (isWanted()) this.#wasMirrored = true;
        const hasStalled = this.#others.look();
        // What changed in an outage would wait for its next turn.
        const isBack = canWrite() && !couldWrite;
        couldWrite = canWrite();
        if (hasStalled || isBack) this.#lookAtAll();
        metrics.services.copies.set({ member: member.name }, copies.services.size);
        await pause(POLL_MS, signal);
      }
      child.abort();
      child.release();
      release();
      await Promise.all(running);
      if (signal.aborted) return;
      this.#sync.forgetProblems();
      this.#refusals.clear();
      this.#populated.clear();
      // Copies that may not be read are left there.
      while (!isWanted() && !signal.aborted) await this.#edited.wait(signal);
    }
  }

  /**
   * What stands in the member is known, and what decides where that is to be. Without the member's own pods, nodes and namespaces each slice
   * would be written as if none of its endpoints were in the member, and be put right a moment later. Where the member goes on to refuse to
   * show them, that is better than what was told before.
   */
  get #isKnown(): boolean {
    const { host, member } = this.#o;
    const isMemberRead = member.synced() || member.unread() !== undefined;
    return this.#copies.synced && host.services.hasSynced && isMemberRead;
  }

  async #whenKnown(signal: AbortSignal): Promise<void> {
    while (!this.#isKnown && !signal.aborted) await pause(POLL_MS / 10, signal);
    this.#lookAtAll();
    this.#addresses.wakeAll();
    const { slices } = this.#o.host;
    if (slices.synced) return;
    while (!slices.synced && !signal.aborted) await pause(POLL_MS / 10, signal);
    // Nothing else tells of Services that lead nowhere in the host by now.
    this.#lookAtAll();
  }

  #lookAtAll(): void {
    if (this.#o.spec().services.mode === 'None' && !this.#wasMirrored) return;
    for (const service of this.#o.host.services.values()) this.#lookSoon(keyOf(service));
    for (const key of this.#copies.serviceKeys()) this.#lookSoon(key);
  }

  #lookAtNamespace(namespace: string): void {
    for (const service of this.#o.host.servicesIn(namespace)) this.#queue.add(keyOf(service));
  }

  #lookAtSelecting(namespace: string, some: readonly (Record<string, string> | undefined)[]): void {
    for (const service of this.#o.host.servicesIn(namespace)) {
      const selector = Object.entries(service.spec?.selector ?? {});
      if (selector.length > 0 && some.some((labels) => selector.every(([key, value]) => labels?.[key] === value)))
        this.#lookSoon(keyOf(service));
    }
  }

  #lookSoon(key: string): void {
    if (this.#o.spec().services.mode === 'None' && !this.#wasMirrored) return;
    this.#queue.addAfter(key, this.#waits.gather);
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { mayWrite, member, logger } = this.#o;
    if (!mayWrite()) return this.#notTried(key);
    // All keys are queued again once the caches have synced.
    if (!this.#isKnown) return undefined;
    if (!member.reachable()) return this.#notTried(key);
    const { namespace = '' } = splitKey(key);
    const rest = Math.max(this.#refusals.restMs(key), this.#sync.restMs(key));
    if (rest > 0) return { requeueAfterMs: rest };
    try {
      const again = await this.#sync.sync(key, this.#copies, signal);
      if (this.#refusals.passed(key)) this.#lookAtNamespace(namespace);
      this.#addresses.wake(namespace);
      return again;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (!isRightMissing(error)) {
        this.#addresses.wake(namespace);
        throw error;
      }
      const words = describeError(error);
      if (this.#refusals.note(key, words))
        logger.warn({ member: member.name, namespace }, `Services are not mirrored: ${words}`);
      this.#addresses.wake(namespace);
      return { requeueAfterMs: this.#waits.refused.rest };
    }
  }

  #notTried(key: string): HandlerResult {
    this.#sync.forgetFailure(key);
    return { requeueAfterMs: IDLE_MS };
  }
}
