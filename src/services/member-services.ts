import type { Pod, Service } from '../kube/core-v1.ts';
import { childSignal } from '../kube/child-signal.ts';
import { monotonic } from '../kube/clock.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { describeError, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { ENDPOINT_SLICES, SERVICES } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { list } from '../kube/verbs.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import { type CopyStore, copyStore } from './copy-store.ts';
import { EndpointSource } from './endpoint-source.ts';
import { type MemberServicesOptions, SERVICE_WAITS, type ServiceWaits } from './member-services-options.ts';
import { ServiceAddresses } from './service-addresses.ts';
import { type CopyPlace, isMirrored } from './service-copy.ts';
import { ServiceWriter } from './service-writer.ts';
import { type ServiceProblem, servicesFinding, type ServicesFinding } from './services-finding.ts';

/** While nothing may be written, in ms. */
const IDLE_MS = 5_000;
/** After a refusal nothing is tried for so long: it is the right that is missing, for all Services. */
const REFUSED_MS = 60_000;
/** What somebody else has in the way is looked at again after so long. */
const PROBLEM_MS = 60_000;
/** For caches to show what was just written, in ms. */
const SOON = { requeueAfterMs: 250 };
/** Whether Services are still to be there is looked at so often, in ms. */
const POLL_MS = 1_000;
/** How many Services of a member are worked on at the same time. */
const AT_ONCE = 8;

type Stores = { services: CopyStore<Service>; slices: CopyStore<EndpointSlice>; writer: ServiceWriter };

/**
 * Services of the host in one member: where pods of the host are, each Service of their namespace stands under its own name, with
 * the endpoints that the host knows. Level-triggered, by Service.
 */
export class MemberServices {
  readonly #o: MemberServicesOptions;
  readonly #waits: ServiceWaits;
  readonly #queue: WorkQueue;
  readonly #problems = new Map<string, ServiceProblem>();
  /** Since when no pod needs them, by the key of the Service. */
  readonly #emptySince = new Map<string, number>();
  /** Until when a Service is left alone, by its key. */
  readonly #rests = new Map<string, number>();
  /** Namespaces of the host with pods on the member, as far as they were seen. */
  readonly #populated = new Set<string>();
  readonly #addresses: ServiceAddresses;
  readonly #endpoints: EndpointSource;
  #stores: Stores;
  #complete = false;
  #refusedUntil = 0;
  #refusal: string | undefined;
  #wasMirrored: boolean;

