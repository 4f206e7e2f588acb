import type { Pod } from '../kube/core-v1.ts';
import { monotonic } from '../kube/clock.ts';
import { keyOf } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { catchUp, CREATED_OVERDUE_MS, isExpected, isOverdue, runsFor } from './catch-up.ts';
import { decide, ENDS_FIRST } from './decide.ts';
import { DeletionSweep, SWEEP_MS } from './deletion-sweep.ts';
import { GatheredFacts, type GatheredFactsOptions } from './gathered-facts.ts';
import { KeptPods, type KeptPodsOptions } from './kept-pods.ts';
import { mayNeedOther } from './may-need-other.ts';
import { OwnCopies } from './own-copies.ts';
import { PodActor, type PodActorOptions } from './pod-actor.ts';
import { newest, PodMemories } from './pod-memory.ts';
import { PodOverrides } from './pod-overrides.ts';
import { type FencingPort, NEVER_FENCED, type OverridesPort } from './pod-ports.ts';
import { type Next, soonest } from './retry-later.ts';
import { type NotEnded, ReturnedCopies } from './returned-copies.ts';
import { UndeletedCopies, type UndeletedCopiesOptions, type UndeletedList } from './undeleted-copies.ts';

export interface PodControllerOptions
  extends
    Omit<PodActorOptions, 'copies' | 'fencing' | 'overrides' | 'kept' | 'returned' | 'clock' | 'monotonic'>,
    Pick<GatheredFactsOptions, 'network' | 'daemonSets' | 'podsUnreadyAfterMs' | 'outageBegan' | 'frozen'>,
    Pick<KeptPodsOptions, 'breakerOpen' | 'permits'>,
    Pick<UndeletedCopiesOptions, 'memberNodes'> {
  /** Default: nobody ever says that nothing runs on the virtual node any more. */
  fencing?: FencingPort;
  /** Default: there are no override policies. */
  overrides?: OverridesPort;
  queueMetrics?: WorkQueueMetrics | undefined;
  /** Told when pods begin or cease to be kept although their host pods are gone. */
  keptChanged?: () => void;
}

/** Pods that are looked at at the same time. */
const CONCURRENCY = 64;

/**
 * The life of the pods of one virtual node, level-triggered: watches on both sides put the host pod's key into one
 * queue, the handler reads both caches, {@link decide} answers one action, {@link PodActor} performs it.
 */
export class PodController {
  readonly #options: PodControllerOptions;
  readonly #memories = new PodMemories();
  readonly #queue: WorkQueue;
  readonly #actor: PodActor;
  readonly #copies: OwnCopies;
  readonly #facts: GatheredFacts;
  readonly #overrides: PodOverrides;
  readonly #returned: ReturnedCopies;
  readonly #undeleted: UndeletedCopies;
  readonly #kept: KeptPods;
  readonly #deletions: DeletionSweep;
  /** Keys of host pods whose place in the member is taken by a pod that is not of this virtual node, by that pod's key. */
  readonly #nameWaiters = new Map<string, string>();

