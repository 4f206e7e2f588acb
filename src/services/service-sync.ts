import type { Service } from '../kube/service.ts';
import { monotonic } from '../kube/clock.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { ApiError, describeError, isConflict, isNotFound, isRightMissing, isTransient } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { AFTER_LIMIT, LimitError } from '../kube/limit-error.ts';
import { splitKey } from '../kube/object.ts';
import { SERVICES } from '../kube/resource.ts';
import { SinceWhen } from '../kube/since-when.ts';
import { list } from '../kube/verbs.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import type { EndpointSource } from './endpoint-source.ts';
import type { ServicesHost, ServicesMember, ServicesSpec, ServiceWaits } from './member-services-options.ts';
import type { OtherWriters } from './other-writers.ts';
import type { ServiceCopies } from './service-copies.ts';
import { type CopyPlace, isMirrored } from './service-copy.ts';
import { ServicePlaces } from './service-places.ts';
import type { ServiceProblem } from './services-finding.ts';

/** Retry delay while a foreign object or a namespace is in the way (ms). */
const PROBLEM_MS = 60_000;
/** Retry delay while caches sync (ms). */
const POLL_MS = 1_000;

export interface ServiceSyncOptions {
  host: ServicesHost;
  member: ServicesMember;
  spec: ServicesSpec;
  endpoints: EndpointSource;
  others: OtherWriters;
  /** All pods of the host in the member are known: what nobody needs is garbage. */
  complete: () => boolean;
  events: Pick<EventRecorder, 'record'>;
  waits: ServiceWaits;
}

/** Level-triggered sync of one Service of the host in one member: it exists in the namespaces there that need it, and in no others. */
export class ServiceSync {
  readonly #o: ServiceSyncOptions;
  readonly #places: ServicePlaces;
  readonly #problems = new Map<string, ServiceProblem>();
  /** By the key of a Service, that no pod needs it. */
  readonly #empty = new SinceWhen();
  /** By the key of a Service, that each try failed. */
  #failing = new SinceWhen();
  /** By key, when a Service may be synced again (monotonic ms). */
  readonly #rests = new Map<string, number>();

  constructor(options: ServiceSyncOptions) {
    this.#o = options;
    this.#places = new ServicePlaces(options);
  }

  /** Why Services do not stand there, by their keys. */
  get problems(): ReadonlyMap<string, ServiceProblem> {
    return this.#problems;
  }

  /** Nothing is to stand there any more. */
  forgetProblems(): void {
    this.#problems.clear();
    this.#failing = new SinceWhen();
  }

  /** It could not be tried: what fails after an outage counts anew. */
  forgetFailure(key: string): void {
    this.#failing.forget(key);
  }

  /** Time until the Service may be synced again (ms). */
  restMs(key: string): number {
    const rest = (this.#rests.get(key) ?? 0) - monotonic();
    if (rest <= 0) this.#rests.delete(key);
    return Math.max(0, rest);
  }

  /** Brings all that stands for one Service of the host up to date. Throws what the clusters answer. */
  async sync(key: string, copies: ServiceCopies, signal: AbortSignal): Promise<HandlerResult> {
    const { waits } = this.#o;
    const { namespace: hostNamespace = '' } = splitKey(key);
    const service = this.#o.host.services.get(key);
    const places = service !== undefined && isMirrored(service) ? this.#places.of(hostNamespace) : new Set<string>();
    let writes = 0;
    let again = Infinity;
    let problem: ServiceProblem | undefined;
    if (service !== undefined) {
      for (const place of places) {
        const kept = await this.#keepIn(key, service, place, copies, signal).catch((error: unknown) => {
          this.#noteFailure(key, service, error);
          throw error;
        });
        if ('problem' in kept) problem = kept.problem;
        writes += kept.writes;
        again = Math.min(again, kept.again);
      }
    }
    this.#failing.forget(key);
    this.#noteProblem(key, service, problem);
    again = Math.min(again, await this.#removeElsewhere(key, service, places, copies, signal));
    if (writes > 1) {
      const until = monotonic() + Math.min(writes * waits.rest, waits.longestRest);
      this.#rests.set(key, Math.max(until, this.#rests.get(key) ?? 0));
    }
    return Number.isFinite(again) ? { requeueAfterMs: again } : undefined;
  }

