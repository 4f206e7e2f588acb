import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { podSubject } from '../api/pod-subject.ts';
import { releasedFrom } from '../api/released.ts';
import type { KubeClient } from '../kube/client.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, describeError, isConflict, isForbidden, isNotFound, hasManyBudgets } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyOf } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { PODS } from '../kube/resource.ts';
import { evict, get, patch } from '../kube/verbs.ts';
import { HeldMoves } from './held-moves.ts';
import type { MoveRecords } from './move-records.ts';
import type { MovesMetrics } from './moves-metrics.ts';
import type { MovesStop } from './moves-stop.ts';
import { MovesUnderWay } from './moves-under-way.ts';
import type { Pacer } from './pacer.ts';
import { goesGracefully, releasedAtOnce, staysByPolicy, waitsForHeal } from './purge-mode.ts';
import { releasePatch } from './release-patches.ts';
import { readyOf } from './release-step.ts';
import type { Releases } from './releases.ts';
import { isLost } from '../placement/lost-members.ts';
import type { PlacedPods, SurgingSet } from '../placement/placed-pods.ts';
import type { Held, Strategy, WantedMove } from './wanted-move.ts';
import { withoutBulk } from './without-bulk.ts';

/** Retry delay for a pod that fits in no other cluster (ms). */
const NO_PLACE_MS = 15_000;
/** The same when the free capacity is reserved for pods moved earlier (ms). */
const TAKEN_MS = 2_000;
/** Retry delay when a disruption budget refuses the eviction (ms). */
const BUDGET_MS = 5_000;
/** How long a pod is held that no eviction is possible of: somebody has to take a budget away (ms). */
const MANY_BUDGETS_MS = 60_000;
export const MANY_BUDGETS =
  'more than one disruption budget chooses it, and Kubernetes evicts no such pod: leave it one';
/** Delay after a 403 on reading or evicting, for the whole namespace (ms). */
const NO_RIGHT_MS = 60_000;
/** Delay between reports of one pod in dry-run mode (ms). */
const DRY_RUN_MS = 60_000;
/** Most time the caches need to show an eviction (ms). */
const CAUGHT_UP_MS = 30_000;
/** How long a pod is held by default: the caches show what was read live by then (ms). */
const SHOWN_MS = 2_000;
/** Retry delay while all moves are stopped (ms). */
const STOPPED_MS = 5_000;
/** Retry delay while the most allowed pods of its ReplicaSet are being replaced (ms). */
const TURN_MS = 1_000;
const REMEMBERED = 10_000;
export const NEVER = 'its policy says purgeMode: Never';
const GAVE_BACK =
  'it was given back to its ReplicaSet (Event ReleasedPodGivenBack), and is tried again within five minutes';

export interface MoverOptions {
  host: KubeClient;
  placed: PlacedPods;
  pacer: Pacer;
  /** Whether people let any move begin. */
  stop: Pick<MovesStop, 'why'>;
  releases: Releases;
  events: Pick<EventRecorder, 'record'>;
  metrics: MovesMetrics;
  records: MoveRecords;
  /** Most moves per pod of a workload within an hour. */
  perPodPerHour: number;
  /** Only report moves in Events, logs and metrics; move nothing. */
  dryRun: boolean;
  logger: Logger;
  /** Wall clock in ms, to be written on objects. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** A pod that may be moved now. `set`: the ReplicaSet that makes a replacement first; undefined: evict at once. */
interface Found {
  readonly live: Pod;
  readonly set: SurgingSet | undefined;
  /** It waits for its member, which does not answer, beside the replacement. */
  readonly lost?: boolean;
}

/** `void`: no longer to be moved. `stop`: held for a reason that applies to the whole workload. */
export type MoveOutcome = 'moved' | 'held' | 'stop' | 'void';

/**
 * Carries out what strategies want, and is the only one that begins to move pods of members. The pod is read
 * live, the strategy is asked again, a place elsewhere is looked for, and that resourceVersion of the pod is evicted, so that disruption
 * budgets hold and its controller makes another one. Or it is released from its ReplicaSet, and {@link ReleasedPods} evicts it once that has a
 * replacement. State held here may be lost in a restart.
 */
export class Mover {
  readonly underWay: MovesUnderWay;
  readonly #o: MoverOptions;
  /** UIDs of evicted pods, until the caches must show the eviction. */
  readonly #sent = new LRUCache<string, true>({ ...atMost(REMEMBERED), ttl: CAUGHT_UP_MS });
  /** By UID, when a held pod may be tried again (monotonic ms). */
  readonly #left = new LRUCache<string, number>(atMost(REMEMBERED));
  /** The same of one that was given back, while its member is not lost. */
  readonly #gaveBack = new LRUCache<string, number>(atMost(REMEMBERED));
  /** By UID, live reads of pods that were not moved, without bulk. */
  readonly #read = new LRUCache<string, Pod>(atMost(REMEMBERED));
  readonly #held: HeldMoves;
  /** By namespace (rights may differ), when to ask again after a 403 (monotonic ms). */
  readonly #noRight = new LRUCache<string, number>(atMost(REMEMBERED));