  constructor(options: MemberServicesOptions) {
    const { member, queueMetrics, logger } = options;
    this.#o = options;
    this.#waits = options.waits ?? SERVICE_WAITS;
    this.#wasMirrored = options.wereMirrored;
    this.#stores = this.#newStores();
    this.#addresses = this.#newAddresses();
    this.#endpoints = new EndpointSource(options);
    this.#queue = new WorkQueue({
      name: `services-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      ...(queueMetrics === undefined ? {} : { metrics: queueMetrics }),
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { hostServices, hostSlices, member, metrics } = this.#o;
    const seen = (service: Service): void => this.#lookSoon(keyOf(service));
    const off = [
      hostServices.on({ added: seen, updated: seen, deleted: seen }),
      hostSlices.on((key) => {
        if (this.#o.spec().network === 'Flat') this.#lookSoon(key);
      }),
    ];
    await Promise.all([this.#queue.run(signal), this.#follow(signal)]);
    for (const end of off) end();
    metrics.copies.remove({ member: member.name });
  }

  /** A pod of the host on a virtual node of the member came, changed or went. */
  hostPodChanged({ metadata: { namespace = '', labels } }: Pod, before?: Pod): void {
    const { mode } = this.#o.spec().services;
    if (mode === 'None') return;
    const isEmpty = !some(this.#o.hostPods(namespace));
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

  /** All pods of the host in the member are known: what nobody needs is garbage only now. */
  setComplete(): void {
    this.#complete = true;
    this.#lookAtAll();
  }

  /** The spec of the MemberCluster was edited, or the member answers again. */
  changed(): void {
    this.#lookAtAll();
  }

  /** Undefined while there is nothing to say. Cheap. */
  finding(): ServicesFinding | undefined {
    const { spec, hostServices, hostSlices, member } = this.#o;
    const { services, slices } = this.#stores;
    const { mode } = spec().services;
    if (mode === 'None' && !this.#wasMirrored) return undefined;
    const hostProblem = hostServices.hasSynced ? undefined : hostServices.problem;
    const slicesProblem = hostSlices.synced || spec().network === 'Isolated' ? undefined : hostSlices.problem;
    const unread = [services, slices].find(({ synced, problem }) => !synced && problem !== undefined);
    return servicesFinding({
      member: member.name,
      mode,
      copies: this.#size(),
      hostProblem: hostProblem ?? slicesProblem,
      memberProblem: this.#refusal ?? unread?.problem,
      synced: this.#synced(),
      problems: this.#problems,
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
    const { servicesIn, namespaces, hostServices, requeue } = this.#o;
    return new ServiceAddresses({
      servicesIn,
      copiesOf: (key) => this.#stores.services.of(key),
      memberNamespaceOf: (namespace) => namespaces.memberNamespaceOf(namespace),
      isRefused: (key) => this.#problems.has(key),
      state: () => {
        const { services } = this.#stores;
        if (this.#refusal !== undefined) return 'never';
        const unread = [services, { synced: hostServices.hasSynced, problem: hostServices.problem }].filter(
          ({ synced }) => !synced,
        );
        if (unread.length === 0) return 'known';
        return unread.some(({ problem }) => problem !== undefined) ? 'never' : 'soon';
      },
      requeue,
    });
  }

  #newStores(): Stores {
    const { member, hostId, logger, informerMetrics: metrics, sharesCluster } = this.#o;
    const changed = (key: string): void => {
      this.#lookSoon(key);
      this.#addresses.tell(splitKey(key).namespace ?? '');
    };
    const common = { client: member.client, hostId, changed, logger, metrics };
    const services = copyStore<Service>({ ...common, resource: SERVICES });
    const slices = copyStore<EndpointSlice>({ ...common, resource: ENDPOINT_SLICES });
    const writer = new ServiceWriter({
      member: member.name,
      services,
      slices,
      sharesCluster,
      metrics: this.#o.metrics,
    });
    return { services, slices, writer };
  }

  #synced(): boolean {
    return this.#stores.services.synced && this.#stores.slices.synced;
  }

  /** How many Services and slices of this MemberCluster there are. */
  #size(): number {
    const { services, slices, writer } = this.#stores;
    let size = 0;
    for (const store of [services, slices]) for (const copy of store.values()) if (!writer.isOthers(copy)) size += 1;
    return size;
  }

  /** While there are to be none, only until those of before are gone. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { spec, hostSlices, member, metrics } = this.#o;
    while (!signal.aborted) {
      const isWanted = (): boolean => spec().services.mode !== 'None';
      while (!isWanted() && !this.#wasMirrored && !signal.aborted) await pause(POLL_MS, signal);
      if (signal.aborted) return;
      const child = childSignal(signal);
      this.#stores = this.#newStores();
      const release = hostSlices.use();
      const { services, slices } = this.#stores;
      const running = [services.run(child.signal), slices.run(child.signal), this.#whenKnown(child.signal)];
      const isUsed = (): boolean =>
        isWanted() || (this.#synced() && this.#complete ? this.#size() > 0 : !this.#fails());
      while (isUsed() && !signal.aborted) {
        if (isWanted()) this.#wasMirrored = true;
        metrics.copies.set({ member: member.name }, services.size);
        await pause(POLL_MS, signal);
      }
      child.abort();
      child.release();
      release();
      await Promise.all(running);
      if (signal.aborted) return;
      this.#problems.clear();
      this.#populated.clear();
      // Until it is told; what is left where nothing may be read stays.
      while (!isWanted() && !signal.aborted) await pause(POLL_MS, signal);
    }
  }

  #fails(): boolean {
    const { services, slices } = this.#stores;
    return services.problem !== undefined || slices.problem !== undefined;
  }

  async #whenKnown(signal: AbortSignal): Promise<void> {
    const isKnown = (): boolean => this.#synced() && this.#o.hostServices.hasSynced;
    while (!isKnown() && !signal.aborted) await pause(POLL_MS / 10, signal);
    this.#lookAtAll();
    this.#addresses.tellAll();
  }

  #lookAtAll(): void {
    const { hostServices } = this.#o;
    if (this.#o.spec().services.mode === 'None' && !this.#wasMirrored) return;
    const { services, slices } = this.#stores;
    for (const service of hostServices.values()) this.#lookSoon(keyOf(service));
    for (const key of [...services.subjects(), ...slices.subjects()]) this.#lookSoon(key);
  }

  #lookAtNamespace(namespace: string): void {
    for (const service of this.#o.servicesIn(namespace)) this.#queue.add(keyOf(service));
  }

  #lookAtSelecting(namespace: string, some: readonly (Record<string, string> | undefined)[]): void {
    for (const service of this.#o.servicesIn(namespace)) {
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
    const { mayWrite, hostServices, reachable, member } = this.#o;
    if (!mayWrite()) return { requeueAfterMs: IDLE_MS };
    // They come again when all is known.
    if (!hostServices.hasSynced || !this.#synced()) return undefined;
    if (!reachable()) return { requeueAfterMs: IDLE_MS };
    const rest = Math.max(this.#refusedUntil, this.#rests.get(key) ?? 0) - monotonic();
    if (rest > 0) return { requeueAfterMs: rest };
    this.#rests.delete(key);
    try {
      const again = await this.#keep(key, signal);
      this.#refusal = undefined;
      return again;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (!isForbidden(error) || !/is forbidden: User/.test(error.status.message ?? '')) throw error;
      return this.#refused(member.name, describeError(error));
    }
  }

  #refused(member: string, words: string): HandlerResult {
    if (this.#refusal === undefined) this.#o.logger.warn({ member }, `Services are not mirrored: ${words}`);
    this.#refusal = words;
    this.#refusedUntil = monotonic() + REFUSED_MS;
    this.#addresses.tellAll();
    return { requeueAfterMs: REFUSED_MS };
  }

  /** The namespaces of the member in which the Services of one of the host are to stand. */
  #placesOf(hostNamespace: string): Set<string> {
    const { spec, namespaces, hostPods, copiesOf } = this.#o;
    const { mode, namespaces: always } = spec().services;
    const places = new Set<string>();
    if (mode === 'None') return places;
    const place = namespaces.memberNamespaceOf(hostNamespace);
    if (place === undefined) return places;
    if (always.includes(hostNamespace) || some(hostPods(hostNamespace))) places.add(place);
    // Pods stay where they are when the mapping is edited.
    for (const { metadata } of copiesOf(hostNamespace)) places.add(metadata.namespace ?? '');
    return places;
  }

  async #keep(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { namespace: hostNamespace = '' } = splitKey(key);
    const service = this.#o.hostServices.get(key);
    const places = service !== undefined && isMirrored(service) ? this.#placesOf(hostNamespace) : new Set<string>();
    let writes = 0;
    let again = Infinity;
    let problem: ServiceProblem | undefined;
    for (const place of service === undefined ? [] : places) {
      const kept = await this.#keepIn(key, service, place, signal);
      if ('problem' in kept) problem = kept.problem;
      writes += kept.writes;
      again = Math.min(again, kept.again);
    }
    this.#noteProblem(key, service, problem);
    again = Math.min(again, await this.#removeElsewhere(key, service, places, signal));
    if (writes > 1) {
      const until = monotonic() + Math.min(writes * this.#waits.rest, this.#waits.longestRest);
      this.#rests.set(key, Math.max(until, this.#rests.get(key) ?? 0));
    }
    this.#addresses.tell(hostNamespace);
    return Number.isFinite(again) ? { requeueAfterMs: again } : undefined;
  }

  async #keepIn(
    key: string,
    service: Service | undefined,
    namespace: string,
    signal: AbortSignal,
  ): Promise<{ writes: number; again: number; problem?: ServiceProblem }> {
    const { namespaces, hostId, member, spec, hostSlices } = this.#o;
    const { writer, slices } = this.#stores;
    if (service === undefined) return { writes: 0, again: Infinity };
    const { namespace: hostNamespace = '' } = service.metadata;
    const isCurrent = namespaces.memberNamespaceOf(hostNamespace) === namespace;
    const answer = await namespaces.ensure(hostNamespace, signal, isCurrent ? undefined : namespace);
    if ('hold' in answer) {
      return { writes: 0, again: PROBLEM_MS, problem: { reason: 'NamespaceNotAllowed', message: answer.hold.message } };
    }
    const place: CopyPlace = { hostId, member: member.name, namespace };
    const kept = await writer.keep(service, place, signal);
    if ('problem' in kept || 'others' in kept) {
      // What we have there would lead to what is not ours to lead to.
      const own = slices.of(key).filter((slice) => slice.metadata.namespace === namespace && !writer.isOthers(slice));
      for (const slice of own) await writer.removeSlice(slice, signal);
      return { writes: own.length, again: PROBLEM_MS, ...('problem' in kept ? { problem: kept.problem } : {}) };
    }
    const isIsolated = spec().network === 'Isolated';
    // They are looked at again when they are known.
    if (!isIsolated && !hostSlices.synced) return { writes: 0, again: POLL_MS };
    const wanted = this.#endpoints.slicesFor(service, place);
    return { writes: await writer.keepSlices(key, namespace, wanted, signal), again: Infinity };
  }

  /**
   * Takes away what stands where it is not to stand: at once when the Service is gone or none is to be there, and a while after the last
   * pod otherwise. The Service goes first, so that nothing is led by it any more. Then the key rests: a member that goes on
   * showing what was taken away would have the host asked every time. Returns after how long to look again, in ms.
   */
  async #removeElsewhere(
    key: string,
    service: Service | undefined,
    places: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<number> {
    const { services, slices, writer } = this.#stores;
    const isElsewhere = ({ metadata }: Service | EndpointSlice): boolean => !places.has(metadata.namespace ?? '');
    const spare = services.of(key).filter((copy) => isElsewhere(copy) && !writer.isOthers(copy));
    const spareSlices = slices.of(key).filter((slice) => isElsewhere(slice) && !writer.isOthers(slice));
    if (spare.length + spareSlices.length === 0) {
      this.#emptySince.delete(key);
      return Infinity;
    }
    if (!this.#complete) return POLL_MS;
    if (service === undefined && !(await this.#isGone(key, signal))) return POLL_MS;
    const isEmptied = service !== undefined && this.#o.spec().services.mode !== 'None';
    const since = this.#emptySince.get(key) ?? monotonic();
    this.#emptySince.set(key, since);
    const left = isEmptied ? since + this.#waits.empty - monotonic() : 0;
    if (left > 0) return left;
    const rest = (): number => {
      this.#rests.set(key, monotonic() + this.#waits.longestRest);
      return this.#waits.longestRest;
    };
    try {
      for (const copy of spare) await writer.removeService(copy, signal);
      for (const slice of spareSlices) await writer.removeSlice(slice, signal);
    } catch (error) {
      // Other errors are tried again with backoff.
      if (isConflict(error)) rest();
      throw error;
    }
    this.#emptySince.delete(key);
    return rest();
  }

  /** Asks the host itself: a Service that is made anew has another address. */
  async #isGone(key: string, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await list<Service>(this.#o.host, SERVICES, { namespace, fieldSelector, signal });
    return items.length === 0;
  }

  #noteProblem(key: string, service: Service | undefined, problem: ServiceProblem | undefined): void {
    const before = this.#problems.get(key);
    if (problem === undefined || service === undefined) {
      this.#problems.delete(key);
      return;
    }
    this.#problems.set(key, problem);
    // Pods of the namespace tell of that themselves.
    if (before?.message === problem.message || problem.reason === 'NamespaceNotAllowed') return;
    const { namespace, name, uid } = service.metadata;
    const object = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
    this.#o.events.record(object, 'Warning', problem.reason, problem.message);
  }
}

function some(values: Iterable<unknown>): boolean {
  for (const _ of values) return true;
  return false;
}
