import { LRUCache } from 'lru-cache';
import { releasedFrom } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { uidOf } from '../kube/object.ts';
import { controllerKeyOf } from '../kube/owner-references.ts';
import { CAUGHT_UP_MS } from '../kube/reflector-timings.ts';
import { PODS } from '../kube/resource.ts';
import { evict, patch } from '../kube/verbs.ts';
import { evictionRefusal, heldByHost, mayBeDone, refusedForMs, SLOW_MS, slowRestMs } from './eviction-refusal.ts';
import { HeldMoves } from './held-moves.ts';
import { LivePods } from './live-pods.ts';
import { MissingRights } from './missing-rights.ts';
import { MoveCheck, type MoveCheckOptions, NEVER } from './move-check.ts';
import type { MoveRecords } from './move-records.ts';
import { MoveReport } from './move-report.ts';
import { MovesFuse } from './moves-fuse.ts';
import { MovesUnderWay } from './moves-under-way.ts';
import type { MovingOptions } from './moving-options.ts';
import type { Pacer } from './pacer.ts';
import { releasedAtOnce, staysByPolicy } from './purge-mode.ts';
import { whyRehearsed } from './rehearsal.ts';
import { releasePatch } from './release-patches.ts';
import { readyOf } from './release-step.ts';
import { StateRecords } from './state-records.ts';
import type { Releases } from './releases.ts';
import { isLost } from '../placement/lost-members.ts';
import type { PlacedPods, SurgingSet } from '../placement/placed-pods.ts';
import { WaitsForTurn } from './waits-for-turn.ts';
import type { Strategy } from './strategies.ts';
import type { Held, WantedMove } from './wanted-move.ts';

/** Between two rehearsals of the same move (ms). */
const DRY_RUN_MS = 60_000;
/** How long a pod is held by default: the caches show what was read live by then (ms). */
const SHOWN_MS = 2_000;
/** Retry delay while the most allowed pods of its ReplicaSet are being replaced (ms). */
const TURN_MS = 1_000;
const GAVE_BACK =
  'it was given back to its ReplicaSet (Event ReleasedPodGivenBack), and is tried again within five minutes';

export interface MoverOptions extends MovingOptions {
  placed: MoveCheckOptions['placed'] & Pick<PlacedPods, 'clusterOf' | 'ofWorkload'>;
  pacer: Pacer;
  releases: Releases;
  records: MoveRecords;
}

/** `notWanted`: no longer to be moved. `workloadHeld`, `controllerHeld`: held for a reason that applies to the whole workload, or to all pods of its controller, as far as they go by the same strategy, and are Ready, or not, as this one. */
export type MoveOutcome = 'moved' | 'held' | 'workloadHeld' | 'controllerHeld' | 'notWanted';

/**
 * Carries out what strategies want, and is the only one that begins to move pods of members. The pod is read
 * live, the strategy is asked again, a place elsewhere is looked for, and that resourceVersion of the pod is evicted, so that disruption
 * budgets hold and its controller makes another one. Or it is released from its ReplicaSet, and {@link ReleasedPods} evicts it once that has a
 * replacement. State held here may be lost in a restart.
 */
export class Mover {
  readonly underWay: MovesUnderWay;
  readonly fuse: MovesFuse;
  /** Where released pods could not be ended, as their ReplicaSets may not be read: none is released there. */
  readonly rightsToEnd: MissingRights;
  readonly #o: MoverOptions;
  /** By UID, from before its eviction or release is sent until the caches must show it. `unheard`: nobody answered. */
  readonly #going: LRUCache<string, 'sending' | 'unheard' | 'sent'>;
  /** By UID, when a held pod, or one of that controller, may be tried again (monotonic ms). */
  readonly #restsUntil = new LRUCache<string, number>(atMost());
  /** By UID, when the turn of a pod ends that was tried in vain for a reason that may be of it alone: when it may be tried again (monotonic ms). */
  readonly #turnEnds = new LRUCache<string, number>(atMost());
  /** The same as {@link #restsUntil} of one that was given back, while its member is not lost. */
  readonly #gaveBack = new LRUCache<string, number>(atMost());
  /** By UID and strategy, until when the move need not be rehearsed again (monotonic ms). Others may move the pod meanwhile, and this one, too, once it is in earnest. */
  readonly #rehearsed = new LRUCache<string, number>(atMost());
  readonly #rights: MissingRights;
  readonly #live: LivePods;
  readonly #check: MoveCheck;
  readonly #held: HeldMoves;
  readonly #report: MoveReport;
  readonly #states: StateRecords;
  readonly #turns: WaitsForTurn;