  constructor(options: MoverOptions) {
    this.#o = options;
    this.underWay = new MovesUnderWay(options.monotonic);
    this.#held = new HeldMoves(options);
  }

  /** Whether it was evicted a moment ago, or is released and being replaced. */
  wasSent(pod: Pod): boolean {
    return this.#sent.has(pod.metadata.uid ?? '') || releasedFrom(pod) !== undefined;
  }

  /** Do not try the pod again for `forMs`. */
  leave({ metadata: { uid = '' } }: Pod, forMs: number): void {
    this.#left.set(uid, this.#o.monotonic() + forMs);
    this.#sent.delete(uid);
  }

  /** It was given back, as no other one became Ready in time: do not try that again for `forMs`. Out of a member that is lost it may go. */
  gaveBack({ metadata: { uid = '' } }: Pod, forMs: number): void {
    this.#gaveBack.set(uid, this.#o.monotonic() + forMs);
    this.#sent.delete(uid);
  }

  /** Time until the pod may be tried again (ms); 0: now. */
  restMs(pod: Pod): number {
    const leftMs = (this.#left.get(pod.metadata.uid ?? '') ?? 0) - this.#o.monotonic();
    return Math.max(0, leftMs, this.#gaveBackForMs(pod));
  }

  #gaveBackForMs({ metadata: { uid = '' }, spec: { nodeName = '' } }: Pod): number {
    const forMs = (this.#gaveBack.get(uid) ?? 0) - this.#o.monotonic();
    // One that only cannot serve now may be back before that: without a successor it would go before another one is Ready.
    return forMs > 0 && !this.#isLost(this.#o.placed.clusterOf(nodeName)) ? forMs : 0;
  }

  /** The pod as last read live if its resourceVersion is unchanged, as caches keep only a part of pods; else the cached one. */
  asRead(pod: Pod): Pod {
    const known = this.#read.get(pod.metadata.uid ?? '');
    return known?.metadata.resourceVersion === pod.metadata.resourceVersion ? (known ?? pod) : pod;
  }

  /** The live pod, read only if its resourceVersion changed since the last read; undefined when it is gone or being deleted. */
  async read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const known = this.asRead(pod);
    if (known !== pod) return known;
    const { namespace = '', name, uid } = pod.metadata;
    if ((this.#noRight.get(namespace) ?? 0) > this.#o.monotonic()) return undefined;
    try {
      const live = await get<Pod>(this.#o.host, PODS, { namespace, name }, { signal });
      if (live.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return undefined;
      return this.#remember(live);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (!isForbidden(error)) throw error;
      this.#noteNoRight(namespace, error);
      return undefined;
    }
  }

  #remember(live: Pod): Pod {
    const known = withoutBulk(live);
    this.#read.set(live.metadata.uid ?? '', known);
    return known;
  }

  /**
   * Whether the pod is held for a reason known from caches alone (the pod, its policy, its member). Evaluated at each call,
   * without API requests.
   */
  keeps(wanted: WantedMove): boolean {
    if (staysByPolicy(wanted.strategy, this.#o.placed.rulesOf(wanted.pod).failover)) {
      this.#held.record(wanted, NEVER);
      return true;
    }
    const pod = this.asRead(wanted.pod);
    const found = pod === wanted.pod ? undefined : wanted.recheck(pod);
    if (found === 'void') this.#held.forget(wanted);
    else if (found !== undefined) this.#held.record(wanted, found.why);
    return found !== undefined;
  }

  /** Why the pod stays that the strategy wants elsewhere, in words, as far as that was seen when it was tried last. */
  whyHeld(pod: Pod, strategy: Strategy): string | undefined {
    if (this.#gaveBackForMs(pod) > 0) return GAVE_BACK;
    // What held it for another strategy keeps this one from trying it, too, for a time.
    return this.#held.why(pod, strategy) ?? (this.restMs(pod) > 0 ? this.#held.lastOf(pod) : undefined);
  }

  /** Throws errors of the host's API; a pod that changed or disappeared meanwhile is not an error. */
  async move(wanted: WantedMove, signal: AbortSignal): Promise<MoveOutcome> {
    const outcome = await this.#try(wanted, signal);
    if (outcome === 'moved' || outcome === 'void') this.#held.forget(wanted);
    return outcome;
  }

  async #try(wanted: WantedMove, signal: AbortSignal): Promise<MoveOutcome> {
    const { host, pacer } = this.#o;
    const { pod, from } = wanted;
    const { namespace = '', name, uid } = pod.metadata;
    if ((this.#noRight.get(namespace) ?? 0) > this.#o.monotonic())
      return this.#hold(wanted, this.#withoutRight(namespace));
    const stopped = this.#stopped();
    if (stopped !== undefined) return this.#hold(wanted, stopped);
    if (this.#waitsForOthers(wanted)) {
      this.#held.keep(wanted, 'as many pods of its ReplicaSet as may be are being replaced now');
      this.leave(pod, TURN_MS);
      return 'stop';
    }
    try {
      let found = await this.#look(wanted, signal);
      if ('live' in found && this.#o.dryRun && wanted.strategy !== 'GangTimedOut') return this.#pretend(wanted);
      if ('live' in found && (await pacer.turn(from, signal))) {
        // While waiting, the member may have recovered, capacity may be taken, or the pod may have changed: an eviction with
        // an outdated version fails, but still uses up the disruption budget for two minutes.
        found = signal.aborted ? { stays: 'void' } : await this.#look(wanted, signal);
      }
      if (!('live' in found)) return found.stays === 'void' ? 'void' : this.#hold(wanted, found.stays);
      const { live, set, lost = false } = found;
      const { resourceVersion } = live.metadata;
      if (set !== undefined) {
        if (!(await this.#release(live, set, lost, signal))) return 'void';
      } else {
        await this.#write(
          live,
          async () => await evict(host, { namespace, name }, { uid, resourceVersion }, { signal }),
        );
      }
      this.#moved(wanted, set === undefined ? 'evicted' : lost ? 'waits' : 'released');
      return 'moved';
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return 'void';
      if (error instanceof ApiError && error.code === 429) {
        return this.#hold(wanted, { why: budgetInWords(pod), forMs: BUDGET_MS, others: true });
      }
      if (hasManyBudgets(error)) {
        return this.#hold(wanted, { why: MANY_BUDGETS, forMs: MANY_BUDGETS_MS, others: true });
      }
      if (!isForbidden(error) && !isRefused(error)) throw error;
      this.#noteNoRight(namespace, error);
      return this.#hold(wanted, this.#withoutRight(namespace));
    }
  }

  /** The live pod, if it should still be moved and fits elsewhere. */
  async #look(wanted: WantedMove, signal: AbortSignal): Promise<Found | { stays: 'void' | Held }> {
    const { host, placed } = this.#o;
    const { namespace, name, uid } = wanted.pod.metadata;
    const live = await get<Pod>(host, PODS, { namespace, name }, { signal });
    // The caches will catch up.
    if (live.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return { stays: 'void' };
    const stopped = this.#stopped();
    if (stopped !== undefined) return { stays: stopped };
    // After an outage of the host the pod can be read before the watches have caught up with taints and members.
    if (placed.problem !== undefined)
      return { stays: { why: `the host cannot be followed now (${placed.problem})`, others: true } };
    const found = wanted.recheck(live);
    if (found !== undefined) {
      this.#remember(live);
      if (found === 'void') return { stays: found };
      // For how long is the business of this strategy, which asks again from what was read: others may have their own reasons meanwhile.
      const { forMs: _, ...held } = found;
      return { stays: held };
    }
    if (staysByPolicy(wanted.strategy, placed.rulesOf(live).failover)) return { stays: { why: NEVER } };
    if (wanted.leavesAnyway === true) return { live, set: undefined };
    const tooOften = this.#tooOften(live);
    if (tooOften !== undefined) return { stays: tooOften };
    const noPlace = placed.whyNotElsewhere(live, wanted.from, this.underWay.countBut(live), wanted.mayStayInMember);
    if (noPlace === undefined) {
      const lost = waitsForHeal(live, wanted.strategy, placed.rulesOf(live).failover);
      if (lost) return { live, set: placed.surgingSetOf(live), lost };
      const set = this.#setBefore(live, wanted);
      const waiting = set === undefined && isReady(live) ? this.#waitingInVain(live) : undefined;
      if (waiting === undefined) return { live, set };
      const why = `another pod of its workload has found no node (${waiting.metadata.name})`;
      return { stays: { why, others: true } };
    }
    const { why, isTaken } = noPlace;
    return { stays: { why, forMs: isTaken ? TAKEN_MS : NO_PLACE_MS, others: true } };
  }

  /** The ReplicaSet that makes a replacement first; undefined when the pod is evicted at once. */
  #setBefore(pod: Pod, { from, strategy }: WantedMove): SurgingSet | undefined {
    const { placed } = this.#o;
    if (!goesGracefully(pod, strategy, placed.rulesOf(pod).failover)) return undefined;
    return placed.member(from)?.reachable === false ? undefined : placed.surgingSetOf(pod);
  }

  /** By the word of people, which may come while the move waits for its turn. */
  #stopped(): Held | undefined {
    const { why } = this.#o.stop;
    return why === undefined ? undefined : { why, forMs: STOPPED_MS, others: true };
  }

  #isLost(name: string): boolean {
    const member = this.#o.placed.member(name);
    return member !== undefined && isLost(member);
  }

  /** Whether the most allowed pods of its ReplicaSet are already being replaced. */
  #waitsForOthers(wanted: WantedMove): boolean {
    const set = this.#setBefore(wanted.pod, wanted);
    return set !== undefined && this.#o.releases.count(set.uid) >= releasedAtOnce(set);
  }

  /**
   * Releases the pod from its ReplicaSet unless the most allowed are released; returns whether it did. `lost`: its member does not answer,
   * so it serves nobody, and is none of those that are counted.
   */
  async #release(live: Pod, set: SurgingSet, lost: boolean, signal: AbortSignal): Promise<boolean> {
    const { host, placed, releases, clock } = this.#o;
    const { namespace, name } = live.metadata;
    const out = [...releases.of(set.uid), ...releases.givenBack(set.uid)];
    const known = new Map([...placed.ofController(set.uid), ...out].map((pod) => [pod.metadata.uid, pod]));
    const body = releasePatch(live, { ready: readyOf([...known.values()]), at: clock(), lost });
    if (body === undefined || (!lost && releases.count(set.uid) >= releasedAtOnce(set))) return false;
    releases.sent(live, set.uid, lost);
    try {
      await this.#write(
        live,
        async () => await patch(host, PODS, { namespace, name }, body, { type: 'merge' }, { signal }),
      );
      return true;
    } catch (error) {
      // Without an answer the patch may have been applied: the watch shows it, or the entry expires.
      if (refuses(error)) releases.forget(live);
      throw error;
    }
  }

  /** With a place for its successor, which nobody else gets, from before it is sent: only an answer that refuses gives that back. */
  async #write(live: Pod, send: () => Promise<unknown>): Promise<void> {
    const takeBack = this.underWay.moving(live);
    try {
      await send();
    } catch (error) {
      if (refuses(error)) takeBack();
      throw error;
    }
  }

  /**
   * A pod of its controller that has no node, nor a place that is kept for it: the next one that came would find none either, and this one serves.
   * What another ReplicaSet of its workload asks for, in a roll-out, may be otherwise.
   */
  #waitingInVain(live: Pod): Pod | undefined {
    const { placed } = this.#o;
    const { workload } = placed.rulesOf(live);
    const controller = controllerOf(live)?.uid;
    return placed
      .ofWorkload(workload.metadata.uid ?? '')
      .filter((pod) => controllerOf(pod)?.uid === controller)
      .find((pod) => pod.spec.nodeName === undefined && isActive(pod) && !this.underWay.isPlacing(pod));
  }

  /** Rate limit against pods that move in circles, whatever the cause. */
  #tooOften(live: Pod): Held | undefined {
    const { placed, records, perPodPerHour } = this.#o;
    const { workload, replicas = 1 } = placed.rulesOf(live);
    const { count, forMs } = records.withinAnHour(workload);
    const pods = placed.ofWorkload(workload.metadata.uid ?? '').filter((pod) => !isFinished(pod)).length;
    if (count < perPodPerHour * Math.max(replicas, pods)) return undefined;
    const why = `pods of its workload were moved too often (${String(count)} times within an hour; descheduler.movesPerPodPerHour is ${String(perPodPerHour)})`;
    return { why, forMs, others: true };
  }

