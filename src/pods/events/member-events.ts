import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { hostKeyOf } from '../../api/host-key.ts';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../../api/marks.ts';
import type { Pod } from '../../kube/core-v1.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeError, isTransient } from '../../kube/errors.ts';
import type { InformerMetrics } from '../../kube/informer-metrics.ts';
import type { Informer } from '../../kube/informer.ts';
import { atMost } from '../../kube/lru-limit.ts';
import { keyFor, type KubeObject } from '../../kube/object.ts';
import { pause } from '../../kube/timers.ts';
import type { WorkQueueMetrics } from '../../kube/workqueue-metrics.ts';
import { type HandlerResult, WorkQueue } from '../../kube/workqueue.ts';
import { EventWatch, type UsedNamespaces } from './event-watch.ts';
import { EventWriter } from './event-writer.ts';
import { type EventSubject, type HostEvent, hostEventOf } from './host-event.ts';
import { lastSeen, type MemberEvent } from './member-event.ts';
import type { MemberEventMetrics } from './metrics.ts';
import {
  claimEventSelector,
  eventSelector,
  explainsClaim,
  passesFilter,
  passesClaimFilter,
  type PodEvents,
} from './event-filter.ts';
import { TokenBucket } from './token-bucket.ts';

/** Events that wait to be written. */
const CAPACITY = 4096;
/** Budgets: of one pod, and of a member. The member's also bounds what a broken one costs the host's API server. */
const POD_BURST = 15;
const POD_REFILL_MS = 60_000;
const MEMBER_BURST = 200;
const MEMBER_REFILL_MS = 50;
const PODS_REMEMBERED = 4096;
/** Between two writes about the same Event, in ms: in between only the count would change. */
const REPEAT_MS = 10_000;
/**
 * How long an Event may be ahead of the caches that know its pod, and after what time they are first asked again, in
 * ms. What was found by listing is rarely ahead: its pod is most likely gone.
 */
const PLACE_MS = 15_000;
const PLACE_RETRY_MS = 250;
const LISTED_PLACE_MS = 3000;
/** The same for claims: those of others are as unknown as those of ours that have just been made. */
const CLAIM_PLACE_MS = 1000;
/** How many of the pods that wait for a claim are told what the member says of it. */
const PODS_TOLD = 5;
/** Older news is none: what was found by listing is told only if it happened last within this time, in ms. */
const LISTED_AGE_MS = 600_000;
const MAX_TRIES = 8;
const FROZEN_RETRY_MS = 5000;

/** A claim of the host that has its data in the member, and the pods on virtual nodes there that use it. */
export interface ToldClaim {
  claim: Pick<KubeObject, 'metadata'>;
  pods: Iterable<Pod>;
}

export interface MemberEventsOptions {
  host: KubeClient;
  hostId: string;
  member: { readonly name: string; readonly client: KubeClient; readonly pods: Informer<Pod> };
  /** The host pod of that key if it is bound to that virtual node. */
  hostPod: (nodeName: string, key: string) => Pod | undefined;
  /** What a claim of the member stands for; undefined: nothing that is known. Default: claims are not followed. */
  hostClaim?: (memberNamespace: string, name: string, uid: string) => ToldClaim | undefined;
  /** What is told, as it is now; after a change call {@link MemberEvents.restart}. */
  podEvents: () => PodEvents;
  /** False while nothing may be written. */
  mayWrite: () => boolean;
  metrics: MemberEventMetrics;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  /** Wall clock in ms. */
  clock?: () => number;
}

interface Waiting {
  event: MemberEvent;
  listed: boolean;
  since: number;
  tries: number;
}

/** What an Event is about: nothing of ours, or it cannot be told yet, or these objects of the host. */
type Place = 'foreign' | 'unknown' | readonly EventSubject[];

/**
 * Puts what a member says about our pods on the host pods, where `kubectl describe pod` shows it, and what it says about
 * our claims on the host's claims and the pods that wait for them: warnings, and the few others that explain something
 * (see {@link passesFilter}). Bounded in rate and memory; Events of other people's pods are
 * dropped where they arrive, and appear nowhere.
 */