  async #keepIn(
    key: string,
    service: Service,
    namespace: string,
    { services, writer, sliceWriter, slices }: ServiceCopies,
    signal: AbortSignal,
  ): Promise<{ writes: number; again: number; problem?: ServiceProblem }> {
    const { host, member, spec, endpoints, others, complete } = this.#o;
    const { namespaces } = member;
    const { namespace: hostNamespace = '' } = service.metadata;
    const own = (): EndpointSlice[] =>
      slices.of(key).filter((slice) => slice.metadata.namespace === namespace && !others.isOthers(slice));
    const there = services.of(key).find(({ metadata }) => metadata.namespace === namespace);
    if ((there === undefined || others.isOthers(there)) && !this.#places.isNeededIn(namespace, hostNamespace)) {
      // Pods of another MemberCluster need it, which sees to it. Our own pods may not be known yet; all keys are queued again then.
      const spare = complete() ? own() : [];
      for (const slice of spare) await sliceWriter.remove(slice, signal);
      return { writes: spare.length, again: Infinity };
    }
    const isCurrent = namespaces.memberNamespaceOf(hostNamespace) === namespace;
    const answer = await namespaces.ensure(hostNamespace, signal, isCurrent ? undefined : namespace);
    if ('hold' in answer) {
      return { writes: 0, again: PROBLEM_MS, problem: { reason: 'NamespaceNotAllowed', message: answer.hold.message } };
    }
    const place: CopyPlace = { hostId: host.id, member: member.name, namespace };
    const kept = await writer.keep(service, place, signal);
    const isIsolated = spec().network === 'Isolated';
    if ('problem' in kept || ('others' in kept && !isIsolated)) {
      // They would lead callers of a foreign Service to our pods, or be there twice.
      const spare = own();
      for (const slice of spare) await sliceWriter.remove(slice, signal);
      return { writes: spare.length, again: PROBLEM_MS, ...('problem' in kept ? { problem: kept.problem } : {}) };
    }
    const arePodsKnown = (): boolean => complete() || (member.synced() && this.#places.knowsPodsOf(hostNamespace));
    const isKnown = isIsolated ? arePodsKnown() : host.slices.synced;
    // All keys are queued again when it is.
    if (!isKnown) return { writes: 0, again: Infinity };
    const wanted = endpoints.slicesFor(service, place);
    const written = await sliceWriter.keep(key, namespace, wanted, signal);
    return { ...written, again: 'others' in kept || 'problem' in written ? PROBLEM_MS : Infinity };
  }

  /**
   * Takes away what stands where it is not to stand: at once when the Service is gone or none is to be there, and a while after the last
   * pod otherwise; where other MemberClusters have pods, so late that these have taken over what they need. The Service goes first, so that nothing is led by it any more. Then the key rests: a member that goes on
   * showing what was taken away would have the host asked every time. Returns after how long to look again, in ms.
   */
  async #removeElsewhere(
    key: string,
    service: Service | undefined,
    places: ReadonlySet<string>,
    { services, slices, writer, sliceWriter }: ServiceCopies,
    signal: AbortSignal,
  ): Promise<number> {
    const isElsewhere = ({ metadata }: Service | EndpointSlice): boolean => !places.has(metadata.namespace ?? '');
    const { others } = this.#o;
    // Another one may need it where this one does not, unless the host has it no more.
    const isOthers = (copy: Service | EndpointSlice): boolean =>
      others.isOthers(copy) && (service !== undefined || !others.isAbandoned(copy));
    const spare = services.of(key).filter((copy) => isElsewhere(copy) && !isOthers(copy));
    const spareSlices = slices.of(key).filter((slice) => isElsewhere(slice) && !isOthers(slice));
    if (spare.length + spareSlices.length === 0) {
      this.#empty.forget(key);
      return Infinity;
    }
    if (!this.#o.complete()) return POLL_MS;
    if (service === undefined && !(await this.#isGone(key, signal))) return POLL_MS;
    const emptyMs = this.#empty.lasting(key, true, monotonic());
    const left = service === undefined ? 0 : this.#waitMs(service) - emptyMs;
    if (left > 0) return left;
    const { longestRest } = this.#o.waits;
    const rest = (): number => {
      this.#rests.set(key, monotonic() + longestRest);
      return longestRest;
    };
    try {
      for (const copy of spare) await writer.removeService(copy, signal);
      for (const slice of spareSlices) await sliceWriter.remove(slice, signal);
    } catch (error) {
      // Other errors are tried again with backoff.
      if (isConflict(error)) rest();
      throw error;
    }
    this.#empty.forget(key);
    return rest();
  }

  /** How long what stands for a Service of the host stays when this MemberCluster needs it no more. */
  #waitMs({ metadata: { namespace = '' } }: Service): number {
    const { spec, waits } = this.#o;
    if (spec().services.mode !== 'None') return waits.empty;
    // With another cluster IP, running pods of the other one would never find it again.
    return this.#places.hasOthersPods(namespace) ? waits.handOver : 0;
  }

  /** Live read: a Service that is recreated gets another address, so a stale cache must not remove the copy. */
  async #isGone(key: string, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    const fieldSelector = `metadata.name=${name}`;
    const { items } = await list<Service>(this.#o.host.client, SERVICES, { namespace, fieldSelector, signal });
    return items.length === 0;
  }

  /** An error that lasts is told, and holds no pods up, though it may pass: a webhook that does not answer may be away for hours. */
  #noteFailure(key: string, service: Service, error: unknown): void {
    if (isConflict(error) || isNotFound(error) || isRightMissing(error)) return;
    const isLimit = error instanceof LimitError;
    if (!(error instanceof ApiError) && !isTransient(error) && !isLimit) return;
    if (this.#failing.lasting(key, true, monotonic()) < this.#o.waits.failing) return;
    const next = isLimit ? AFTER_LIMIT : 'It is tried again by itself.';
    const message = `It could not be brought up to date: ${describeError(error)}. ${next}`;
    this.#noteProblem(key, service, { reason: isLimit ? 'CacheLimit' : 'ServiceRefused', message });
  }

  #noteProblem(key: string, service: Service | undefined, problem: ServiceProblem | undefined): void {
    const before = this.#problems.get(key);
    if (problem === undefined || service === undefined) {
      this.#problems.delete(key);
      return;
    }
    this.#problems.set(key, problem);
    // Pods of the namespace already have an Event for this.
    if (before?.message === problem.message || problem.reason === 'NamespaceNotAllowed') return;
    const { namespace, name, uid } = service.metadata;
    const object = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
    this.#o.events.record(object, 'Warning', problem.reason, problem.message);
  }
}