  /** Dry-run mode: reports the move, again from time to time. */
  #pretend(wanted: WantedMove): MoveOutcome {
    const { events, metrics, logger, monotonic } = this.#o;
    const { pod, from, strategy, cause } = wanted;
    this.#left.set(pod.metadata.uid ?? '', monotonic() + DRY_RUN_MS);
    if (!this.#held.isPretenceToBeTold(wanted)) return 'held';
    const words = `${strategy}: ${cause}; it would be moved now, but descheduler.dryRun is set`;
    events.record(podSubject(pod), 'Normal', 'MoveWanted', words);
    metrics.moves.inc({ strategy, member: from, outcome: 'wanted' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, `a pod would be moved: ${cause}`);
    return 'held';
  }

  #moved(wanted: WantedMove, how: 'evicted' | 'released' | 'waits'): void {
    const { events, metrics, logger, placed, records } = this.#o;
    const { pod, from, strategy, reason, cause } = wanted;
    this.#sent.set(pod.metadata.uid ?? '', true);
    const { kind = '', name = '' } = controllerOf(pod) ?? {};
    const until =
      how === 'waits'
        ? 'waits for its member: onHeal says which of them stays then'
        : 'goes on until that one is Ready';
    const outcome =
      how === 'evicted'
        ? wanted.outcome(`${kind} ${name}`)
        : `it was released, so that ${kind} ${name} makes another one, which goes elsewhere. It ${until}`;
    const words = `${cause}; ${outcome}`;
    events.record(podSubject(pod), 'Normal', reason, words);
    const { workload } = placed.rulesOf(pod);
    const { apiVersion, kind: ofKind, metadata } = workload;
    records.add(workload, { strategy, from, pod: pod.metadata.name, message: cause });
    const about = { apiVersion, kind: ofKind, namespace: metadata.namespace, name: metadata.name, uid: metadata.uid };
    events.record(about, 'Normal', reason, `pod ${pod.metadata.name}: ${words}`);
    metrics.moves.inc({ strategy, member: from, outcome: 'moved' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, 'a pod made way for another one elsewhere');
  }

  #hold(wanted: WantedMove, { why, forMs = SHOWN_MS, others }: Held): MoveOutcome {
    this.#left.set(wanted.pod.metadata.uid ?? '', this.#o.monotonic() + forMs);
    this.#held.record(wanted, why);
    return others === true ? 'stop' : 'held';
  }