export class MemberEvents {
  readonly #o: MemberEventsOptions;
  readonly #clock: () => number;
  readonly #watch: EventWatch;
  readonly #writer: EventWriter;
  readonly #queue: WorkQueue;
  /** By the UID of the member's Event. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #podBudgets = new LRUCache<string, TokenBucket>(atMost(PODS_REMEMBERED));
  readonly #budget: TokenBucket;

  constructor(options: MemberEventsOptions) {
    const { host, hostId, member, informerMetrics, queueMetrics, logger } = options;
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#writer = new EventWriter(host, this.#clock);
    this.#budget = new TokenBucket(MEMBER_BURST, MEMBER_REFILL_MS, this.#clock());
    const isOurs = ({ metadata }: Pod): boolean => metadata.labels?.[HOST_LABEL] === hostId;
    const ofPods = {
      namespaces: usedNamespaces(member.pods, isOurs),
      selector: () => eventSelector(options.podEvents()),
    };
    const ofClaims = {
      namespaces: usedNamespaces(member.pods, (pod) => isOurs(pod) && hasClaims(pod)),
      selector: () => claimEventSelector(options.podEvents()),
    };
    this.#watch = new EventWatch({
      client: member.client,
      kinds: options.hostClaim === undefined ? [ofPods] : [ofPods, ofClaims],
      wanted: (event) => this.#isWanted(event),
      take: (event, listed) => this.#take(event, listed),
      logger,
      metrics: informerMetrics,
    });
    this.#queue = new WorkQueue({
      name: `member-events-${member.name}`,
      concurrency: 4,
      handler: async (uid, signal) => await this.#handle(uid, signal),
      backoff: { baseMs: 500, maxMs: 30_000 },
      metrics: queueMetrics,
      // No logger: a host that is away would otherwise be reported once per Event.
    });
  }

  /** What is told has changed. */
  restart(): void {
    this.#watch.restart();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal), this.#watch.run(signal)]);
  }

  #isWanted(event: MemberEvent): boolean {
    const events = this.#o.podEvents();
    switch (event.involvedObject.kind) {
      case 'Pod':
        return passesFilter(events, event) && this.#place(event) !== 'foreign';
      case 'PersistentVolumeClaim':
        return this.#o.hostClaim !== undefined && passesClaimFilter(events, event);
      default:
        return false;
    }
  }

  #take(event: MemberEvent, listed: boolean): void {
    const { uid } = event.metadata;
    const now = this.#clock();
    if (uid === undefined || (listed && now - (lastSeen(event) ?? 0) > LISTED_AGE_MS)) return;
    const known = this.#waiting.get(uid);
    if (known === undefined && this.#waiting.size >= CAPACITY) {
      this.#count('overflow');
      return;
    }
    this.#waiting.set(uid, { event, listed, since: known?.since ?? now, tries: 0 });
    this.#queue.add(uid);
  }

  async #handle(uid: string, signal: AbortSignal): Promise<HandlerResult> {
    const waiting = this.#waiting.get(uid);
    if (waiting === undefined) return undefined;
    if (!this.#o.mayWrite()) return { requeueAfterMs: FROZEN_RETRY_MS };
    const now = this.#clock();
    const place = this.#place(waiting.event);
    if (place === 'unknown') {
      const again = placeAgainMs(waiting, now);
      // Dropped are also Events about other people's pods that are gone by now.
      return again === undefined ? this.#drop(uid, waiting, 'unplaced') : { requeueAfterMs: again };
    }
    let rest = 0;
    if (place !== 'foreign') {
      for (const subject of place) rest = Math.max(rest, await this.#tell(waiting, subject, signal));
    }
    if (signal.aborted) return undefined;
    return rest > 0 ? { requeueAfterMs: rest } : this.#drop(uid, waiting);
  }

  /** Tells of one object. Answers after how many ms there may be more to tell; 0: never. */
  async #tell(waiting: Waiting, subject: EventSubject, signal: AbortSignal): Promise<number> {
    const now = this.#clock();
    const wanted = hostEventOf(waiting.event, subject, this.#o.member.name, now);
    const written = this.#writer.written(wanted);
    if (written !== undefined) {
      if (written.count >= wanted.count) return 0;
      const rest = written.at + REPEAT_MS - now;
      if (rest > 0) return rest;
    }
    if (!this.#budgetOf(subject, now).take(now)) {
      this.#count('rate-limited');
      return 0;
    }
    while (!this.#budget.take(this.#clock())) {
      if (signal.aborted) return 0;
      await pause(this.#budget.waitMs(this.#clock()), signal);
    }
    await this.#write(waiting, wanted, signal);
    return 0;
  }

  async #write(waiting: Waiting, wanted: HostEvent, signal: AbortSignal): Promise<void> {
    try {
      this.#count(await this.#writer.write(wanted, waiting.listed, signal));
    } catch (error) {
      waiting.tries += 1;
      if (isTransient(error) && waiting.tries < MAX_TRIES) throw error;
      this.#o.logger.debug({ event: wanted.metadata.name }, `member Event not written: ${describeError(error)}`);
      this.#count(isTransient(error) ? 'lost' : 'refused');
    }
  }

  #place(event: MemberEvent): Place {
    if (isOfClaim(event)) return this.#placeOfClaim(event);
    const place = this.#placeOfPod(event);
    if (typeof place === 'string') return place;
    return passesFilter(this.#o.podEvents(), event, place) ? [{ kind: 'Pod', metadata: place.metadata }] : 'foreign';
  }

  /** The claim, and of the pods that use it those that have not started. */
  #placeOfClaim(event: MemberEvent): Place {
    const { namespace = '', name = '', uid = '' } = event.involvedObject;
    const told = this.#o.hostClaim?.(namespace, name, uid);
    if (told === undefined) return 'unknown';
    const { metadata } = told.claim;
    const subjects: EventSubject[] = [{ kind: 'PersistentVolumeClaim', metadata }];
    if (!explainsClaim(event)) return subjects;
    for (const pod of told.pods) {
      if (subjects.length > PODS_TOLD) break;
      if (pod.status?.phase !== 'Pending' || pod.metadata.deletionTimestamp !== undefined) continue;
      subjects.push({ kind: 'Pod', metadata: pod.metadata, claim: metadata.name });
    }
    return subjects;
  }

  #placeOfPod({ involvedObject }: MemberEvent): 'foreign' | 'unknown' | Pod {
    const { namespace = '', name = '', uid } = involvedObject;
    const pod = this.#o.member.pods.get(keyFor(namespace, name));
    if (pod === undefined || uid === undefined || pod.metadata.uid !== uid) return 'unknown';
    const { labels } = pod.metadata;
    const key = hostKeyOf(pod);
    if (labels?.[HOST_LABEL] !== this.#o.hostId || key === undefined) return 'foreign';
    // The marks are the member's to change: only a host pod that is bound to this member and has that UID counts.
    const hostPod = this.#o.hostPod(labels[NODE_LABEL] ?? '', key);
    return hostPod !== undefined && hostPod.metadata.uid === labels[UID_LABEL] ? hostPod : 'unknown';
  }

  #budgetOf({ metadata }: EventSubject, now: number): TokenBucket {
    const uid = metadata.uid ?? '';
    const known = this.#podBudgets.get(uid);
    if (known !== undefined) return known;
    const fresh = new TokenBucket(POD_BURST, POD_REFILL_MS, now);
    this.#podBudgets.set(uid, fresh);
    return fresh;
  }

  /** Done with; what came about the same in the meantime stays and waits for its own turn. */
  #drop(uid: string, waiting: Waiting, outcome?: string): undefined {
    if (this.#waiting.get(uid) === waiting) this.#waiting.delete(uid);
    if (outcome !== undefined) this.#count(outcome);
    return undefined;
  }

  #count(outcome: string): void {
    this.#o.metrics.events.inc({ member: this.#o.member.name, outcome });
  }
}

