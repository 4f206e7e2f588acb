import { asOwned, type Released, releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ifThere } from '../kube/if-there.ts';
import { keyFor, type KubeObject, splitKey } from '../kube/object.ts';
import { controllerOf, ownerKeyOf } from '../kube/owner-references.ts';
import { PODS, REPLICA_SETS } from '../kube/resource.ts';
import { evict, get, patch } from '../kube/verbs.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { replicasOf } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { EndTries, type Judgement, type Turn } from './end-tries.ts';
import { evictionRefusal, mayBeDone } from './eviction-refusal.ts';
import { type ChosenReason, HealedPods, type HealedPodsOptions } from './healed-pods.ts';
import type { MissingRights } from './missing-rights.ts';
import type { MovesUnderWay } from './moves-under-way.ts';
import { ReleaseJudge, type ReleaseJudgeOptions } from './release-judge.ts';
import { giveBackPatch } from './release-patches.ts';
import { ReleaseReport, type ReleaseReportOptions } from './release-report.ts';
import { type EndStep, type EvictReason, readyOf, type ReleaseStep, type ReplicaSetFacts } from './release-step.ts';
import { type MadeRoom, RoomForOthers } from './room-for-others.ts';
import type { Releases, Unadopted } from './releases.ts';

/** Longest check interval of a ReplicaSet with released pods (ms). */
const LOOK_MS = 5_000;
/** The same while the ReplicaSet does not say yet that a pod is Ready (ms). */
const BEHIND_MS = 1_000;
/** The same where what was judged is old by now, as the host took long (ms): caches show what was done. */
const AGAIN_MS = 100;
/** By then caches show what was given back (ms). */
const SHOWN_MS = 5_000;
/** Time before a pod that was given back may be moved again (ms). */
const RETRY_MS = 300_000;

export interface ReleasedPodsOptions
  extends ReleaseReportOptions, HealedPodsOptions, Omit<ReleaseJudgeOptions, 'room'> {
  placed: HealedPodsOptions['placed'] &
    ReleaseJudgeOptions['placed'] &
    Pick<PlacedPods, 'problem' | 'workloadByKey' | 'whyNotElsewhere'>;
  releases: Pick<Releases, 'has' | 'unadopted' | 'forget'> & ReleaseJudgeOptions['releases'];
  underWay: Pick<MovesUnderWay, 'sent' | 'moving'>;
  rightsToEnd: Pick<MissingRights, 'note'>;
  /** Its release is not to be tried again for so long, in ms. */
  gaveBack: (pod: Pod, forMs: number) => void;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
}

