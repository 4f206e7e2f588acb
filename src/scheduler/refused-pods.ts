import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import { isFinished } from '../api/pod-phase.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { evict, get } from '../kube/verbs.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { clusterInWords } from '../placement/cluster.ts';
import { nextPlace } from '../placement/next-place.ts';
import { refusalInWords } from '../placement/placement-refusal.ts';
import { hasBegun, PATIENCE_MS, refusedPodsStep, successorOf, whyItStays } from '../placement/refused-pod.ts';
import { withoutOne } from '../placement/workload.ts';
import type { HostView } from './host-view.ts';
import { memberRefusal } from './member-refusals.ts';
import type { MemberRefusal } from './member-refusals.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import { controllersOf } from './workload-view.ts';
import type { WorkloadState } from './workload-state.ts';

/** Between two looks at a workload with refused pods, in ms. */
const LOOK_MS = 2_000;
/** A pod that no other cluster takes is asked about again after so long, in ms. */
const NO_PLACE_MS = 15_000;
/** A pod that is not of the kind is looked at again after so long, in ms: nothing of that ever changes. */
const STAY_MS = 600_000;
/** After the host refused to let a pod be read or evicted it is asked about none of that namespace for so long, in ms. */
const NO_RIGHT_MS = 60_000;
/** For the caches to show what was done, in ms. */
const CAUGHT_UP_MS = 30_000;
const REMEMBERED = 10_000;

export interface RefusedPodsOptions {
  host: KubeClient;
  view: HostView;
  workloads: WorkloadState;
  questions: PlacementQuestions;
  events: Pick<EventRecorder, 'record'>;
  metrics: Pick<SchedulerMetrics, 'refusedPods'>;
  logger: Logger;
  /** Wall clock in ms, to compare with times that objects carry. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

interface Candidate {
  readonly pod: Pod;
  readonly uid: string;
  readonly refusal: MemberRefusal;
}

/** `stop`: what stands in the way of this pod stands in the way of the others of its workload, too. */
type Outcome = 'evicted' | 'next' | 'stop';

/**
 * Under a policy with `onRefusal: TryNext`: evicts pods that a member refuses, a few at a time, so that their controllers make
 * others, which go elsewhere while the member is avoided. A pod that is bound cannot be bound anew. Only what surely never ran
 * goes: it is read past the caches first, and the eviction holds for that very version of it. What it remembers is lost in
 * a restart without harm.
 */
export class RefusedPods {
  readonly #o: RefusedPodsOptions;
  /** UIDs of pods that were evicted, while the caches may not show it. */
  readonly #sent = new LRUCache<string, true>({ ...atMost(REMEMBERED), ttl: CAUGHT_UP_MS });
  /** By UID, until when a pod is left alone, in monotonic ms. */
  readonly #left = new LRUCache<string, number>(atMost(REMEMBERED));
  /** By UID, what was said about it last. */
  readonly #told = new LRUCache<string, string>(atMost(REMEMBERED));
  /** By namespace, as rights may be granted in some of them only: until when the host is not asked, in monotonic ms. */
  readonly #noRight = new LRUCache<string, number>(atMost(REMEMBERED));

  constructor(options: RefusedPodsOptions) {
    this.#o = options;
  }

