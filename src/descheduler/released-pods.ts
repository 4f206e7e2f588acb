import { asOwned, type Released, releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ifThere } from '../kube/if-there.ts';
import { keyFor, type KubeObject, splitKey } from '../kube/object.ts';
import { controllerOf, ownerKeyOf } from '../kube/owner-references.ts';
import { PODS, REPLICA_SETS } from '../kube/resource.ts';
import { SinceWhen } from '../kube/since-when.ts';
import { evict, get, patch } from '../kube/verbs.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { lostMembers } from '../placement/lost-members.ts';
import type { MoveRules, PlacedMember, PlacedPods } from '../placement/placed-pods.ts';
import { evictionRefusal, mayBeDone, whyNotLetGo } from './eviction-refusal.ts';
import { healStep, isHealed, strandedStep } from './heal-step.ts';
import { type ChosenReason, HealedPods, type HealedPodsOptions } from './healed-pods.ts';
import { replacedAfterMs, whyItStaysLost } from './member-lost.ts';
import type { MovesUnderWay } from './moves-under-way.ts';
import { giveBackPatch } from './release-patches.ts';
import { ReleaseReport, type ReleaseReportOptions } from './release-report.ts';
import {
  type EndStep,
  type EvictReason,
  missingOf,
  readyOf,
  type ReleaseStep,
  type ReplicaSetFacts,
} from './release-step.ts';
import { releaseSteps } from './release-turns.ts';
import { type MadeRoom, RoomForOthers } from './room-for-others.ts';
import type { Room } from './room-left.ts';
import { withWordsThatCount } from './out-of-service.ts';
import type { Releases, Unadopted } from './releases.ts';
import { onHealOf, purgeRules } from './purge-mode.ts';

/** Longest check interval of a ReplicaSet with released pods (ms). */
const LOOK_MS = 5_000;
/** The same while the ReplicaSet does not say yet that a pod is Ready (ms). */
const BEHIND_MS = 1_000;
/** What fails may pass by itself; what has failed for so long is told (ms). */
const FAILING_MS = 60_000;
/** Time before a pod that was given back may be moved again (ms). */
const RETRY_MS = 300_000;

export interface ReleasedPodsOptions extends ReleaseReportOptions, HealedPodsOptions {
  placed: HealedPodsOptions['placed'] &
    Pick<PlacedPods, 'problem' | 'members' | 'hasRules' | 'surgingSetOf' | 'whyNotElsewhere'>;
  releases: Releases;
  underWay: Pick<MovesUnderWay, 'sent' | 'moving'>;
  /** Its release is not to be tried again for so long, in ms. */
  gaveBack: (pod: Pod, forMs: number) => void;
  /** How long a member has been lost, in ms. */
  lostForMs: (member: string) => number;
  /** How long moves for loss have not been paused, in ms. */
  unpausedForMs: () => number;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
}

/** None may go so that a ReplicaSet can make others. */
const NO_ROOM: Room = { open: 0, mayGo: 0 };

/** Decided by what caches say of its readiness, which may be otherwise by now. */
const BY_READINESS: ReadonlySet<EvictReason> = new Set(['Replaced', 'TimedOut', 'NotWell', 'NoOther']);

/**
 * Finishes releases, whichever process began them: a released pod is evicted once replacements are Ready, or given back. All state
 * is on the pods.
 */
export class ReleasedPods {
  readonly #o: ReleasedPodsOptions;
  readonly #healed: HealedPods;
  readonly #report: ReleaseReport;
  readonly #room: RoomForOthers;
  /** By key, that a ReplicaSet has fewer pods than it wants. */
  readonly #short = new SinceWhen();
  /** By key of a ReplicaSet, that its rules say KeepReplacement. */
  readonly #keeps = new SinceWhen();
  /** By UID of a pod, that its member is none any more. */
  readonly #gone = new SinceWhen();
  /** By UID of a pod, that the host fails to end it or to give it back. */
  readonly #fails = new SinceWhen();

  constructor(options: ReleasedPodsOptions) {
    this.#o = options;
    this.#healed = new HealedPods(options);
    this.#report = new ReleaseReport(options);
    this.#room = new RoomForOthers(options);
  }

