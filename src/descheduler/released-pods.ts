import type { Logger } from 'pino';
import { podSubject } from '../api/pod-subject.ts';
import { asOwned, type Released, releasedFrom } from '../api/released.ts';
import type { KubeClient } from '../kube/client.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, describeError, isConflict, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';
import { PODS, REPLICA_SETS } from '../kube/resource.ts';
import { evict, get, patch } from '../kube/verbs.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MovesMetrics } from './moves-metrics.ts';
import { giveBackPatch } from './release-patches.ts';
import {
  type EvictReason,
  type GiveBackReason,
  type ReleaseStep,
  releaseSteps,
  type ReplicaSetFacts,
} from './release-step.ts';
import type { Releases } from './releases.ts';
import { purgeRules } from './purge-mode.ts';

/** The pods of a ReplicaSet that are out of it are looked at again after so long at most, in ms. */
const LOOK_MS = 5_000;
/** A pod that its ReplicaSet has again is left alone for so long, in ms. */
const RETRY_MS = 300_000;

export interface ReleasedPodsOptions {
  host: KubeClient;
  placed: PlacedPods;
  releases: Releases;
  /** Lets a pod alone for so long, in ms. */
  leave: (pod: Pod, forMs: number) => void;
  events: Pick<EventRecorder, 'record'>;
  metrics: MovesMetrics;
  logger: Logger;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
}

/** Of EvictReason those that people want to know of, in words. */
const WHY: Record<EvictReason, string | undefined> = {
  Replaced: undefined,
  Finished: undefined,
  Gone: 'is gone',
  TimedOut:
    'has no other pod that became Ready in time, and it is not Ready itself, or the policy says onTimeout: Evict',
};

/** How a pod stands that is to be ended but stays, in words. */
const STANDS: Record<EvictReason, string> = {
  Replaced: 'another pod is Ready in its place',
  Finished: 'it has ended',
  Gone: 'its ReplicaSet is gone, and nobody wants it any more',
  TimedOut: 'no other pod became Ready in time',
};

/**
 * Ends what releases began, whoever began it: pods that are out of their ReplicaSet are evicted once others are Ready in their
 * places, or given back. All that is known of them stands on the pods.
 */
export class ReleasedPods {
  readonly #o: ReleasedPodsOptions;
  /** By UID of the pod, what was said about it last. */
  readonly #told = new Map<string, string>();

  constructor(options: ReleasedPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers; pods that changed or went meanwhile are no failure. */
  async bringUpToDate(setUid: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, releases } = this.#o;
    const [first] = releases.of(setUid);
    if (first === undefined) return releases.has(setUid) ? { requeueAfterMs: LOOK_MS } : undefined;
    // What the caches say of the ReplicaSet tells whether there may be something to do; nothing is done before it was read.
    const known = placed.surgingSetOf(asOwned(first));
    const cached = known === undefined ? undefined : { replicas: known.replicas, available: undefined };
    if (this.#steps(setUid, cached).every(({ kind }) => kind === 'wait')) return { requeueAfterMs: LOOK_MS };
    const steps = this.#steps(setUid, await this.#read(first, signal));
    for (const step of steps) {
      if (signal.aborted) break;
      if (step.kind !== 'wait') await this.#carryOut(step, signal);
    }
    return { requeueAfterMs: LOOK_MS };
  }

  /** A pod is gone. */
  gone({ metadata: { uid = '' } }: Pod): void {
    this.#told.delete(uid);
  }

  #steps(setUid: string, set: ReplicaSetFacts | undefined): ReleaseStep[] {
    const { placed, releases, clock } = this.#o;
    const released = releases.of(setUid);
    // That it is not Ready says only that nothing is heard of it, also for a moment after its member answers again.
    for (const pod of released) if (this.#isUnanswered(pod)) releases.countAnew(pod);
    const givenBack = releases.givenBack(setUid);
    const out = new Set([...released, ...givenBack].map(({ metadata }) => metadata.uid));
    const owned = [...placed.ofController(setUid).filter(({ metadata }) => !out.has(metadata.uid)), ...givenBack];
    const [first] = released;
    const rules = purgeRules(first === undefined ? undefined : placed.rulesOf(asOwned(first)).failover);
    return releaseSteps({ set, released, owned, rules, now: clock(), passedMs: (pod) => releases.passedMs(pod) });
  }

  #isUnanswered({ spec }: Pod): boolean {
    const { placed } = this.#o;
    const member = placed.clusterOf(spec.nodeName ?? '');
    return placed.members().some(({ name, reachable }) => name === member && reachable === false);
  }