/** After how long to look for the pod of an Event again; each time twice as long. Undefined: never. */
function placeAgainMs({ event, listed, since }: Waiting, now: number): number | undefined {
  const age = now - since;
  if (isOfClaim(event)) return age < CLAIM_PLACE_MS ? CLAIM_PLACE_MS : undefined;
  if (listed) return age < LISTED_PLACE_MS ? LISTED_PLACE_MS : undefined;
  return age < PLACE_MS ? Math.max(PLACE_RETRY_MS, age) : undefined;
}

function isOfClaim({ involvedObject }: MemberEvent): boolean {
  return involvedObject.kind === 'PersistentVolumeClaim';
}

function hasClaims({ spec }: Pod): boolean {
  return spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined) === true;
}

/** Namespaces of the member with such pods in them. */
function usedNamespaces(pods: Informer<Pod>, isOurs: (pod: Pod) => boolean): UsedNamespaces {
  return {
    on(handler) {
      const counts = new Map<string, number>();
      const change = (pod: Pod, by: 1 | -1): void => {
        const { namespace = '' } = pod.metadata;
        const before = counts.get(namespace) ?? 0;
        counts.set(namespace, before + by);
        if (before === 0 && by > 0) handler.used(namespace);
        if (before + by > 0) return;
        counts.delete(namespace);
        handler.unused(namespace);
      };
      return pods.on({
        added: (pod) => {
          if (isOurs(pod)) change(pod, 1);
        },
        updated: (pod, old) => {
          if (isOurs(pod) !== isOurs(old)) change(pod, isOurs(pod) ? 1 : -1);
        },
        deleted: (pod) => {
          if (isOurs(pod)) change(pod, -1);
        },
      });
    },
  };
}