  /** Throws errors of the host's API; a pod that changed or disappeared meanwhile is not an error. */
  async bringUpToDate(setKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, releases } = this.#o;
    if (!releases.has(setKey)) {
      this.#forgetTimes(setKey);
      this.#room.forget(setKey);
      return undefined;
    }
    // While the host cannot be followed, one that was seen to be Ready may not be any more.
    if (placed.problem !== undefined) {
      this.#forgetTimes(setKey);
      return { requeueAfterMs: LOOK_MS };
    }
    // One that cannot be ended keeps none of the others.
    const failures: unknown[] = [];
    const failed = (error: unknown): number => failures.push(error);
    for (const one of releases.unadopted(setKey)) await this.#endIfNobodys(one, setKey, signal).catch(failed);
    const result = await this.#takeSteps(setKey, failed, signal);
    if (failures.length > 0) throw failures[0];
    return result;
  }

  async #takeSteps(setKey: string, failed: (error: unknown) => void, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, releases } = this.#o;
    const [first] = releases.of(setKey);
    if (first === undefined) {
      this.#forgetTimes(setKey);
      return { requeueAfterMs: LOOK_MS };
    }
    // Caches only tell whether there may be something to do; the ReplicaSet is read live before anything is done.
    const known = placed.surgingSetOf(asOwned(first));
    const cached =
      known === undefined ? undefined : { replicas: known.replicas, ready: undefined, available: undefined };
    const { steps: expected } = this.#steps(setKey, cached);
    for (const step of expected) {
      if (step.kind !== 'wait') continue;
      this.#fails.forget(step.pod.metadata.uid ?? '');
      this.#report.waits(step);
    }
    if (expected.every(({ kind }) => kind === 'wait')) return { requeueAfterMs: LOOK_MS };
    const live = await this.#read(first, releasedFrom(first)?.replicaSet ?? '', setKey, signal);
    if (placed.problem !== undefined) return { requeueAfterMs: LOOK_MS };
    const { steps, room } = this.#steps(setKey, live);
    const ends = steps.filter((step) => step.kind !== 'wait');
    let { mayGo } = room;
    for (const step of ends) {
      if (signal.aborted) break;
      if (isForRoom(step)) continue;
      const became = await this.#carryOut(step, signal).catch((error: unknown) => {
        failed(error);
        return step.kind !== 'evict' && mayBeDone(error) ? 'givenBack' : undefined;
      });
      // The ReplicaSet lacks one less.
      if (became === 'givenBack') mayGo -= 1;
    }
    const tryOne = async (step: RoomStep, comeBefore: number): Promise<MadeRoom> =>
      await this.#goForOthers(step, comeBefore, signal);
    await this.#room.make(setKey, ends.filter(isForRoom), { ...room, mayGo }, tryOne, failed, signal);
    const isBehind = live !== undefined && live.ready < readyOf(placed.ofController(setKey));
    return { requeueAfterMs: isBehind ? BEHIND_MS : LOOK_MS };
  }

  /** A pod is gone. */
  gone(pod: Pod): void {
    this.#report.forget(pod.metadata.uid ?? '');
    this.#gone.forget(pod.metadata.uid ?? '');
    this.#fails.forget(pod.metadata.uid ?? '');
    const mark = releasedFrom(pod);
    const setKey = mark && keyFor(pod.metadata.namespace, mark.uid);
    this.#room.gone(pod, setKey);
    if (setKey === undefined) return;
    this.#madeRoom(setKey);
  }

  /** A ReplicaSet that has fewer pods than it wants has its time to make one anew. */
  #madeRoom(setKey: string): void {
    this.#short.countAnew(setKey, this.#o.monotonic());
  }

  #steps(setKey: string, set: ReplicaSetFacts | undefined): { steps: ReleaseStep[]; room: Room } {
    const { placed, releases, lostForMs, unpausedForMs, monotonic } = this.#o;
    const released = releases.of(setKey);
    const all = placed.members();
    const members = new Map(all.map((one) => [one.name, withWordsThatCount(one, lostForMs(one.name))]));
    const memberOf = ({ spec }: Pod): PlacedMember | undefined => members.get(placed.clusterOf(spec.nodeName ?? ''));
    // Not Ready may only mean that its member does not answer, or did not until a moment ago.
    for (const pod of released) if (isUnanswered(pod, memberOf(pod))) releases.countAnew(pod);
    const givenBack = releases.givenBack(setKey);
    const out = new Set([...released, ...givenBack].map(({ metadata }) => metadata.uid));
    const owned = [...placed.ofController(setKey).filter(({ metadata }) => !out.has(metadata.uid)), ...givenBack];
    const [first] = released;
    const found = first === undefined ? undefined : placed.rulesOf(asOwned(first));
    const failover = found?.failover;
    const staysForMs = found === undefined ? Infinity : replacedAfterMs(found);
    const isPaused = lostMembers(all).paused !== undefined;
    const lossCounts = (pod: Pod): boolean =>
      !isPaused && Math.min(lostForMs(memberOf(pod)?.name ?? ''), unpausedForMs()) >= staysForMs;
    const rules = purgeRules(failover);
    const { gracePeriodSeconds } = rules;
    const onHeal = onHealOf(failover);
    const rulesFound = {
      onHeal,
      keepsForMs: this.#keeps.lasting(setKey, onHeal === 'KeepReplacement', monotonic()),
      hasRules: first !== undefined && placed.hasRules(asOwned(first)),
    };
    const passedMs = (pod: Pod): number => releases.passedMs(pod);
    const missing = missingOf(set, owned);
    const room = set === undefined ? NO_ROOM : this.#room.look(setKey, { released, owned, missing });
    const steps = releaseSteps({
      set,
      released,
      owned,
      rules,
      passedMs,
      lossCounts,
      whyItStaysLost: (pod) => found && this.#whyItStaysLost(pod, found),
      mayMakeRoom: room.mayGo > 0,
      shortForMs: this.#short.lasting(setKey, missing > 0, monotonic()),
      heal: (pod) => {
        const member = memberOf(pod);
        const goneForMs = this.#gone.lasting(pod.metadata.uid ?? '', member === undefined, monotonic());
        return healStep(pod, { ...rulesFound, member, goneForMs, answersForMs: passedMs(pod), gracePeriodSeconds });
      },
      stranded: (pod) => strandedStep(pod, memberOf(pod), failover, lossCounts(pod)),
      clusterOf: (nodeName) => placed.clusterOf(nodeName),
    });
    return { steps, room };
  }

  #forgetTimes(setKey: string): void {
    this.#short.forget(setKey);
    this.#keeps.forget(setKey);
    this.#room.tryAnew(setKey);
    for (const { metadata } of this.#o.releases.of(setKey)) this.#gone.forget(metadata.uid ?? '');
  }

  /** The live ReplicaSet; undefined when it is gone or being deleted. */
  async #read(
    { metadata: { namespace } }: Pod,
    name: string,
    key: string,
    signal: AbortSignal,
  ): Promise<(ReplicaSetFacts & { ready: number }) | undefined> {
    const live = await ifThere(get<ReplicaSet>(this.#o.host, REPLICA_SETS, { namespace, name }, { signal }));
    if (live === undefined || ownerKeyOf(live) !== key || live.metadata.deletionTimestamp !== undefined)
      return undefined;
    const { replicas = 1, minReadySeconds = 0 } = live.spec ?? {};
    const { readyReplicas: ready = 0, availableReplicas = 0 } = live.status ?? {};
    return { replicas, ready, available: minReadySeconds > 0 ? availableReplicas : undefined };
  }

  /** One that was given back and that its ReplicaSet did not adopt. When that is gone by now, nobody else would end the pod. */
  async #endIfNobodys({ pod, replicaSet }: Unadopted, setKey: string, signal: AbortSignal): Promise<void> {
    const { host, releases } = this.#o;
    const { namespace, name, uid } = pod.metadata;
    try {
      if ((await this.#read(pod, replicaSet, setKey, signal)) === undefined) {
        const live = await get<Pod>(host, PODS, { namespace, name }, { signal });
        const isNobodys = live.metadata.deletionTimestamp === undefined && controllerOf(live) === undefined;
        if (live.metadata.uid === uid && isNobodys)
          await this.#evict(live, { replicaSet, uid: splitKey(setKey).name }, 'Gone', signal);
      }
      releases.forget(pod);
    } catch (error) {
      this.#failed({ pod, kind: 'evict', why: 'Gone' }, error);
    }
  }

  /** It goes so that others come, of which so many do in the room of those before it. */
  async #goForOthers(step: RoomStep, comeBefore: number, signal: AbortSignal): Promise<MadeRoom> {
    try {
      const found = await this.#readPod(step, signal);
      if (found === undefined) return undefined;
      const { live, released } = found;
      if (this.#whyItStaysLost(live, this.#o.placed.rulesOf(asOwned(live))) !== undefined) return undefined;
      const noPlace = this.#whyNoPlace(live, comeBefore);
      if (noPlace !== undefined) {
        this.#report.stays(step, noPlace, 'noPlace');
        return 'noPlace';
      }
      await this.#evict(live, released, step.why, signal);
      return 'went';
    } catch (error) {
      this.#failed(step, error);
      return undefined;
    }
  }

  /** @returns whether its ReplicaSet has it again */
  async #carryOut(step: EndStep, signal: AbortSignal): Promise<'givenBack' | undefined> {
    try {
      const found = await this.#readPod(step, signal);
      if (found === undefined) return undefined;
      const { live, released } = found;
      if (step.kind === 'choose') {
        const chosen = await this.#healed.choose(step, live, released, signal);
        if (chosen === 'stays') {
          this.#report.kept(live, released.replicaSet, step.instead);
          return 'givenBack';
        }
        if (chosen !== undefined) await this.#evict(live, released, chosen, signal);
      } else if (step.kind === 'giveBack') {
        await this.#giveBack(live, released, step.why, signal);
        return 'givenBack';
      } else {
        await this.#evict(live, released, step.why, signal).catch(async (error: unknown) => {
          if (step.why !== 'NoReplicas' || !isRefusal(error)) throw error;
          await this.#giveBack(live, released, step.why, signal);
        });
      }
    } catch (error) {
      this.#failed(step, error);
    }
    return undefined;
  }

  /** The pod past the caches; undefined: these will catch up. */
  async #readPod(step: EndStep, signal: AbortSignal): Promise<{ live: Pod; released: Released } | undefined> {
    const { namespace, name, uid } = step.pod.metadata;
    const live = await get<Pod>(this.#o.host, PODS, { namespace, name }, { signal });
    const released = releasedFrom(live);
    const isThere = live.metadata.uid === uid && live.metadata.deletionTimestamp === undefined;
    if (!isThere || released === undefined) return undefined;
    const isOtherwise = step.kind === 'evict' && BY_READINESS.has(step.why) && isReady(live) !== isReady(step.pod);
    return isOtherwise ? undefined : { live, released };
  }

  /** Why it stays, as any other pod of a lost member does for now, in words: of a released pod caches keep all that says so. */
  #whyItStaysLost(pod: Pod, rules: MoveRules): string | undefined {
    const { placed, lostForMs, unpausedForMs } = this.#o;
    const lostMs = Math.min(lostForMs(placed.clusterOf(pod.spec.nodeName ?? '')), unpausedForMs());
    return whyItStaysLost(asOwned(pod), rules, lostMs)?.why;
  }

  /** Why the pod that would come in its room would have no place, in words. */
  #whyNoPlace(live: Pod, comeBefore: number): string | undefined {
    const { placed, underWay } = this.#o;
    const own = asOwned(live);
    const from = placed.clusterOf(live.spec.nodeName ?? '');
    return placed.whyNotElsewhere(own, from, underWay.sent(own), { comeBefore })?.why;
  }

  /** Throws what is not known to be refused for good, nor to pass. */
  #failed(step: EndStep, error: unknown): void {
    const refusal = evictionRefusal(error);
    if (refusal === 'changed') return;
    if (refusal === 'unheard') throw error;
    const isNobodys = step.kind === 'evict' && step.why === 'Gone';
    const why = whyNotLetGo(refusal, error, isNobodys ? NOBODYS : '');
    const { uid = '' } = step.pod.metadata;
    const failsForMs = this.#fails.lasting(uid, refusal === 'fails', this.#o.monotonic());
    if (refusal !== 'fails' || failsForMs >= FAILING_MS) this.#report.stays(step, why, refusal);
    if (refusal === 'fails') throw error;
  }

  async #giveBack(live: Pod, released: Released, why: GiveBackReason, signal: AbortSignal): Promise<void> {
    const { namespace, name } = live.metadata;
    const body = giveBackPatch(live, released);
    await patch(this.#o.host, PODS, { namespace, name }, body, { type: 'merge' }, { signal, retry: false });
    this.#o.gaveBack(live, RETRY_MS);
    this.#report.gaveBack(live, released, why);
  }

  async #evict(live: Pod, released: From, why: EvictReason | ChosenReason, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid, resourceVersion } = live.metadata;
    // Of all others there is one in its place.
    const takeBack = why === 'NoOther' ? this.#o.underWay.moving(asOwned(live)) : undefined;
    try {
      await evict(this.#o.host, { namespace, name }, { uid, resourceVersion }, { signal });
    } catch (error) {
      if (!mayBeDone(error)) takeBack?.();
      throw error;
    }
    if (why === 'NoOther') this.#madeRoom(keyFor(namespace, released.uid));
    this.#report.evicted(live, released.replicaSet, why);
  }
}

/** What is said of a budget to which nobody comes in the place of the pod. */
const NOBODYS =
  ', which may last as long as the budget chooses this pod; delete the pod, or the budget if it is for nothing else';

/** What is said of the pod may be old. One that waits for its member needs to know that all of it can be relied on. */
function isUnanswered(pod: Pod, member: PlacedMember | undefined): boolean {
  if (member === undefined) return false;
  return member.reachable === false || (releasedFrom(pod)?.lost === true && !isHealed(member));
}

/** It goes, so that its ReplicaSet can make another one. */
type RoomStep = EndStep & { kind: 'evict'; why: 'NoOther' };

function isForRoom(step: EndStep): step is RoomStep {
  return step.kind === 'evict' && step.why === 'NoOther';
}

/** The host does not do it, as far as is known for as long as nobody changes anything. */
function isRefusal(error: unknown): boolean {
  return !['changed', 'fails', 'unheard'].includes(evictionRefusal(error));
}

type From = Pick<Released, 'replicaSet' | 'uid'>;
type GiveBackReason = 'TimedOut' | 'NoReplicas';

interface ReplicaSet extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number };
  status?: { readyReplicas?: number; availableReplicas?: number };
}