const UNREAD = 'its ReplicaSet may not be read (apply manifests/scheduler/descheduler.yaml)';
const NOTHING_DUE: Judged = { turns: [], isBehind: false };

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
  readonly #tries: EndTries;
  readonly #room: RoomForOthers;
  readonly #judge: ReleaseJudge;
  /** By key of a ReplicaSet, what failed in a look after which others had their turns at once: it is thrown when all had. */
  readonly #failed = new Map<string, unknown>();
  /** By key of a ReplicaSet, when it was given one back last (monotonic ms). */
  readonly #gaveBackAt = new Map<string, number>();

  constructor(options: ReleasedPodsOptions) {
    this.#o = options;
    this.#healed = new HealedPods(options);
    this.#report = new ReleaseReport(options);
    this.#tries = new EndTries({ report: this.#report, monotonic: options.monotonic });
    this.#room = new RoomForOthers(options);
    this.#judge = new ReleaseJudge({ ...options, room: this.#room });
  }

  /** Throws errors of the host's API; a pod that changed or disappeared meanwhile is not an error. */
  async bringUpToDate(setKey: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, releases } = this.#o;
    if (!releases.has(setKey)) {
      this.#judge.forgetTimes(setKey);
      this.#room.forget(setKey);
      this.#tries.forget(setKey);
      this.#failed.delete(setKey);
      this.#gaveBackAt.delete(setKey);
      return undefined;
    }
    // While the host cannot be followed, one that was seen to be Ready may not be any more.
    if (placed.problem !== undefined) {
      this.#judge.forgetTimes(setKey);
      return { requeueAfterMs: LOOK_MS };
    }
    const nobodys = releases.unadopted(setKey);
    const expected = this.#expected(setKey);
    const isDue = expected.length > 0;
    if (!isDue && nobodys.length === 0) return { requeueAfterMs: LOOK_MS };
    const restMs = this.#tries.restMs(setKey);
    if (restMs > 0) {
      for (const step of [...nobodys.map(endOf), ...expected]) this.#tries.tell(step);
      return { requeueAfterMs: Math.min(restMs, LOOK_MS) };
    }
    // One that cannot be ended keeps none of the others.
    const failures: unknown[] = [];
    const failed = (error: unknown): number => failures.push(error);
    const nothing = (error: unknown): Judged => {
      failed(error);
      if (evictionRefusal(error) !== 'noRight') return NOTHING_DUE;
      // That lasts until somebody grants it.
      for (const step of expected) this.#report.stays(step, UNREAD);
      this.#o.rightsToEnd.note(splitKey(setKey).namespace ?? '', error);
      return NOTHING_DUE;
    };
    const ends = nobodys.map((one) => ({
      pods: [one.pod],
      take: async (judgement: Judgement) => {
        await this.#endIfNobodys({ one, setKey, judgement }, signal).catch(failed);
      },
    }));
    const judged = isDue ? await this.#due(setKey, failed, signal).catch(nothing) : NOTHING_DUE;
    const mayBeLeft = await this.#tries.take(setKey, [...ends, ...judged.turns], signal);
    const [failure = this.#failed.get(setKey)] = failures;
    const isHeard = failures.every((one) => evictionRefusal(one) !== 'unheard');
    if (failure !== undefined && mayBeLeft && isHeard) this.#failed.set(setKey, failure);
    else {
      this.#failed.delete(setKey);
      if (failure !== undefined) throw failure;
    }
    return { requeueAfterMs: mayBeLeft ? AGAIN_MS : judged.isBehind ? BEHIND_MS : LOOK_MS };
  }

  /** What may be due, as far as caches say; what waits is told. */
  #expected(setKey: string): EndStep[] {
    const { placed, releases } = this.#o;
    const [first] = releases.of(setKey);
    if (first === undefined) {
      this.#judge.forgetTimes(setKey);
      return [];
    }
    // Whatever strategy its Deployment has by now: these pods are out of it, and others come in their places.
    const known = placed.workloadByKey(setKey);
    const replicas = known && replicasOf(known);
    const cached = replicas === undefined ? undefined : { replicas, ready: undefined, available: undefined };
    const { steps } = this.#judge.steps(setKey, cached);
    for (const step of steps) {
      if (step.kind !== 'wait') continue;
      this.#tries.notDue(step.pod);
      this.#report.waits(step);
    }
    return steps.filter(isEnd);
  }

  /** What is due by the ReplicaSet as it is live: nothing is done by caches alone. */
  async #due(setKey: string, failed: (error: unknown) => void, signal: AbortSignal): Promise<Judged> {
    const { placed, releases } = this.#o;
    const [first] = releases.of(setKey);
    if (first === undefined) return NOTHING_DUE;
    const live = await this.#read(first, releasedFrom(first)?.replicaSet ?? '', setKey, signal);
    if (placed.problem !== undefined) return NOTHING_DUE;
    const { steps, room } = this.#judge.steps(setKey, live);
    const ends = steps.filter(isEnd);
    let { mayGo } = room;
    const turns = ends
      .filter((step) => !isForRoom(step))
      .map((step): Turn => {
        const take = async (judgement: Judgement): Promise<void> => {
          const became = await this.#carryOut({ step, setKey, judgement }, signal).catch((error: unknown) => {
            failed(error);
            return step.kind !== 'evict' && mayBeDone(error) ? 'givenBack' : undefined;
          });
          // The ReplicaSet lacks one less.
          if (became !== 'givenBack') return;
          mayGo -= 1;
          this.#gaveBackAt.set(setKey, this.#o.monotonic());
        };
        return { pods: [step.pod], take };
      });
    const forRoom = ends.filter(isForRoom);
    const isShown = this.#o.monotonic() - (this.#gaveBackAt.get(setKey) ?? -Infinity) >= SHOWN_MS;
    if (forRoom.length > 0 && isShown) {
      const take = async (judgement: Judgement): Promise<void> => {
        const tryOne = async (step: RoomStep, comeBefore: number): Promise<MadeRoom> =>
          await this.#goForOthers({ step, setKey, judgement }, comeBefore, signal);
        await this.#room.make(setKey, forRoom, { ...room, mayGo }, tryOne, failed, judgement.goesOn);
      };
      turns.push({ pods: forRoom.map(({ pod }) => pod), isLast: true, take });
    }
    return { turns, isBehind: live !== undefined && live.ready < readyOf(placed.ofController(setKey)) };
  }

  /** A pod is gone. */
  gone(pod: Pod): void {
    this.#report.forget(pod.metadata.uid ?? '');
    this.#judge.gone(pod);
    this.#tries.notDue(pod);
    const mark = releasedFrom(pod);
    const setKey = mark && keyFor(pod.metadata.namespace, mark.uid);
    this.#room.gone(pod, setKey);
    if (setKey !== undefined) this.#judge.madeRoom(setKey);
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
  async #endIfNobodys(
    { one, setKey, judgement }: { one: Unadopted; setKey: string; judgement: Judgement },
    signal: AbortSignal,
  ): Promise<void> {
    const { releases } = this.#o;
    const { pod, replicaSet } = one;
    const what = { setKey, step: endOf(one), judgement };
    const read = async (): Promise<Pod | undefined> => {
      const live = await this.#readNobodys(one, setKey, signal);
      if (live === undefined) releases.forget(pod);
      return live;
    };
    await this.#tries.attempt(what, read, async (live, begins) => {
      begins();
      await this.#evict(live, { replicaSet, uid: splitKey(setKey).name }, 'Gone', signal);
      releases.forget(pod);
    });
  }

  /** Undefined: it is somebody's, or on its way out. */
  async #readNobodys({ pod, replicaSet }: Unadopted, setKey: string, signal: AbortSignal): Promise<Pod | undefined> {
    if ((await this.#read(pod, replicaSet, setKey, signal)) !== undefined) return undefined;
    const { namespace, name, uid } = pod.metadata;
    const live = await get<Pod>(this.#o.host, PODS, { namespace, name }, { signal });
    const isNobodys = live.metadata.deletionTimestamp === undefined && controllerOf(live) === undefined;
    return live.metadata.uid === uid && isNobodys ? live : undefined;
  }

  /** It goes so that others come, of which so many do in the room of those before it. */
  async #goForOthers(what: End<RoomStep>, comeBefore: number, signal: AbortSignal): Promise<MadeRoom> {
    const { step } = what;
    return await this.#tryOn(what, signal, async ({ live, released }, begins) => {
      if (this.#judge.whyItStaysLost(live, this.#o.placed.rulesOf(asOwned(live))) !== undefined) return undefined;
      const noPlace = this.#whyNoPlace(live, comeBefore);
      if (noPlace !== undefined) {
        this.#report.stays(step, noPlace, 'noPlace');
        return 'noPlace';
      }
      begins();
      await this.#evict(live, released, step.why, signal);
      return 'went';
    });
  }

  /** @returns whether its ReplicaSet has it again */
  async #carryOut(what: End, signal: AbortSignal): Promise<'givenBack' | undefined> {
    const { step } = what;
    return await this.#tryOn(what, signal, async ({ live, released }, begins) => {
      if (step.kind === 'choose') {
        const chosen = await this.#healed.choose(step, live, released, begins, signal);
        if (chosen === 'stays') {
          this.#report.kept(live, released.replicaSet, step.instead);
          return 'givenBack';
        }
        if (chosen === undefined) return undefined;
        begins();
        await this.#evict(live, released, chosen, signal, step.instead);
        return undefined;
      }
      begins();
      if (step.kind === 'giveBack') {
        await this.#giveBack(live, released, step.why, signal);
        return 'givenBack';
      }
      await this.#evict(live, released, step.why, signal, step.instead).catch(async (error: unknown) => {
        if (step.why !== 'NoReplicas' || !isRefusal(error)) throw error;
        await this.#giveBack(live, released, step.why, signal);
      });
      return undefined;
    });
  }

  async #tryOn<T>(
    what: End,
    signal: AbortSignal,
    write: (found: ReadPod, begins: () => void) => Promise<T>,
  ): Promise<T | undefined> {
    return await this.#tries.attempt(what, async () => await this.#readPod(what.step, signal), write);
  }

  /** The pod past the caches; undefined: these will catch up. */
  async #readPod(step: EndStep, signal: AbortSignal): Promise<ReadPod | undefined> {
    const { namespace, name, uid } = step.pod.metadata;
    const live = await get<Pod>(this.#o.host, PODS, { namespace, name }, { signal });
    const released = releasedFrom(live);
    const isThere = live.metadata.uid === uid && live.metadata.deletionTimestamp === undefined;
    if (!isThere || released === undefined) return undefined;
    const isOtherwise = step.kind === 'evict' && BY_READINESS.has(step.why) && isReady(live) !== isReady(step.pod);
    return isOtherwise ? undefined : { live, released };
  }

  /** Why the pod that would come in its room would have no place, in words. */
  #whyNoPlace(live: Pod, comeBefore: number): string | undefined {
    const { placed, underWay } = this.#o;
    const own = asOwned(live);
    const from = placed.clusterOf(live.spec.nodeName ?? '');
    return placed.whyNotElsewhere(own, from, underWay.sent(own), { comeBefore })?.why;
  }

  async #giveBack(live: Pod, released: Released, why: GiveBackReason, signal: AbortSignal): Promise<void> {
    const { namespace, name } = live.metadata;
    const body = giveBackPatch(live, released);
    await patch(this.#o.host, PODS, { namespace, name }, body, { type: 'merge' }, { signal, retry: false });
    this.#o.gaveBack(live, RETRY_MS);
    this.#report.gaveBack(live, released, why);
  }

  async #evict(
    live: Pod,
    released: From,
    why: EvictReason | ChosenReason,
    signal: AbortSignal,
    instead?: Pod,
  ): Promise<void> {
    const { namespace, name, uid, resourceVersion } = live.metadata;
    // Of all others there is one in its place.
    const takeBack = why === 'NoOther' ? this.#o.underWay.moving(asOwned(live)) : undefined;
    try {
      await evict(this.#o.host, { namespace, name }, { uid, resourceVersion }, { signal });
    } catch (error) {
      if (!mayBeDone(error)) takeBack?.();
      throw error;
    }
    if (why === 'NoOther') this.#judge.madeRoom(keyFor(namespace, released.uid));
    this.#report.evicted(live, released.replicaSet, why, instead);
  }
}

