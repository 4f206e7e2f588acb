import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Invariants } from '../api/invariants.ts';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import type { Informer } from '../kube/informer.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyFor, keyOf, splitKey } from '../kube/object.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { ignoresPod } from './daemon-pod.ts';
import { catchUp, CREATED_OVERDUE_MS, isExpected, isOverdue, runsFor } from './catch-up.ts';
import { type Copies, chooseCopy } from './copies.ts';
import { decide, ENDS_FIRST, type PodFacts } from './decide.ts';
import { DeletionBreaker } from './deletion-breaker.ts';
import { isFinished } from '../api/pod-phase.ts';
import { DeletionSweep, SWEEP_MS } from './deletion-sweep.ts';
import { hostAnnotations, hostStatus } from './host-status.ts';
import { mayNeedOther } from './may-need-other.ts';
import { OrphanedPods } from './orphaned-pods.ts';
import { PodActor } from './pod-actor.ts';
import { newest, PodMemories, type PodMemory } from './pod-memory.ts';
import type { PodMetrics } from './pod-metrics.ts';
import { PodOverrides } from './pod-overrides.ts';
import {
  type DependentsPort,
  type EventPort,
  type FencingPort,
  HOST_POD_INDEX,
  type MemberPort,
  NEVER_FENCED,
  type NamespacesPort,
  type OverridesPort,
  type ServiceAccountsPort,
  type ServicesPort,
} from './pod-ports.ts';
import { type Next, soonest } from './retry-later.ts';
import { type NotEnded, ReturnedCopies } from './returned-copies.ts';
import type { TranslateContext } from './translate.ts';
import { UndeletedCopies, type UndeletedList } from './undeleted-copies.ts';

/** So many deletions of host pods are remembered after they are done, about 1 MB: copies may come to life late. */
const REMEMBERED_DELETIONS = 10_000;
/** The deletion breaker closes by itself when it has had nothing to hold back for so long, in ms. */
const BREAKER_REST_MS = 300_000;

export interface PodControllerOptions {
  host: KubeClient;
  /** The host's pods bound to this virtual node. */
  hostPods: Informer<Pod>;
  member: MemberPort;
  /** Nodes of the member. Default: nothing is known of them. */
  memberNodes?: Pick<Informer<Node>, 'hasSynced' | 'get'>;
  hostId: string;
  nodeName: string;
  network: () => 'Flat' | 'Isolated';
  /** What becomes of pods of DaemonSets. */
  daemonSets: () => 'Ignore' | 'Run';
  /** How long a member may be silent before its pods are shown as not ready, in ms. */
  podsUnreadyAfterMs: () => number;
  /** Why nothing may be written at the moment (lease, identity), or undefined. */
  frozen: () => string | undefined;
  /** Default: nobody ever says that nothing runs on the virtual node any more. */
  fencing?: FencingPort;
  /** Asks whether the host is still the cluster it was. Default: it is. */
  confirmHost?: () => Promise<boolean>;
  namespaces: NamespacesPort;
  dependents: DependentsPort;
  /** Default: no pod has a service account in the member. */
  serviceAccounts?: ServiceAccountsPort;
  /** Default: pods get variables of Services as in the host. */
  services?: ServicesPort;
  /** Default: there are no override policies. */
  overrides?: OverridesPort;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
  events: EventPort;
  metrics: PodMetrics;
  invariants: Invariants;
  queueMetrics?: WorkQueueMetrics;
  logger: Logger;
  /** Wall clock, for what is told. */
  clock?: () => number;
  /** Milliseconds that no one can set, for all decisions. */
  monotonic?: () => number;
  concurrency?: number;
  missingGraceMs?: number;
  /** The deletion breaker was open when a former process ended. */
  breakerOpen?: boolean;
  /** What the deletion breaker of this virtual node has permitted in this process, see {@link DeletionPermits}. */
  permits: Map<string, number>;
  /** Told when pods begin or cease to be kept although their host pods are gone. */
  keptChanged?: () => void;
}

/**
 * The life of the pods of one virtual node, level-triggered: watches on both sides put the host pod's key into one
 * queue, the handler reads both caches, {@link decide} answers one action, {@link PodActor} performs it.
 */