  /** The ReplicaSet as it is now, past the caches; undefined when it is gone, or going. */
  async #read(pod: Pod, signal: AbortSignal): Promise<ReplicaSetFacts | undefined> {
    const { namespace } = pod.metadata;
    const { replicaSet = '', uid } = releasedFrom(pod) ?? {};
    try {
      const live = await get<ReplicaSet>(this.#o.host, REPLICA_SETS, { namespace, name: replicaSet }, { signal });
      if (live.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return undefined;
      const { replicas = 1, minReadySeconds = 0 } = live.spec ?? {};
      return { replicas, available: minReadySeconds > 0 ? (live.status?.availableReplicas ?? 0) : undefined };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #carryOut(step: Exclude<ReleaseStep, { kind: 'wait' }>, signal: AbortSignal): Promise<void> {
    const { host } = this.#o;
    const { namespace, name, uid } = step.pod.metadata;
    try {
      const live = await get<Pod>(host, PODS, { namespace, name }, { signal });
      const released = releasedFrom(live);
      // The caches will show what it is by now.
      if (live.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined || released === undefined) return;
      if (step.kind === 'evict' && step.why === 'TimedOut' && isReady(live) !== isReady(step.pod)) return;
      if (step.kind === 'giveBack') {
        await patch(host, PODS, { namespace, name }, giveBackPatch(live, released), { type: 'merge' }, { signal });
        this.#gaveBack(live, released, step.why);
      } else {
        await evict(host, { namespace, name }, { uid, resourceVersion: live.metadata.resourceVersion }, { signal });
        this.#evicted(live, released, step.why);
      }
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return;
      if (error instanceof ApiError && error.code === 429) this.#waits(step, budgetInWords(step));
      else if (error instanceof ApiError && (error.code === 403 || error.code === 422)) {
        this.#waits(step, `the host does not let Spillway: ${describeError(error)}`);
      } else throw error;
    }
  }

  #evicted(pod: Pod, { replicaSet }: Released, why: EvictReason): void {
    const { events, metrics, logger } = this.#o;
    metrics.releasesEnded.inc({ outcome: why });
    logger.info({ pod: keyOf(pod), replicaSet, why }, 'a pod that was released from its ReplicaSet was evicted');
    const words = WHY[why];
    if (words === undefined) return;
    events.record(
      podSubject(pod),
      'Warning',
      'ReleasedPodEvicted',
      `ReplicaSet ${replicaSet} ${words}: it was evicted`,
    );
  }

  #gaveBack(pod: Pod, { replicaSet }: Released, why: GiveBackReason): void {
    const { events, metrics, logger, leave } = this.#o;
    leave(pod, RETRY_MS);
    metrics.releasesEnded.inc({ outcome: 'GivenBack' });
    if (why === 'NoReplicas') {
      logger.info({ pod: keyOf(pod), replicaSet, why }, 'a pod was given back to its ReplicaSet, which is to end it');
      return;
    }
    logger.warn(
      { pod: keyOf(pod), replicaSet },
      'a pod was given back to its ReplicaSet: no other one became Ready in time',
    );
    const words = `no other pod of ReplicaSet ${replicaSet} became Ready in time: it has this one again, and the move is tried again in five minutes`;
    events.record(podSubject(pod), 'Warning', 'ReleasedPodGivenBack', words);
  }

  /** Says so once for each cause. */
  #waits(step: Exclude<ReleaseStep, { kind: 'wait' }>, why: string): void {
    const { pod } = step;
    const { uid = '' } = pod.metadata;
    if (this.#told.get(uid) === why) return;
    this.#told.set(uid, why);
    const words =
      step.kind === 'giveBack'
        ? `its ReplicaSet is to have it again, but it cannot be given back: ${why}`
        : `${STANDS[step.why]}, but it cannot be ended: ${why}`;
    this.#o.events.record(podSubject(pod), 'Warning', 'ReleasedPodStays', words);
  }
}

function budgetInWords(step: Exclude<ReleaseStep, { kind: 'wait' }>): string {
  const words = 'its disruption budget allows no eviction now';
  if (step.kind === 'giveBack' || step.why !== 'Gone') return words;
  return `${words}, which may last as long as the budget chooses this pod; delete the pod, or the budget if it is for nothing else`;
}

interface ReplicaSet extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number };
  status?: { availableReplicas?: number };
}