  constructor(options: MoverOptions) {
    this.#o = options;
    const perf = { now: options.monotonic };
    this.#going = new LRUCache({ ...atMost(), ttl: CAUGHT_UP_MS, ttlResolution: 0, perf });
    this.underWay = new MovesUnderWay(options.monotonic);
    this.#rights = new MissingRights({
      ...options,
      logged:
        'pods cannot be evicted or released, which manifests/scheduler/descheduler.yaml and pod-guard.yaml would grant',
      why: 'the host does not let Spillway evict it (apply manifests/scheduler/descheduler.yaml)',
    });
    this.rightsToEnd = new MissingRights({
      ...options,
      logged: 'ReplicaSets cannot be read, which manifests/scheduler/descheduler.yaml would grant',
      why: 'its ReplicaSet may not be read, which would have to show that another one is Ready (apply manifests/scheduler/descheduler.yaml)',
    });
    this.#live = new LivePods(options, this.#rights);
    this.fuse = new MovesFuse(options);
    this.#check = new MoveCheck({ ...options, live: this.#live, underWay: this.underWay, fuse: this.fuse });
    this.#held = new HeldMoves(options);
    this.#report = new MoveReport(options);
    this.#states = new StateRecords(options);
    this.#turns = new WaitsForTurn(options.monotonic);
  }

  /** Whether it was evicted a moment ago, or is released and being replaced. */
  wasSent(pod: Pod): boolean {
    return this.#going.get(uidOf(pod)) === 'sent' || releasedFrom(pod) !== undefined;
  }

  /** Whether it was sent, is being sent at this moment, or is known to be gone, whatever caches show: of those that go one at a time no other one is to go meanwhile. */
  isGoing(pod: Pod): boolean {
    return this.wasSent(pod) || this.#going.has(uidOf(pod)) || this.#live.isGone(pod);
  }

  /** Do not try the pod again for `forMs`. */
  letRest({ metadata: { uid = '' } }: Pod, forMs: number): void {
    this.#restsUntil.set(uid, this.#o.monotonic() + forMs);
  }

  /** It was given back, as no other one became Ready in time: do not try that again for `forMs`. Out of a member that is lost it may go. */
  gaveBack({ metadata: { uid = '' } }: Pod, forMs: number): void {
    this.#gaveBack.set(uid, this.#o.monotonic() + forMs);
    this.#going.delete(uid);
  }

  /** Time until the pod may be tried again (ms); 0: now. */
  restMs(pod: Pod): number {
    const ofController = this.#restOf(controllerKeyOf(pod));
    return Math.max(this.#restOf(pod.metadata.uid), ofController, this.#gaveBackForMs(pod));
  }

  /** In the order in which they are to be tried, see {@link turnOf}. */
  inTurn(pods: readonly Pod[]): Pod[] {
    return pods.toSorted((a, b) => this.turnOf(a) - this.turnOf(b));
  }

  /**
   * Pods with a lower one are tried first: those that the host did not let go for reasons of their own come after all others. As long as such a one rests it
   * is the first: it may be on its way, when nobody answered, and of those that go one at a time no other one is to go meanwhile.
   */
  turnOf({ metadata: { uid = '' } }: Pod): number {
    const ends = this.#turnEnds.peek(uid) ?? 0;
    return ends > this.#o.monotonic() ? -1 : ends;
  }

  /** It was tried in vain. */
  #hadTurn({ metadata: { uid = '' } }: Pod): void {
    this.#turnEnds.set(uid, this.#o.monotonic() + this.#restOf(uid));
  }

  #restOf(key = ''): number {
    return Math.max(0, (this.#restsUntil.get(key) ?? 0) - this.#o.monotonic());
  }

  #gaveBackForMs({ metadata: { uid = '' }, spec: { nodeName = '' } }: Pod): number {
    const forMs = (this.#gaveBack.get(uid) ?? 0) - this.#o.monotonic();
    // One that only cannot serve now may be back before that: without a successor it would go before another one is Ready.
    return forMs > 0 && !this.#isLost(this.#o.placed.clusterOf(nodeName)) ? forMs : 0;
  }

  /** The pod as last read live if its resourceVersion is unchanged, as caches keep only a part of pods; else the cached one. */
  asRead(pod: Pod): Pod {
    return this.#live.asRead(pod);
  }

  /** The live pod, read only if its resourceVersion changed since the last read; undefined when it is gone, being deleted, or cannot be read: others have their turns before it. */
  async read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const live = await this.#live.read(pod, signal);
    if (live === undefined) this.#hadTurn(pod);
    return live;
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
    if (found === 'notWanted') this.#held.forget(wanted);
    else if (found !== undefined) this.#held.record(wanted, found.why);
    return found !== undefined || this.#wasRehearsed(wanted);
  }

  /** Why the pod stays that the strategy wants elsewhere, in words, as far as that was seen when it was tried last. */
  whyHeld(pod: Pod, strategy: Strategy): string | undefined {
    if (this.#gaveBackForMs(pod) > 0) return GAVE_BACK;
    // What held it for another strategy keeps this one from trying it, too, for a time.
    return this.#held.why(pod, strategy) ?? (this.restMs(pod) > 0 ? this.#held.lastOf(pod) : undefined);
  }

  /** Why the move would be held now, in words, as far as caches and what was read of the pod say it. Nothing is done, and nothing told. */
  whyHeldNow(wanted: WantedMove): string | undefined {
    const found = this.#check.judge(wanted, this.asRead(wanted.pod));
    return 'live' in found || found.stays === 'notWanted' ? undefined : found.stays.why;
  }

  /** Throws what the host answers that says nothing of the pod, as when it cannot be reached; one that changed or disappeared meanwhile is not an error. */
  async move(wanted: WantedMove, signal: AbortSignal): Promise<MoveOutcome> {
    const outcome = await this.#try(wanted, signal).catch((error: unknown) => {
      // It may be the one that the host hangs at: the others have their turns first.
      this.#hadTurn(wanted.pod);
      throw error;
    });
    if (outcome === 'moved' || outcome === 'notWanted') this.#held.forget(wanted);
    // Until caches must show what was seen live: the others have their turns meanwhile.
    if (outcome === 'notWanted') this.letRest(wanted.pod, this.#live.isGone(wanted.pod) ? CAUGHT_UP_MS : SHOWN_MS);
    return outcome;
  }

  async #try(wanted: WantedMove, signal: AbortSignal): Promise<MoveOutcome> {
    const { host, pacer } = this.#o;
    const { pod, from } = wanted;
    const { namespace = '', name, uid = '' } = pod.metadata;
    if (this.#rights.in(namespace)) return this.#hold(wanted, this.#rights.held(namespace));
    const { stopped } = this.#check;
    if (stopped !== undefined) return this.#hold(wanted, stopped);
    const before = this.#check.setBefore(pod, wanted);
    if (before !== undefined && this.rightsToEnd.in(namespace))
      return this.#hold(wanted, this.rightsToEnd.held(namespace));
    if (before !== undefined && this.#isFull(before)) return this.#waitForOthers(wanted, before);
    let found = await this.#check.look(wanted, signal);
    if ('live' in found && this.#whyRehearsed(wanted) === undefined && (await pacer.turn(from, signal))) {
      // While waiting, the member may have recovered, capacity may be taken, or the pod may have changed: an eviction with
      // an outdated version fails, but still uses up the disruption budget for two minutes.
      found = signal.aborted ? { stays: 'notWanted' } : await this.#check.look(wanted, signal);
    }
    if (!('live' in found)) return found.stays === 'notWanted' ? 'notWanted' : this.#hold(wanted, found.stays);
    const rehearsed = this.#whyRehearsed(wanted);
    if (rehearsed !== undefined) return this.#rehearse(wanted, rehearsed);
    // Whatever becomes of this process, the state is there before the pod is gone.
    const asked = this.#o.monotonic();
    const unwritten = await this.#states.keep(wanted, found.live, signal);
    if (unwritten !== undefined) {
      this.#letAllRest(pod, this.#o.monotonic() - asked);
      return this.#hold(wanted, unwritten);
    }
    // That may take long, in which the member may have recovered, or people may have stopped all moves.
    if (this.#o.monotonic() - asked >= SLOW_MS) {
      found = await this.#check.look(wanted, signal);
      if (!('live' in found)) return found.stays === 'notWanted' ? 'notWanted' : this.#hold(wanted, found.stays);
    }
    const { live, set, lost = false } = found;
    if (set !== undefined && !lost && this.#isFull(set)) return this.#waitForOthers(wanted, set);
    const tooOften = this.#check.tooOften(wanted, live);
    if (tooOften !== undefined) return this.#hold(wanted, tooOften);
    // In the same breath as it counts as going: another one of its workload may have been sent since that look.
    if (wanted.recheck(live) !== undefined || this.#going.get(uid) === 'sending') return 'notWanted';
    this.#going.set(uid, 'sending');
    const { resourceVersion } = live.metadata;
    const began = this.#o.monotonic();
    const answered = this.fuse.sending(live);
    try {
      if (set !== undefined) {
        if (!(await this.#release(live, set, lost, signal))) {
          this.#going.delete(uid);
          return 'notWanted';
        }
      } else {
        await this.#write(
          live,
          async () => await evict(host, { namespace, name }, { uid, resourceVersion }, { signal }),
        );
      }
    } catch (error) {
      if (mayBeDone(error)) this.#going.set(uid, 'unheard');
      else this.#going.delete(uid);
      return this.#refused(wanted, error, this.#o.monotonic() - began);
    } finally {
      answered();
    }
    // In the same breath, so that it counts all the time.
    this.#going.set(uid, 'sent');
    this.#report.moved(wanted, set === undefined ? 'evicted' : lost ? 'waits' : 'released');
    return 'moved';
  }

  /** What the host answers about this pod holds it up, with its workload, and nobody else. @throws what says nothing of the pod */
  #refused(wanted: WantedMove, error: unknown, tookMs: number): MoveOutcome {
    const { pod } = wanted;
    const { namespace = '' } = pod.metadata;
    if (mayBeDone(error)) this.#report.unanswered(wanted);
    const refusal = evictionRefusal(error);
    if (refusal === 'changed') return 'notWanted';
    if (refusal === 'unheard') {
      this.letRest(pod, refusedForMs(error));
      throw error;
    }
    if (refusal !== 'noRight') {
      if (refusal === 'fails') this.#letAllRest(pod, tookMs);
      return this.#hold(wanted, heldByHost(refusal, error, pod));
    }
    this.#rights.note(namespace, error);
    return this.#hold(wanted, this.#rights.held(namespace));
  }

  #letAllRest(pod: Pod, tookMs: number): void {
    // A pod by itself rests by its UID.
    const key = controllerKeyOf(pod) ?? pod.metadata.uid ?? '';
    const restMs = slowRestMs(tookMs);
    if (restMs > 0) this.#restsUntil.set(key, this.#o.monotonic() + restMs);
  }

  #isLost(name: string): boolean {
    const member = this.#o.placed.member(name);
    return member !== undefined && isLost(member);
  }

  /** Whether the most allowed pods of the ReplicaSet are already being replaced. */
  #isFull(set: SurgingSet): boolean {
    return this.#o.releases.count(set.key) >= releasedAtOnce(set);
  }

  /** That is how it goes while others get ready, and told when none had its turn for long. */
  #waitForOthers(wanted: WantedMove, { key }: SurgingSet): MoveOutcome {
    const first = this.#o.releases.of(key).find(({ metadata }) => metadata.deletionTimestamp === undefined);
    const names = first === undefined ? '' : ` (${first.metadata.name} among them)`;
    const why = `as many pods of its ReplicaSet as may be are being replaced now${names}`;
    if (this.#turns.isLong(key)) this.#held.record(wanted, why);
    else this.#held.keep(wanted, why);
    this.letRest(wanted.pod, TURN_MS);
    return 'controllerHeld';
  }

  /**
   * Releases the pod from its ReplicaSet; returns whether it did. `lost`: its member does not answer, so it serves nobody, and is none of
   * those that are counted.
   */
  async #release(live: Pod, set: SurgingSet, lost: boolean, signal: AbortSignal): Promise<boolean> {
    const { host, placed, releases, clock } = this.#o;
    const { namespace, name } = live.metadata;
    const out = [...releases.of(set.key), ...releases.givenBack(set.key)];
    const known = new Map([...placed.ofController(set.key), ...out].map((pod) => [pod.metadata.uid, pod]));
    const body = releasePatch(live, { ready: readyOf([...known.values()]), at: clock(), lost });
    if (body === undefined) return false;
    releases.sent(live, set.key, lost);
    this.#turns.came(set.key);
    try {
      await this.#write(
        live,
        async () => await patch(host, PODS, { namespace, name }, body, { type: 'merge' }, { signal, retry: false }),
      );
      return true;
    } catch (error) {
      // Without an answer the patch may have been applied: the watch shows it, or the entry expires.
      if (!mayBeDone(error)) releases.notSent(live);
      throw error;
    }
  }

  /** With a place for its successor, which nobody else gets, from before it is sent: only an answer that refuses gives that back. */
  async #write(live: Pod, send: () => Promise<unknown>): Promise<void> {
    const takeBack = this.underWay.moving(live);
    try {
      await send();
    } catch (error) {
      if (!mayBeDone(error)) takeBack();
      throw error;
    }
  }

  #whyRehearsed({ pod, strategy }: WantedMove): string | undefined {
    return whyRehearsed(strategy, this.#o.placed.rulesOf(pod).failover, this.#o.dryRun);
  }

  #wasRehearsed(wanted: WantedMove): boolean {
    const until = this.#rehearsed.get(rehearsalOf(wanted)) ?? 0;
    return until > this.#o.monotonic() && this.#whyRehearsed(wanted) !== undefined;
  }

  /** Tells of the move, again from time to time. */
  #rehearse(wanted: WantedMove, why: string): MoveOutcome {
    this.#rehearsed.set(rehearsalOf(wanted), this.#o.monotonic() + DRY_RUN_MS);
    if (this.#held.isRehearsalToBeTold(wanted, why)) this.#report.rehearsed(wanted, why);
    return 'held';
  }

  #hold(wanted: WantedMove, { why, forMs = SHOWN_MS, ofWorkload, ofController, ofThese = [] }: Held): MoveOutcome {
    // It may rest for longer, as the host was slow.
    for (const one of [wanted.pod, ...ofThese]) if (this.#restOf(one.metadata.uid) < forMs) this.letRest(one, forMs);
    this.#held.record(wanted, why);
    if (ofWorkload === 'perhaps') this.#hadTurn(wanted.pod);
    if (ofWorkload !== undefined) return 'workloadHeld';
    return ofController === true ? 'controllerHeld' : 'held';
  }
}

function rehearsalOf({ pod, strategy }: WantedMove): string {
  return `${pod.metadata.uid ?? ''} ${strategy}`;
}