export class PodController {
  readonly #options: PodControllerOptions;
  readonly #clock: () => number;
  readonly #monotonic: () => number;
  readonly #memories = new PodMemories();
  readonly #queue: WorkQueue;
  readonly #actor: PodActor;
  readonly #overrides: PodOverrides;
  readonly #fencing: FencingPort;
  readonly #returned: ReturnedCopies;
  readonly #undeleted: UndeletedCopies;
  readonly #breaker: DeletionBreaker;
  readonly #kept: OrphanedPods;
  readonly #deletions: DeletionSweep;
  /** UIDs of host pods whose deletion was watched to its end: a copy that comes to life after that has no host pod. */
  readonly #goneHostPods = new LRUCache<string, true>(atMost(REMEMBERED_DELETIONS));
  /** Keys of host pods whose place in the member is taken by a pod that is not of this virtual node, by that pod's key. */
  readonly #nameWaiters = new Map<string, string>();

  constructor(options: PodControllerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    this.#monotonic = options.monotonic ?? monotonic;
    const { breakerOpen: open = false, permits } = options;
    this.#breaker = new DeletionBreaker({ monotonic: this.#monotonic, open, permits });
    this.#kept = new OrphanedPods({ monotonic: this.#monotonic, changed: () => this.#keptChanged() });
    this.#showKept();
    this.#deletions = new DeletionSweep(this.#monotonic);
    this.#queue = new WorkQueue({
      name: `pods-${options.nodeName}`,
      concurrency: options.concurrency ?? 64,
      // To begin or end pods is less urgent than to tell of those that run or are gone; with fewer than there are connections an API
      // server gets less done.
      normal: { fresh: 16, most: Math.ceil((options.concurrency ?? 64) / 2) },
      handler: async (key, signal) => await this.#handle(key, signal),
      backoff: { baseMs: 250, maxMs: 60_000 },
      logger: options.logger,
      ...(options.queueMetrics === undefined ? {} : { metrics: options.queueMetrics }),
    });
    this.#fencing = options.fencing ?? NEVER_FENCED;
    this.#overrides = new PodOverrides({ ...options, port: options.overrides });
    this.#returned = new ReturnedCopies({
      fencing: this.#fencing,
      member: options.member,
      isOurs: (pod) => this.#hostKeyOf(pod) !== undefined,
      isKept: (uid) => this.#kept.reasonOf(uid) !== undefined,
      requeue: (key) => this.#queue.add(key),
      monotonic: this.#monotonic,
    });
    this.#undeleted = new UndeletedCopies({ ...options, clock: this.#clock, monotonic: this.#monotonic });
    this.#actor = new PodActor({
      ...options,
      fencing: this.#fencing,
      returned: this.#returned,
      overrides: this.#overrides,
      clock: this.#clock,
      monotonic: this.#monotonic,
      breaker: this.#breaker,
      kept: this.#kept,
      missingGraceMs: options.missingGraceMs,
    });
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
    const now = this.#monotonic();
    for (const [key, memory] of this.#memories.entries()) {
      if (isOverdue(memory, now) && this.#own(key).length === 0) this.#queue.add(key);
    }
  }

  /** The last resort of invariant I14: a deletion that fell out of the queue goes back into it. */
  #sweepDeletions(): void {
    const { member, hostPods, invariants, frozen } = this.#options;
    const stoodStill = !this.#deletions.begin();
    const sees = !stoodStill && frozen() === undefined && hostPods.hasSynced && member.pods.hasSynced;
    if (this.#breaker.open) this.#restBreaker(sees);
    if (!sees) return;
    for (const pod of member.pods.values()) {
      const key = this.#hostKeyOf(pod);
      if (key === undefined || !this.#deletions.isForgotten(pod, hostPods.get(key), this.#memories.of(key))) continue;
      invariants.violated('I14', 'a deletion that nobody looked after', { pod: key, uid: pod.metadata.uid });
      this.#queue.add(key, 'high');
    }
  }

  /**
   * Closes the breaker when what it held back has resolved itself: the host pods are back, or somebody removed the member
   * pods. Only time counts in which it could have held something back, and nothing waits to be judged.
   */
  #restBreaker(sees: boolean): void {
    const { member, hostPods } = this.#options;
    if (!sees || hostPods.problem !== undefined || member.pods.problem !== undefined || this.#hasOrphans()) {
      this.#kept.doubt();
    } else if (this.#kept.emptyMs() > BREAKER_REST_MS) {
      this.confirmDeletions(new Set());
    }
  }

  /** Whether there are member pods of this virtual node whose host pods are out of sight. */
  #hasOrphans(): boolean {
    const { member, hostPods } = this.#options;
    for (const pod of member.pods.values()) {
      const key = pod.metadata.deletionTimestamp === undefined ? this.#hostKeyOf(pod) : undefined;
      if (key !== undefined && hostPods.get(key) === undefined) return true;
    }
    return false;
  }

  /** How long it takes until nothing can come any more of creations that this process has sent, in ms. */
  get creationsOpenMs(): number {
    return this.#actor.creationsOpenMs;
  }

  /** Pods that are kept although their host pods are gone. */
  get orphanedPods(): { uids: string[]; open: boolean; hostWentBack: boolean } {
    const entries = [...this.#kept.entries()];
    const hostWentBack = entries.some(([, { reason }]) => reason === 'HostWentBack');
    return { uids: entries.map(([uid]) => uid), open: this.#breaker.open, hostWentBack };
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
    const confirmed = [...this.#kept.entries()].filter(([uid]) => uids.has(uid));
    this.#breaker.confirm(confirmed.map(([uid]) => uid));
    for (const [, { key }] of confirmed) this.#queue.add(key, 'high');
    this.#keptChanged();
  }

  #keptChanged(): void {
    this.#showKept();
    this.#returned.keptChanged();
    this.#options.keptChanged?.();
  }

  #showKept(): void {
    const { metrics, nodeName } = this.#options;
    metrics.kept.set({ node: nodeName }, this.#kept.size);
    metrics.breakerOpen.set({ node: nodeName }, this.#breaker.open ? 1 : 0);
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
    const key = this.#hostKeyOf(pod);
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
    const key = this.#hostKeyOf(pod);
    if (key === undefined) return;
    this.#returned.gone(pod);
    this.#undeleted.gone(pod);
    this.#letGo(pod);
    const memory = this.#memories.of(key);
    // How one of two copies ended says nothing of the other.
    if (evidence === 'watched' && !this.#hasAnotherCopy(key, pod)) memory.departed = pod;
    if (memory.member?.metadata.uid === pod.metadata.uid) delete memory.member;
    if (memory.created !== undefined && memory.created.uid === pod.metadata.uid) memory.created.at = -Infinity;
    this.#queue.add(key, 'high');
  }

  #hasAnotherCopy(key: string, gone: Pod): boolean {
    const uid = gone.metadata.labels?.[UID_LABEL];
    return this.#own(key).some(({ metadata }) => metadata.labels?.[UID_LABEL] === uid);
  }

  /** What was asked about its deletion counts no more. */
  #letGo({ metadata: { uid = '' } }: Pod): void {
    this.#kept.release(uid);
    this.#breaker.forget(uid);
  }

  /** The key of the host pod that a member pod of ours, on this virtual node, runs for. */
  #hostKeyOf(memberPod: Pod): string | undefined {
    const { labels, annotations } = memberPod.metadata;
    if (labels?.[HOST_LABEL] !== this.#options.hostId || labels[NODE_LABEL] !== this.#options.nodeName)
      return undefined;
    const name = annotations?.[HOST_NAME_ANNOTATION];
    return name === undefined ? undefined : keyFor(annotations?.[HOST_NAMESPACE_ANNOTATION], name);
  }

  async #handle(key: string, signal: AbortSignal): Promise<Next> {
    const memory = this.#memories.of(key);
    memory.lookedAt = this.#monotonic();
    const bound = this.#options.hostPods.get(key);
    // Nobody makes host pods here: one that the cache has no more is gone, however late an answer about it may come.
    const hostPod = bound === undefined ? undefined : newest(bound, memory.host);
    const { memberPod: cached, second } = this.#copiesOf(key, hostPod);
    // An answer counts for a pod that the cache has, and for one that it does not know yet.
    if (cached === undefined && !isExpected(memory, this.#monotonic())) delete memory.member;
    // Between two copies it is chosen by what the cache has.
    const isChosen = second === undefined || memory.member?.metadata.uid === cached?.metadata.uid;
    const memberPod = isChosen ? newest(cached, memory.member) : cached;
    const elsewhere = memberPod !== undefined && this.#hostKeyOf(memberPod) === undefined;
    if (hostPod === undefined && (memberPod === undefined || elsewhere)) {
      if (memberPod !== undefined) this.#nameWaiters.delete(keyOf(memberPod));
      this.#options.dependents.release(key);
      for (const uid of memory.hostDeletions ?? []) this.#goneHostPods.set(uid, true);
      this.#memories.forget(key);
      this.#overrides.forget(key);
      return undefined;
    }
    if (elsewhere) this.#nameWaiters.set(keyOf(memberPod), key);
    catchUp(memory, hostPod, memberPod, this.#monotonic());
    // Before anything is waited for: what is gone by then would be listed for ever.
    const copies = { hostPod, memberPod: elsewhere ? undefined : cached, second, sent: memory.deleteSent };
    const undeleted = this.#undeleted.look({ ...copies, frozen: this.#whyFrozen() });
    let unprepared: Next;
    if (hostPod !== undefined && memberPod !== undefined && runsFor(memberPod, hostPod)) {
      unprepared = await this.#overrides.prepare(hostPod, memberPod, signal);
    }
    const facts = { ...this.#factsOf(memory, hostPod), ...(second === undefined ? {} : { second }) };
    const action = decide(hostPod, memberPod, facts);
    if (action === ENDS_FIRST) this.#returned.heldBack(key);
    // Its host pod was out of sight, and is back: nobody has to decide about it any more.
    if (hostPod !== undefined && memberPod !== undefined && action.do !== 'collect' && action.do !== 'wait') {
      this.#letGo(memberPod);
    }
    const next = await this.#actor.perform(action, key, memory, signal);
    return soonest(next, this.#untilUnready(), unprepared, undeleted);
  }

  /** While a member is silent, but not yet for so long that its pods count as not ready: when that will be. */
  #untilUnready(): Next {
    const since = this.#options.member.unreachableSince();
    if (since === undefined) return undefined;
    const rest = since.monotonic + this.#options.podsUnreadyAfterMs() - this.#monotonic();
    return rest > 0 ? { requeueAfterMs: rest } : undefined;
  }

  /** Our member pods of that key. */
  #own(key: string): readonly Pod[] {
    const { member, nodeName } = this.#options;
    return member.pods.byIndex(HOST_POD_INDEX, `${nodeName}/${key}`);
  }

  /** Our member pod of that key; else whatever sits at its place in the member. */
  #copiesOf(key: string, hostPod: Pod | undefined): Copies {
    const { member, namespaces } = this.#options;
    const own = this.#own(key);
    if (own.length > 0) return chooseCopy(own, hostPod);
    const { namespace = '', name } = splitKey(key);
    const memberNamespace = namespaces.memberNamespaceOf(namespace);
    const memberPod = memberNamespace === undefined ? undefined : member.pods.get(keyFor(memberNamespace, name));
    return { memberPod, second: undefined };
  }

  /** Creations without an answer are for another namespace than the one in which the pod would be made now. */
  #isElsewhere({ place }: PodMemory, hostPod: Pod | undefined): boolean {
    const now = this.#options.namespaces.memberNamespaceOf(hostPod?.metadata.namespace ?? '');
    return place !== undefined && place.namespace !== now;
  }

  #whyFrozen(): string | undefined {
    const { hostPods, member, frozen } = this.#options;
    const why = frozen();
    if (why !== undefined) return why;
    if (!hostPods.hasSynced || !member.pods.hasSynced) return 'the caches are not complete yet';
    return this.#fencing.isRead ? undefined : 'it is not known yet what was ended while the member was out of service';
  }

  #factsOf(memory: PodMemory, hostPod: Pod | undefined): PodFacts {
    const { options, now } = { options: this.#options, now: this.#monotonic() };
    const { member } = options;
    const nowText = timestamp(this.#clock());
    const since = member.unreachableSince();
    const lost = since !== undefined && now - since.monotonic >= options.podsUnreadyAfterMs();
    const frozen = this.#whyFrozen();
    return {
      member: member.name,
      hostId: options.hostId,
      nodeName: options.nodeName,
      ...(frozen === undefined ? {} : { frozen }),
      fenced: options.hostPods.hasSynced && this.#fencing.isFenced(),
      endsFirst: () => this.#returned.comeFirst,
      reachable: member.reachable(),
      unreachableBecause: member.unreachableBecause(),
      ...(memory.created === undefined ? {} : { created: { overdue: isOverdue(memory, now) } }),
      ...(memory.departed === undefined ? {} : { departed: memory.departed }),
      ...(memory.unanswered === undefined ? {} : { unansweredMs: memory.unanswered.until - now }),
      unansweredElsewhere: memory.unanswered !== undefined && this.#isElsewhere(memory, hostPod),
      intentSettled: memory.intent?.open === false,
      hostDeletionSeen: (uid) =>
        memory.hostDeletions?.has(uid) === true || this.#goneHostPods.has(uid) || this.#fencing.isTold(uid),
      outdated: (hostPod, memberPod) => this.#overrides.isOutdated(hostPod, memberPod),
      hostStatus: (hostPod, memberPod) =>
        hostStatus(
          hostPod,
          memberPod,
          {
            member: member.name,
            network: options.network(),
            inSync: this.#overrides.isInSync(hostPod, memberPod),
            ...(lost && !isFinished(memberPod) ? { memberLost: { since: new Date(since.wall).toISOString() } } : {}),
          },
          nowText,
        ),
      ignored: (hostPod) => ignoresPod(hostPod, options.daemonSets()),
      hostAnnotations: (memberPod) => hostAnnotations(memberPod, { network: options.network() }),
      now: nowText,
    };
  }
}