  /** Throws what the host answers; pods that changed or went meanwhile are no failure. */
  async bringUpToDate(workloadUid: string, signal: AbortSignal): Promise<HandlerResult> {
    const { workloads, clock, monotonic } = this.#o;
    const pods = this.#podsOf(workloadUid);
    const refused = pods.flatMap((pod) => this.#candidate(pod));
    const [first] = refused;
    if (first === undefined) return undefined;
    const now = clock();
    const { ready, atMost } = refusedPodsStep({
      refused: refused.map(({ pod, uid, refusal: { cluster, at } }) => ({
        uid,
        cluster,
        at,
        createdAt: Date.parse(pod.metadata.creationTimestamp ?? ''),
      })),
      avoided: workloads.avoided(first.refusal.workload),
      underWay: pods.filter((pod) => this.#isUnderWay(pod)).length,
      now,
    });
    // Nothing may be left to do but to ask again whether there is room elsewhere.
    let lookAfterMs = atMost > 0 && ready.length === refused.length ? NO_PLACE_MS : LOOK_MS;
    let left = atMost;
    for (const uid of ready) {
      if (left === 0 || signal.aborted) break;
      const found = refused.find((one) => one.uid === uid);
      if (found === undefined || (this.#left.get(uid) ?? 0) > monotonic()) continue;
      const outcome = this.#isWithoutRight(found) ? this.#stayWithoutRight(found) : await this.#makeWay(found, signal);
      if (outcome === 'stop') break;
      if (outcome === 'evicted') {
        left -= 1;
        lookAfterMs = LOOK_MS;
      }
    }
    return { requeueAfterMs: lookAfterMs };
  }

  /** Controllers of kinds that are not followed own their pods themselves. */
  #podsOf(workloadUid: string): readonly Pod[] {
    const { view } = this.#o;
    const workload = view.owners.byUid(workloadUid);
    if (workload === undefined) return view.podsOf(workloadUid);
    return controllersOf(workload, view).flatMap(({ metadata }) => view.podsOf(metadata.uid ?? ''));
  }

  #candidate(pod: Pod): Candidate[] {
    const { uid = '' } = pod.metadata;
    const refusal = this.#sent.has(uid) || isFinished(pod) ? undefined : memberRefusal(pod, this.#o.view);
    return refusal?.rules.placement.triesNext === true ? [{ pod, uid, refusal }] : [];
  }

  /** It has no node, or made way and is not gone. */
  #isUnderWay(pod: Pod): boolean {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const { nodeName = '' } = pod.spec;
    if (isFinished(pod)) return false;
    if (deletionTimestamp === undefined) return nodeName === '' || this.#sent.has(uid);
    return nodeName !== '' && this.#o.view.nodes.clusterOf(nodeName) !== LOCAL && pod.status?.phase === 'Pending';
  }

  async #makeWay({ pod, uid, refusal }: Candidate, signal: AbortSignal): Promise<Outcome> {
    const { host, view, clock } = this.#o;
    const { namespace, name } = pod.metadata;
    try {
      const live = await get<Pod>(host, PODS, { namespace, name }, { signal });
      const still = live.metadata.uid === uid && !hasBegun(live) ? memberRefusal(live, view) : undefined;
      // The caches will show what it is by now.
      if (still?.cluster !== refusal.cluster || still.at + PATIENCE_MS > clock()) return 'next';
      const own = whyItStays(live);
      if (own !== undefined) return this.#stay(live, still, own, STAY_MS);
      const why = this.#whyUncertain(still) ?? this.#whyNotElsewhere(live, still);
      if (why !== undefined) return this.#stay(live, still, why, NO_PLACE_MS);
      await evict(host, { namespace, name }, { uid, resourceVersion: live.metadata.resourceVersion }, { signal });
      this.#sent.set(uid, true);
      this.#tell(live, still);
      return 'evicted';
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return 'next';
      if (!isForbidden(error)) throw error;
      this.#noteNoRight(namespace ?? '', error);
      return this.#stayWithoutRight({ pod, uid, refusal });
    }
  }

  /** What was heard of the pod last may not be so any more. */
  #whyUncertain({ cluster }: MemberRefusal): string | undefined {
    const known = this.#o.view.nodes.clusters().find(({ name }) => name === cluster);
    const { unavailable } = known ?? { unavailable: 'it is not known' };
    return unavailable === undefined ? undefined : `what ${cluster} said last may be old, as ${unavailable}`;
  }

