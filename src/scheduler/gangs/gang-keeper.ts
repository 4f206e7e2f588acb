import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { GANG_LABEL, MEMBER_LABEL } from '../../api/marks.ts';
import { isFinished } from '../../api/pod-phase.ts';
import { podSubject } from '../../api/pod-subject.ts';
import type { Pod } from '../../kube/core-v1.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isReady } from '../../kube/conditions.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { InformerMetrics } from '../../kube/informer-metrics.ts';
import { Informer } from '../../kube/informer.ts';
import { atMost } from '../../kube/lru-limit.ts';
import { uidOf } from '../../kube/object.ts';
import { controllerKeyOf, controllerOf } from '../../kube/owner-references.ts';
import { PODS } from '../../kube/resource.ts';
import { patch } from '../../kube/verbs.ts';
import type { WorkQueueMetrics } from '../../kube/workqueue-metrics.ts';
import { type HandlerResult, WorkQueue } from '../../kube/workqueue.ts';
import type { GangEvictions } from './gang-evictions.ts';
import type { GangMetrics } from './gang-metrics.ts';
import { openPatch, pinPatch } from './gang-patches.ts';
import type { GangPlaces } from './gang-places.ts';
import { createdAt, gangStep, type GangStep, isGated } from './gang.ts';

const GANG = 'gang';
/** Between two looks at a gang that waits for room, or for its pods to be bound, in ms. */
const LOOK_MS = 3_000;
/** The same at one that gives up while pods of it are held: each time the member is asked about those that are late. */
const HELD_MS = 10_000;
/** Pods of one gang come one after the other; so long nothing is said about those that are missing. */
const PATIENCE_MS = 30_000;
/** A place that did not work out is not tried again for so long. */
const AVOID_MS = 60_000;
/**
 * What pods show is believed after the host was followed for so long: by then kubelets have come back to it and said what they
 * did while it was away, and schedulers have bound what they could not.
 */
const FOLLOWED_MS = 60_000;
/** Pods behind gates are nothing to kube-scheduler, so it evicts nobody for them. */
const FREE_ONLY = 'It takes room that is free: nobody is evicted for a gang, whatever its priority';
/** Pods that are written at the same time. */
const AT_ONCE = 8;

type GiveUp = GangStep & { do: 'giveUp' };

export interface GangKeeperOptions {
  host: KubeClient;
  places: GangPlaces;
  evictions: GangEvictions;
  events: Pick<EventRecorder, 'record'>;
  metrics: GangMetrics;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  /** Wall clock in ms; once it runs it is not to jump. */
  clock: () => number;
  /** For how long the host has to be followed before time is up for anybody, in ms. Default: 60,000. */
  followedMs?: number;
}

/**
 * Opens the gates of gangs when one place takes all of their pods. Room is held for those that have no node yet; when time
 * is up all of them give back what they have, and their controllers make new ones. What it knows is on the pods, so another
 * process goes on where this one ended.
 */
export class GangKeeper {
  readonly #o: GangKeeperOptions;
  readonly #pods: Informer<Pod>;
  readonly #avoid = new Map<string, { cluster: string; until: number }>();
  /** Clusters that a look which has to go on has tried, and why they do not take the gang. */
  readonly #tried = new Map<string, ReadonlyMap<string, string>>();
  /** What was said about a gang last. */
  readonly #told = new Map<string, string>();
  /** By UID, when a pod was last tried in vain (wall clock in ms): those behind it have their turns before it is tried again. */
  readonly #keptLast = new LRUCache<string, number>(atMost());
  /** Gangs that give back what they have just now. */
  readonly #givingUp = new Map<string, GiveUp>();
  #judgeFrom = Infinity;