/** It goes, so that its ReplicaSet can make another one. */
type RoomStep = EndStep & { kind: 'evict'; why: 'NoOther' };

function isForRoom(step: EndStep): step is RoomStep {
  return step.kind === 'evict' && step.why === 'NoOther';
}

function isEnd(step: ReleaseStep): step is EndStep {
  return step.kind !== 'wait';
}

function endOf({ pod }: Unadopted): EndStep {
  return { pod, kind: 'evict', why: 'Gone' };
}

/** The host does not do it, as far as is known for as long as nobody changes anything. */
function isRefusal(error: unknown): boolean {
  return !['changed', 'fails', 'unheard'].includes(evictionRefusal(error));
}

interface End<S extends EndStep = EndStep> {
  readonly step: S;
  readonly setKey: string;
  readonly judgement: Judgement;
}

interface ReadPod {
  readonly live: Pod;
  readonly released: Released;
}

interface Judged {
  readonly turns: readonly Turn[];
  /** The ReplicaSet does not say yet that a pod is Ready. */
  readonly isBehind: boolean;
}

type From = Pick<Released, 'replicaSet' | 'uid'>;
type GiveBackReason = 'TimedOut' | 'NoReplicas';

interface ReplicaSet extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number };
  status?: { readyReplicas?: number; availableReplicas?: number };
}