  /** Asked as a scheduler would ask about the pod that comes instead. */
  #whyNotElsewhere(live: Pod, { cluster, rules, workload }: MemberRefusal): string | undefined {
    const { view, workloads, questions, clock } = this.#o;
    const now = clock();
    const avoided = workloads.avoided(workload).find((one) => one.cluster === cluster);
    const pod = successorOf(live, avoided?.until ?? now, now);
    const { facts } = questions.ask(pod, view.owners.chainOf(live), rules, questions.everyOpenNode(pod));
    const pods = withoutOne(facts.workload.pods, facts.pod.revision, cluster);
    const { allowed, refusals } = nextPlace({ ...facts, workload: { ...facts.workload, pods } });
    if (allowed.some((place) => place.cluster !== cluster)) return undefined;
    const others = refusals.filter((one) => one.cluster !== cluster).map(refusalInWords);
    return `no other cluster takes it now${others.length === 0 ? '' : ` (${others.join('; ')})`}`;
  }

  #tell(pod: Pod, { workload, cluster, reason, message }: MemberRefusal): void {
    const { events, metrics, logger } = this.#o;
    const { kind = '', name = '' } = pod.metadata.ownerReferences?.find(({ controller }) => controller === true) ?? {};
    const what = `${clusterInWords(cluster)} refuses it (${reason}), and it never started there`;
    const next = `it was evicted, so that ${kind} ${name} makes another one, which goes elsewhere: ${cluster} is avoided for a while`;
    events.record(podSubject(pod), 'Normal', 'RefusedPodReplaced', `${what}; ${next}. The refusal: ${message}`);
    const { apiVersion, kind: ofKind, metadata } = workload;
    const { namespace, name: ofName, uid } = metadata;
    const about = { apiVersion, kind: ofKind, namespace, name: ofName, uid };
    const words = `pod ${pod.metadata.name}: ${what}; ${next}. The refusal: ${message}`;
    events.record(about, 'Normal', 'RefusedPodReplaced', words);
    metrics.refusedPods.inc({ cluster, outcome: 'replaced' });
    logger.info({ pod: keyOf(pod), cluster, reason }, 'a pod that its member refuses made way for another one');
  }

  /** Says so once for each cause; a list of clusters that changes is no other cause. */
  #stay(pod: Pod, { cluster }: MemberRefusal, why: string, forMs: number): Outcome {
    const { events, metrics, monotonic } = this.#o;
    const { uid = '' } = pod.metadata;
    const outcome = forMs === STAY_MS ? 'next' : 'stop';
    this.#left.set(uid, monotonic() + forMs);
    const cause = why.replace(/ \(.*/s, '');
    if (this.#told.get(uid) === cause) return outcome;
    this.#told.set(uid, cause);
    const words = `it stays in ${clusterInWords(cluster)}, which refuses it, and starts there once it is taken: ${why}`;
    events.record(podSubject(pod), 'Warning', 'RefusedPodStays', words);
    metrics.refusedPods.inc({ cluster, outcome: 'stays' });
    return outcome;
  }

  #noteNoRight(namespace: string, error: unknown): void {
    const { logger, monotonic } = this.#o;
    if (!this.#noRight.has(namespace)) {
      const words = 'pods that members refuse cannot be evicted, which manifests/scheduler/refusals.yaml would grant';
      logger.warn({ namespace }, `${words}: ${describeError(error)}`);
    }
    this.#noRight.set(namespace, monotonic() + NO_RIGHT_MS);
  }

  #isWithoutRight({ pod }: Candidate): boolean {
    return (this.#noRight.get(pod.metadata.namespace ?? '') ?? 0) > this.#o.monotonic();
  }

  /** Told in every workload of the namespace, though the host was asked for one pod only. */
  #stayWithoutRight({ pod, refusal }: Candidate): Outcome {
    const until = this.#noRight.get(pod.metadata.namespace ?? '') ?? 0;
    const why = 'the host does not let Spillway evict it (apply manifests/scheduler/refusals.yaml)';
    return this.#stay(pod, refusal, why, until - this.#o.monotonic());
  }
}