  constructor(options: PodControllerOptions) {
    this.#options = options;
    const common = { ...options, clock: Date.now, monotonic, fencing: options.fencing ?? NEVER_FENCED };
    const copies = new OwnCopies(options);
    const requeue = (key: string): void => this.requeue(key);
    this.#copies = copies;
    this.#kept = new KeptPods({ ...common, copies, requeue, changed: () => this.#keptChanged() });
    this.#deletions = new DeletionSweep(monotonic);
    this.#queue = new WorkQueue({
      name: `pods-${options.nodeName}`,
      concurrency: CONCURRENCY,
      // To begin or end pods is less urgent than to tell of those that run or are gone; with fewer than there are connections an API
      // server gets less done.
      normal: { fresh: 16, most: CONCURRENCY / 2 },
      handler: async (key, signal) => await this.#handle(key, signal),
      backoff: { baseMs: 250, maxMs: 60_000 },
      logger: options.logger,
      metrics: options.queueMetrics,
    });
    this.#overrides = new PodOverrides({ ...options, port: options.overrides });
    this.#returned = new ReturnedCopies({
      ...common,
      isOurs: (pod) => copies.hostKeyOf(pod) !== undefined,
      isKept: (uid) => this.#kept.reasonOf(uid) !== undefined,
      requeue: (key) => this.#queue.add(key),
    });
    this.#undeleted = new UndeletedCopies(common);
    const parts = { ...common, overrides: this.#overrides, returned: this.#returned };
    this.#facts = new GatheredFacts(parts);
    this.#actor = new PodActor({ ...parts, copies, kept: this.#kept });
  }

  /** Works until the signal aborts; then lets the actions under way end. The caches are run by their owners. */
  async run(signal: AbortSignal): Promise<void> {
    const { hostPods, member } = this.#options;
    const unsubscribe = [
      hostPods.on({
        added: (pod) => {
          this.#options.dependents.track(pod, this.#overrides.referring(pod));
          this.#hostPodSeen(pod);
        },
        updated: (pod, old) => {
          if (mayNeedOther(pod, old)) this.#options.dependents.track(pod, this.#overrides.referring(pod));
          this.#hostPodSeen(pod);
        },
        deleted: (pod, evidence) => this.#hostPodGone(pod, evidence),
      }),
      member.pods.on({
        added: (pod) => this.#memberPodSeen(pod),
        updated: (pod) => this.#memberPodSeen(pod),
        deleted: (pod, evidence) => this.#memberPodGone(pod, evidence),
      }),
    ];
    const sweep = setInterval(() => this.#sweep(), CREATED_OVERDUE_MS);
    const deletions = setInterval(() => this.#sweepDeletions(), SWEEP_MS);
    try {
      const working = this.#queue.run(signal);
      await Promise.all([hostPods.whenSynced(signal), member.pods.whenSynced(signal)]).catch(() => undefined);
      this.requeueAll();
      await working;
    } finally {
      clearInterval(sweep);
      clearInterval(deletions);
      for (const off of unsubscribe) off();
    }
  }

  /** Wakes what no event will wake: pods we made that the watch has not shown, because they came and went unseen. */
  #sweep(): void {
    const now = monotonic();
    for (const [key, memory] of this.#memories.entries()) {
      if (isOverdue(memory, now) && this.#copies.of(key).length === 0) this.#queue.add(key);
    }
  }

  /** The last resort of invariant I14: a deletion that fell out of the queue goes back into it. */
  #sweepDeletions(): void {
    const { member, hostPods, invariants, frozen } = this.#options;
    const stoodStill = !this.#deletions.begin();
    const sees = !stoodStill && frozen() === undefined && hostPods.hasSynced && member.pods.hasSynced;
    this.#kept.restBreaker(sees);
    if (!sees) return;
    for (const pod of this.#copies.all) {
      const key = this.#copies.hostKeyOf(pod);
      if (key === undefined || !this.#deletions.isForgotten(pod, hostPods.get(key), this.#memories.of(key))) continue;
      invariants.violated('I14', 'a deletion that nobody looked after', { pod: key, uid: pod.metadata.uid });
      this.#queue.add(key, 'high');
    }
  }

  /** How long it takes until nothing can come any more of creations that this process has sent, in ms. */
  get creationsOpenMs(): number {
    return this.#actor.creationsOpenMs;
  }

  /** Pods that are kept although their host pods are gone. */
  get orphanedPods(): KeptPods['list'] {
    return this.#kept.list;
  }

  /** Copies of pods that were ended while the member was out of service, which it does not let be deleted. */
  get notEnded(): readonly NotEnded[] {
    return this.#returned.notEnded;
  }

  /** Copies whose deletion the member has taken, and which do not go. */
  get undeleted(): UndeletedList {
    return this.#undeleted.list;
  }

  /** An administrator confirms that those of these member pods which are kept here are to be deleted. */
  confirmDeletions(uids: ReadonlySet<string>): void {
    this.#kept.confirmDeletions(uids);
  }

  #keptChanged(): void {
    this.#returned.keptChanged();
    this.#options.keptChanged?.();
  }

  /** Looks at one pod again. */
  requeue(key: string): void {
    this.#queue.add(key, 'high');
  }

  /** Looks at every pod again: after the caches synced, or when the member came back or was lost. */
  requeueAll(): void {
    for (const pod of this.#options.hostPods.values()) this.#queue.add(keyOf(pod));
    for (const pod of this.#options.member.pods.values()) this.#memberPodSeen(pod);
  }

  #hostPodSeen(pod: Pod): void {
    this.#queue.add(keyOf(pod));
  }

  #hostPodGone(pod: Pod, evidence: 'watched' | 'relisted'): void {
    const key = keyOf(pod);
    const memory = this.#memories.of(key);
    delete memory.host;
    if (evidence === 'watched' || pod.metadata.deletionTimestamp !== undefined) {
      (memory.hostDeletions ??= new Set()).add(pod.metadata.uid ?? '');
    }
    this.#queue.add(key, 'high');
  }

  #memberPodSeen(pod: Pod): void {
    this.#returned.seen(pod);
    const key = this.#copies.hostKeyOf(pod);
    // What is under way is finished before more is begun: in a burst users see pods run one by one, not all at the end.
    if (key === undefined) this.#undeleted.gone(pod);
    else this.#queue.add(key, pod.status?.phase === 'Pending' ? 'normal' : 'high');
  }

  #memberPodGone(pod: Pod, evidence: 'watched' | 'relisted'): void {
    const waiter = this.#nameWaiters.get(keyOf(pod));
    if (waiter !== undefined) {
      this.#nameWaiters.delete(keyOf(pod));
      this.#queue.add(waiter);
    }
    const key = this.#copies.hostKeyOf(pod);
    if (key === undefined) return;
    this.#returned.gone(pod);
    this.#undeleted.gone(pod);
    this.#kept.forget(pod);
    const memory = this.#memories.of(key);
    // How one of two copies ended says nothing of the other.
    if (evidence === 'watched' && !this.#copies.hasAnother(key, pod)) memory.departed = pod;
    if (memory.member?.metadata.uid === pod.metadata.uid) delete memory.member;
    if (memory.created !== undefined && memory.created.uid === pod.metadata.uid) memory.created.at = -Infinity;
    this.#queue.add(key, 'high');
  }

  async #handle(key: string, signal: AbortSignal): Promise<Next> {
    const memory = this.#memories.of(key);
    memory.lookedAt = monotonic();
    const bound = this.#options.hostPods.get(key);
    // Nobody makes host pods here: one that the cache has no more is gone, however late an answer about it may come.
    const hostPod = bound === undefined ? undefined : newest(bound, memory.host);
    const { memberPod: cached, second } = this.#copies.at(key, hostPod);
    // An answer counts for a pod that the cache has, and for one that it does not know yet.
    if (cached === undefined && !isExpected(memory, monotonic())) delete memory.member;
    // Between two copies it is chosen by what the cache has.
    const isChosen = second === undefined || memory.member?.metadata.uid === cached?.metadata.uid;
    const memberPod = isChosen ? newest(cached, memory.member) : cached;
    const elsewhere = memberPod !== undefined && this.#copies.hostKeyOf(memberPod) === undefined;
    if (hostPod === undefined && (memberPod === undefined || elsewhere)) {
      if (memberPod !== undefined) this.#nameWaiters.delete(keyOf(memberPod));
      this.#options.dependents.release(key);
      this.#facts.hostPodsGone(memory.hostDeletions ?? []);
      this.#memories.forget(key);
      this.#overrides.forget(key);
      return undefined;
    }
    if (elsewhere) this.#nameWaiters.set(keyOf(memberPod), key);
    catchUp(memory, hostPod, memberPod, monotonic());
    // Before anything is waited for: what is gone by then would be listed for ever.
    const copies = { hostPod, memberPod: elsewhere ? undefined : cached, second, sent: memory.deleteSent };
    const undeleted = this.#undeleted.look({ ...copies, frozen: this.#facts.whyFrozen() });
    let unprepared: Next;
    if (hostPod !== undefined && memberPod !== undefined && runsFor(memberPod, hostPod)) {
      unprepared = await this.#overrides.prepare(hostPod, memberPod, signal);
    }
    const action = decide(hostPod, memberPod, this.#facts.of(memory, hostPod, second));
    if (action === ENDS_FIRST) this.#returned.heldBack(key);
    // Its host pod was out of sight, and is back: nobody has to decide about it any more.
    if (hostPod !== undefined && memberPod !== undefined && action.do !== 'collect' && action.do !== 'wait') {
      this.#kept.forget(memberPod);
    }
    const next = await this.#actor.perform(action, key, memory, signal);
    return soonest(next, this.#facts.untilUnready(), unprepared, undeleted);
  }
}