  constructor(options: GangKeeperOptions) {
    const { host, logger, informerMetrics } = options;
    this.#o = options;
    this.#pods = new Informer<Pod>({
      client: host,
      resource: PODS,
      labelSelector: GANG_LABEL,
      indexes: { [GANG]: (pod) => [gangOf(pod)] },
      logger,
      metrics: informerMetrics,
    });
  }

  /** Works until the signal aborts; never rejects. To be run by one replica at a time, anew each time. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger, queueMetrics } = this.#o;
    const common = { backoff: { baseMs: 250, maxMs: 30_000 }, logger, metrics: queueMetrics };
    const queue = new WorkQueue({
      ...common,
      name: 'gangs',
      concurrency: 1,
      handler: async (key, abort) => await this.#look(key, (step) => beginGivingUp(key, step), abort),
    });
    // Evictions have a pace, of each member and of all: gangs that wait for their turns keep no others from their places.
    const departures = new WorkQueue({
      ...common,
      name: 'gangs-giving-up',
      concurrency: Infinity,
      handler: async (key, abort) => {
        const step = this.#givingUp.get(key);
        if (step === undefined) return;
        let lookAfterMs = LOOK_MS;
        try {
          lookAfterMs = await this.#giveUp(key, step, abort);
        } finally {
          // Whatever came of it, the next look decides anew.
          this.#givingUp.delete(key);
          queue.addAfter(key, lookAfterMs);
        }
      },
    });
    const beginGivingUp = (key: string, step: GiveUp): void => {
      this.#givingUp.set(key, step);
      departures.add(key);
    };
    const add = (pod: Pod): void => queue.add(gangOf(pod));
    const off = this.#pods.on({ added: add, updated: add, deleted: add });
    const informing = this.#pods.run(signal);
    const synced = await this.#pods.whenSynced(signal).then(
      () => true,
      () => false,
    );
    const { clock, followedMs = FOLLOWED_MS } = this.#o;
    this.#judgeFrom = clock() + followedMs;
    if (synced) await Promise.all([queue.run(signal), departures.run(signal)]);
    this.#givingUp.clear();
    await informing;
    off();
  }

  /** Those that give up are looked at again when they have done so. */
  async #look(key: string, beginGivingUp: (step: GiveUp) => void, signal: AbortSignal): Promise<HandlerResult> {
    if (this.#givingUp.has(key)) return;
    const all = this.#pods.byIndex(GANG, key).filter(isKept).toSorted(byAge);
    const pods = all.filter((pod) => !isFinished(pod));
    const step = await this.#stepOf(all, signal);
    if (step.do !== 'place') this.#tried.delete(key);
    switch (step.do) {
      case 'nothing':
        this.#forget(key, pods);
        return;
      case 'refuse':
        return this.#record(key, pods, 'GangInvalid', `the gang waits, as ${step.problem}`);
      case 'gather':
        return this.#gather(key, pods, step);
      case 'place':
        return await this.#place(key, step, signal);
      case 'open':
        await this.#open(key, step.pods, step.at, signal);
        return { requeueAfterMs: LOOK_MS };
      case 'hold':
        await this.#o.places.hold(step.pods, step.at, step.until - this.#o.clock());
        return { requeueAfterMs: LOOK_MS };
      case 'giveUp':
        beginGivingUp(step);
        return;
    }
  }

  /** Before a gang gives up, the member is asked about those whose status shows no node: the host may have been away. */
  async #stepOf(pods: readonly Pod[], signal: AbortSignal): Promise<GangStep> {
    const { clock, places } = this.#o;
    const spared = new Set<Pod>();
    const missing = new Set<Pod>();
    for (;;) {
      const step = gangStep(pods, { now: clock(), judgeFrom: this.#judgeFrom, spared });
      if (step.do !== 'giveUp') return step;
      const asked = step.overdue.filter((one) => isBurst(one) && !missing.has(one));
      const [pod] = asked;
      if (pod === undefined) return step;
      const hasNode = await places.hasNode(pod, signal);
      if (hasNode === false) missing.add(pod);
      // A member that says nothing about one would not about the others either.
      else for (const one of hasNode === undefined ? asked : [pod]) spared.add(one);
    }
  }

  #forget(key: string, pods: readonly Pod[]): void {
    this.#told.delete(key);
    if (pods.length === 0) this.#avoid.delete(key);
  }

  #gather(key: string, pods: readonly Pod[], step: GangStep & { do: 'gather' }): HandlerResult {
    const { present, behindOthers, succeeded, size } = step;
    const done = succeeded > 0 ? ` and ${String(succeeded)} succeeded` : '';
    const kept = behindOthers > 0 ? `, ${String(behindOthers)} more wait at scheduling gates of others` : '';
    const counts = `${String(present)} of ${String(size)} pods of the gang are there${done}${kept}`;
    const set = this.#setInTurn(pods);
    if (set !== undefined) {
      const words = `${counts}; StatefulSet ${set} makes its next pod only when the one before is ready, which it cannot be at the gate. Gangs need podManagementPolicy: Parallel, with which the set has to be made anew`;
      this.#record(key, pods, 'GangOrdered', words);
      return { requeueAfterMs: PATIENCE_MS };
    }
    const age = this.#o.clock() - Math.max(...pods.map(createdAt));
    const isEnough = present + succeeded >= size;
    if (isEnough || age < PATIENCE_MS) return { requeueAfterMs: isEnough ? LOOK_MS : PATIENCE_MS - age };
    this.#record(key, pods, 'GangIncomplete', `${counts}; the others are waited for, and nothing is held`);
  }

  /** The set whose next pods come only once those at the gate are ready, if there is one. */
  #setInTurn(pods: readonly Pod[]): string | undefined {
    const { places } = this.#o;
    for (const pod of pods.filter(isGated)) {
      const set = places.setInTurn(pod);
      if (set === undefined) continue;
      const made = pods.filter((one) => controllerOf(one)?.uid === controllerOf(pod)?.uid).length;
      if (made < set.replicas) return set.name;
    }
    return undefined;
  }

  async #place(key: string, step: GangStep & { do: 'place' }, signal: AbortSignal): Promise<HandlerResult> {
    const { places, clock } = this.#o;
    const { pods, at, since, late, timeoutMs } = step;
    const avoided = this.#avoid.get(key);
    const avoid = avoided !== undefined && avoided.until > clock() ? avoided.cluster : undefined;
    if (at !== undefined) await places.hold(late, at, timeoutMs);
    const tried = this.#tried.get(key);
    this.#tried.delete(key);
    const question = { at, avoid, holdMs: timeoutMs, ...(tried === undefined ? {} : { tried }) };
    const found = await places.place(pods, question);
    if ('tried' in found) {
      this.#tried.set(key, found.tried);
      return { requeueAfterMs: 0 };
    }
    if ('problem' in found) {
      this.#record(key, pods, 'GangInvalid', `the gang waits, as ${found.problem}`);
      return { requeueAfterMs: PATIENCE_MS };
    }
    if ('why' in found) {
      const words = `no place takes all ${String(pods.length)} pods of the gang now: ${found.why}. ${FREE_ONLY}`;
      this.#record(key, pods, 'GangWaiting', words);
      return { requeueAfterMs: LOOK_MS };
    }
    const { cluster } = found;
    const now = since ?? clock();
    const pinned = await this.#write(pods, (pod) => pinPatch(pod, cluster, now), signal);
    // One that changed meanwhile is looked at again with the others, before any gate is opened.
    if (pinned.length === pods.length) await this.#open(key, [...late.filter(isGated), ...pinned], cluster, signal);
    return { requeueAfterMs: LOOK_MS };
  }

  async #open(key: string, pods: readonly Pod[], cluster: string, signal: AbortSignal): Promise<void> {
    const { metrics, logger } = this.#o;
    await this.#write(pods, openPatch, signal);
    this.#told.delete(key);
    metrics.gangs.inc({ outcome: 'placed' });
    logger.info({ gang: key, cluster, pods: pods.length }, 'pods of a gang may go to their place');
  }

  /**
   * The pods as they are then; without those that changed or went meanwhile. Room of one that changed stays its own until the gang is looked
   * at again: others would take it, and the pods that are pinned by then would hold theirs for nothing until time is up.
   */
  async #write(pods: readonly Pod[], change: (pod: Pod) => object, signal: AbortSignal): Promise<Pod[]> {
    const { host, places } = this.#o;
    const written: Pod[] = [];
    const left = pods.values();
    const worker = async (): Promise<void> => {
      for (const pod of left) {
        const { namespace, name } = pod.metadata;
        const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
        try {
          written.push(await patch<Pod>(host, PODS, ref, change(pod), { type: 'merge' }, { signal }));
        } catch (error) {
          if (isNotFound(error)) places.release([pod]);
          else if (!isConflict(error)) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return written;
  }

  /** Returns when to look at the gang again, in ms. */
  async #giveUp(key: string, { pods, overdue, at }: GiveUp, signal: AbortSignal): Promise<number> {
    const { places, evictions, metrics, clock, logger } = this.#o;
    places.release(pods);
    this.#avoid.set(key, { cluster: at, until: clock() + AVOID_MS });
    const owned = pods.filter((pod) => controllerOf(pod) !== undefined);
    const words =
      owned.length === pods.length
        ? 'They are to give back what they have: their controller makes new ones then, and another place is looked for'
        : 'Pods without a controller stay as they are, as nobody would make them anew; delete them to start over';
    this.#record(key, pods, 'GangTimedOut', `not all pods of the gang got a node in ${at} in time. ${words}`);
    // By those that are late the gang is known to give up: they go last, or who goes on from here would keep the others.
    const isLate = (pod: Pod): number => Number(overdue.includes(pod));
    const keptAt = (pod: Pod): number => this.#keptLast.get(uidOf(pod)) ?? 0;
    const lateLast = evictions.inTurn(owned).toSorted((a, b) => isLate(a) - isLate(b) || keptAt(a) - keptAt(b));
    const isStillToGo = (live: Pod): boolean => this.#isStillToGo(key, live, overdue);
    let gone = 0;
    let isHeld = false;
    const heldOf = new Set<string>();
    for (const pod of lateLast) {
      if (signal.aborted) break;
      const alike = `${controllerKeyOf(pod) ?? ''} ${String(isReady(pod))}`;
      if (heldOf.has(alike)) continue;
      const gave = await evictions.giveBack(pod, at, isStillToGo, signal);
      if (gave === 'gone') gone += 1;
      isHeld ||= gave !== 'gone' && gave !== 'notWanted';
      if (gave === 'stopped') break;
      if (gave === 'held' || gave === 'controllerHeld') this.#keptLast.set(uidOf(pod), clock());
      if (gave === 'controllerHeld') heldOf.add(alike);
    }
    if (gone > 0) {
      metrics.gangs.inc({ outcome: 'timed-out' });
      logger.info({ gang: key, cluster: at, pods: gone }, 'a gang gave its place back');
    }
    if (isHeld) return HELD_MS;
    return owned.length > 0 ? LOOK_MS : PATIENCE_MS;
  }

  /** Whether the gang gives up still for one of those that were late, as far as the caches tell and `live`, which is one of its pods. */
  #isStillToGo(key: string, live: Pod, overdue: readonly Pod[]): boolean {
    const { uid } = live.metadata;
    const late = new Set(overdue.map(({ metadata }) => metadata.uid));
    const all = this.#pods.byIndex(GANG, key).map((pod) => (pod.metadata.uid === uid ? live : pod));
    const pods = all.filter(isKept).toSorted(byAge);
    const spared = new Set(pods.filter(({ metadata }) => !late.has(metadata.uid)));
    const step = gangStep(pods, { now: this.#o.clock(), judgeFrom: this.#judgeFrom, spared });
    return step.do === 'giveUp' && step.pods.includes(live);
  }

  #record(key: string, pods: readonly Pod[], reason: string, message: string): void {
    const [pod] = pods;
    if (pod === undefined || this.#told.get(key) === message) return;
    this.#told.set(key, message);
    this.#o.events.record(podSubject(pod), 'Warning', reason, message);
  }
}

function gangOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? ''}/${metadata.labels?.[GANG_LABEL] ?? ''}`;
}

/** Bound to a virtual node: the host learns from the manager alone what became of it. */
function isBurst({ spec }: Pod): boolean {
  return (spec.nodeName ?? '') !== '' && spec.nodeSelector?.[MEMBER_LABEL] !== undefined;
}

function isKept({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined;
}

function byAge(a: Pod, b: Pod): number {
  return createdAt(a) - createdAt(b) || (a.metadata.name < b.metadata.name ? -1 : 1);
}