  #noteNoRight(namespace: string, error: unknown): void {
    const { logger, monotonic } = this.#o;
    if (!this.#noRight.has(namespace)) {
      const words =
        'pods cannot be evicted or released, which manifests/scheduler/descheduler.yaml and pod-guard.yaml would grant';
      logger.warn({ namespace }, `${words}: ${describeError(error)}`);
    }
    this.#noRight.set(namespace, monotonic() + NO_RIGHT_MS);
  }

  /** Holds for every workload of the namespace after one 403. */
  #withoutRight(namespace: string): Held {
    const forMs = (this.#noRight.get(namespace) ?? 0) - this.#o.monotonic();
    return {
      why: 'the host does not let Spillway evict it (apply manifests/scheduler/descheduler.yaml)',
      forMs,
      others: true,
    };
  }
}

/** The API server's message does not tell whether the budget can ever allow the eviction. */
function budgetInWords(pod: Pod): string {
  const why = 'its disruption budget allows no eviction now';
  return isReady(pod)
    ? why
    : `${why} (the pod is not Ready, so the budget counts it as lost; with unhealthyPodEvictionPolicy: AlwaysAllow such pods may go)`;
}

/** The host has answered that it does not do it. Everything else says nothing about that: what etcd was asked to store it may yet. */
function refuses(error: unknown): boolean {
  return (error instanceof ApiError && error.code < 500 && error.code !== 408) || hasManyBudgets(error);
}

/** Refused by an admission policy (422). */
function isRefused(error: unknown): boolean {
  return error instanceof ApiError && error.code === 422;
}
