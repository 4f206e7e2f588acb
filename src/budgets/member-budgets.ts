import type { Logger } from 'pino';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import { LimitError } from '../kube/limit-error.ts';
import { pause } from '../kube/timers.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import { BudgetMemory } from './budget-memory.ts';
import type { BudgetMetrics } from './budget-metrics.ts';
import { budgetsFinding, type BudgetsFinding } from './budgets-finding.ts';
import { allowanceOf, claimed, type Claims, isWaitedFor, nextClaims } from './claims.ts';
import { type CopiesInNamespace, coveredPods, type CoveredPods } from './covered-pods.ts';
import type { HostBudget } from './host-budget.ts';
import type { HostBudgets } from './host-budgets.ts';
import { type MirrorStore, mirrorStore } from './mirror-store.ts';
import { MirrorWriter } from './mirror-writer.ts';

/** In ms. */
const WAITS = {
  /** What several pods bring is looked at together. */
  gather: 300,
  /** The member may evict more once that has been so for a while: what caches show may be behind. */
  settle: 3_000,
  /** A budget whose last copy is gone stays for so long: its pods are often replaced by others. */
  empty: 30_000,
};
/** While nothing may be written, in ms. */
const IDLE_MS = 5_000;
/** After a refusal nothing is tried for so long: it is the right that is missing, for all budgets. */
const REFUSED_MS = 60_000;
/** After one had no room in memory, in ms. */
const LIMIT_MS = 60_000;
/** For caches to show what was just written, in ms. */
const SOON = { requeueAfterMs: 250 };
/** Whether a member that ignores budgets still has some of ours is looked at so often, in ms. */
const POLL_MS = 1_000;
/** How many budgets of a member are worked on at the same time: nothing waits for it. */
const AT_ONCE = 4;
/** What the cluster-autoscaler puts on a node that it is about to remove. */
const AUTOSCALER_TAINT = 'ToBeDeletedByClusterAutoscaler';

export interface MemberBudgetsOptions {
  hostId: string;
  hostBudgets: HostBudgets;
  member: {
    readonly name: string;
    readonly client: KubeClient;
    readonly nodes: Pick<Informer<Node>, 'get' | 'on'>;
    readonly pods: Pick<Informer<Pod>, 'on'>;
  };
  mode: () => MemberClusterSpec['disruptionBudgets'];
  /** Pods of a namespace of the host that are on virtual nodes of the member. */
  hostPods: (namespace: string) => Iterable<Pod>;
  /** The host pod that a pod of the member runs for. */
  hostPodOf: (memberPod: Pod) => Pod | undefined;
  /** The copy for a host pod, by that pod's UID. */
  copyOf: (uid: string) => Pod | undefined;
  mayWrite: () => boolean;
  reachable: () => boolean;
  /** Whether there is a MemberCluster of that name, as far as is known. */
  knowsMember: (name: string) => boolean;
  events: Pick<EventRecorder, 'record'>;
  metrics: BudgetMetrics;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  waits?: typeof WAITS;
}

/**
 * PodDisruptionBudgets of the host in one member: where copies of their pods are, a budget there lets the member's own eviction API
 * refuse what the host would refuse. Several members share what the host allows by their claims on its budget (claims.ts): one
 * narrows its own budget before it gives up a claim, and widens it only after it has one.
 */
export class MemberBudgets {
  readonly #o: MemberBudgetsOptions;
  readonly #waits: typeof WAITS;
  readonly #queue: WorkQueue;
  readonly #memories = new Map<string, BudgetMemory>();
  readonly #writer: MirrorWriter;
  /** Budgets of the host that cover copies here. */
  readonly #concerned = new Set<string>();
  #mirrors: MirrorStore;
  #restsUntil = 0;
  #refusal: string | undefined;
  /** Budgets that were not brought up to date for lack of memory, by key, with the limit in words. */
  readonly #noRoom = new Map<string, string>();

  constructor(options: MemberBudgetsOptions) {
    this.#o = options;
    this.#waits = options.waits ?? WAITS;
    this.#mirrors = this.#newStore();
    const { member, queueMetrics, logger, hostId, events, metrics } = options;
    this.#writer = new MirrorWriter({ hostId, member: member.name, settleMs: this.#waits.settle, events, metrics });
    this.#queue = new WorkQueue({
      name: `budgets-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      metrics: queueMetrics,
    });
  }

  /** Works until the signal aborts; never rejects. All pods of the host in the member have to be known by then. */
  async run(signal: AbortSignal): Promise<void> {
    const { hostBudgets, member, metrics } = this.#o;
    const off = [
      hostBudgets.on((key) => this.#lookSoon(key)),
      member.pods.on({
        added: (pod) => this.#copyChanged(pod),
        updated: (pod) => this.#copyChanged(pod),
        deleted: (pod) => this.#copyChanged(pod),
      }),
      member.nodes.on({
        updated: (node, old) => {
          if (isDrained(node) !== isDrained(old)) this.#lookAtAll();
        },
      }),
    ];
    await Promise.all([this.#queue.run(signal), this.#follow(signal), this.#whenHostKnown(signal)]);
    for (const end of off) end();
    metrics.mirrors.remove({ member: member.name });
  }

  /** A pod of the host on a virtual node of the member came, changed or went. */
  hostPodChanged(pod: Pod, before?: Pod): void {
    const covering = this.#o.hostBudgets.covering(pod);
    if (before !== undefined && before.metadata.labels !== pod.metadata.labels)
      covering.push(...this.#o.hostBudgets.covering(before));
    for (const { key } of covering) this.#lookSoon(key);
  }

  /** The spec of the MemberCluster was edited. */
  changed(): void {
    this.#lookAtAll();
  }

  /** Those that are in the member, as far as is known. */
  inMember(): Iterable<{ namespace: string; name: string }> {
    return this.#mirrors.values();
  }

  /** Undefined while there is nothing to say. Cheap. */
  finding(): BudgetsFinding | undefined {
    const { mode, hostBudgets, member } = this.#o;
    return budgetsFinding({
      member: member.name,
      mode: mode(),
      hostProblem: hostBudgets.synced ? undefined : hostBudgets.problem,
      concerned: this.#concerned.size,
      limit: this.#mirrors.limit ?? [...this.#noRoom.values()][0],
      problem: this.#refusal ?? (this.#mirrors.synced ? undefined : this.#mirrors.problem),
      synced: this.#mirrors.synced,
    });
  }

  #newStore(): MirrorStore {
    const { member, hostId, logger, informerMetrics } = this.#o;
    return mirrorStore({
      client: member.client,
      hostId,
      member: member.name,
      changed: (key) => this.#lookSoon(key),
      logger,
      metrics: informerMetrics,
    });
  }

  /** While budgets are ignored, only until those of before are gone. */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const child = childSignal(signal);
      const store = this.#newStore();
      this.#mirrors = store;
      const running = store.run(child.signal);
      const known = this.#whenKnown(store, child.signal);
      const isUsed = (): boolean =>
        this.#o.mode() === 'Mirror' || (store.synced ? store.size > 0 : store.problem === undefined);
      while (isUsed() && !signal.aborted) {
        this.#o.metrics.mirrors.set({ member: this.#o.member.name }, store.size);
        await pause(POLL_MS, signal);
      }
      child.abort();
      child.release();
      await Promise.all([running, known]);
      while (this.#o.mode() === 'Ignore' && !signal.aborted) await pause(POLL_MS, signal);
    }
  }

  async #whenKnown(store: MirrorStore, signal: AbortSignal): Promise<void> {
    while (!store.synced && !signal.aborted) await pause(POLL_MS / 10, signal);
    this.#lookAtAll();
  }

  async #whenHostKnown(signal: AbortSignal): Promise<void> {
    try {
      await this.#o.hostBudgets.whenSynced(signal);
      this.#lookAtAll();
    } catch {
      // Stopped before.
    }
  }

  #lookAtAll(): void {
    for (const key of new Set([...this.#o.hostBudgets.keys(), ...this.#mirrors.subjects()])) this.#lookSoon(key);
  }

  #lookSoon(key: string): void {
    this.#queue.addAfter(key, this.#waits.gather);
  }

  #copyChanged(memberPod: Pod): void {
    const hostPod = this.#o.hostPodOf(memberPod);
    if (hostPod !== undefined) this.hostPodChanged(hostPod);
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hostBudgets, mode, mayWrite } = this.#o;
    if (!mayWrite()) return { requeueAfterMs: IDLE_MS };
    // It comes again when they are known.
    if (!hostBudgets.synced) return undefined;
    const budget = hostBudgets.get(key);
    const covered = budget === undefined || mode() === 'Ignore' ? undefined : this.#covered(budget);
    if (covered === undefined || covered.copies === 0) this.#concerned.delete(key);
    else this.#concerned.add(key);
    if (!this.#mirrors.synced) return undefined;
    const rest = this.#restsUntil - monotonic();
    if (rest > 0) return { requeueAfterMs: rest };
    try {
      if (!this.#o.reachable()) return await this.#whileUnreachable(budget, signal);
      if (budget === undefined || covered === undefined) {
        this.#noRoom.delete(key);
        return await this.#end(key, budget, signal);
      }
      const again = await this.#keep(budget, covered, signal);
      this.#refusal = undefined;
      this.#noRoom.delete(key);
      return again;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
      if (error instanceof LimitError) return this.#limited(key, error.message);
      if (!isForbidden(error) || /being terminated/.test(error.status.message ?? '')) throw error;
      return this.#refused(describeError(error));
    }
  }

  /** What it may evict it may evict; but nobody has to wait for it. */
  async #whileUnreachable(budget: HostBudget | undefined, signal: AbortSignal): Promise<HandlerResult> {
    const { name } = this.#o.member;
    if (budget?.claims.get(name)?.allowed === 0) await this.#claim(budget, without(budget.claims, name), signal);
    return { requeueAfterMs: IDLE_MS };
  }

  #covered(budget: HostBudget): CoveredPods {
    const { hostPods, copyOf, member } = this.#o;
    return coveredPods({
      hostPods: [...hostPods(budget.namespace)].filter(({ metadata }) => budget.covers(metadata.labels)),
      mirrors: this.#mirrors.of(budget.key),
      copyOf,
      isDrained: (name) => {
        const node = member.nodes.get(name);
        return node !== undefined && isDrained(node);
      },
    });
  }

  async #keep(budget: HostBudget, covered: CoveredPods, signal: AbortSignal): Promise<HandlerResult> {
    const { key } = budget;
    const now = monotonic();
    const memory = this.#memories.get(key) ?? new BudgetMemory();
    this.#memories.set(key, memory);
    const used = covered.inFlight + memory.unsettled(budget, covered, now);
    const emptyMs = memory.lasting('empty', covered.copies === 0, now);
    if (covered.copies === 0) {
      const isUsed = this.#mirrors.of(key).length > 0 || budget.claims.has(this.#o.member.name);
      if (used > 0) return { requeueAfterMs: this.#waits.settle };
      if (!isUsed) this.#memories.delete(key);
      if (!isUsed || emptyMs >= this.#waits.empty) return isUsed ? await this.#end(key, budget, signal) : undefined;
      return { requeueAfterMs: this.#waits.empty - emptyMs };
    }
    const { name: member } = this.#o.member;
    const claims = this.#known(budget.claims);
    const own = claims.get(member)?.allowed ?? 0;
    const next = nextClaims({
      member,
      claims,
      allowed: budget.allowed,
      pods: covered.copies,
      expected: budget.expected,
      draining: covered.draining,
      used,
      waitedMs: memory.lasting('waited for', own > 0 && isWaitedFor(claims, member), now),
      overMs: memory.lasting('over', claimed(claims) > budget.allowed, now),
    });
    const allowance = Math.min(allowanceOf(claims, member, budget.allowed), allowanceOf(next, member, budget.allowed));
    const evictable = Math.max(0, allowance - used);
    let again = used > 0 ? this.#waits.settle : Infinity;
    let left = evictable;
    for (const [namespace, copies] of byHealth(covered)) {
      const there = { namespace, copies, evictable: left, memory, now };
      again = Math.min(again, await this.#writer.keep(this.#mirrors, budget, there, signal));
      left = 0;
    }
    again = Math.min(again, await this.#leaveEmpty(budget, covered, memory, signal));
    const isTemporary = claimed(claims) > budget.allowed || isWaitedFor(claims, member);
    if (isTemporary) again = Math.min(again, IDLE_MS);
    const wantsMore = (next.get(member)?.allowed ?? 0) > own && !covered.draining;
    const wantedMs = memory.lasting('more', wantsMore, now);
    if (wantsMore && wantedMs < this.#waits.settle) again = Math.min(again, this.#waits.settle - wantedMs);
    else if (next !== budget.claims) {
      await this.#claim(budget, next, signal);
      return SOON;
    }
    return Number.isFinite(again) ? { requeueAfterMs: Math.max(again, this.#waits.gather) } : undefined;
  }

  /**
   * Takes the budget away where no copy is left, after a while, as where pods of an edited mapping have gone to another namespace. Returns
   * after how long to look again, in ms.
   */
  async #leaveEmpty(
    { key }: HostBudget,
    covered: CoveredPods,
    memory: BudgetMemory,
    signal: AbortSignal,
  ): Promise<number> {
    let again = Infinity;
    for (const mirror of this.#mirrors.of(key)) {
      const { namespace } = mirror;
      const isEmpty = !covered.namespaces.has(namespace);
      const emptyMs = memory.lasting(`empty in ${namespace}`, isEmpty, monotonic());
      if (!isEmpty) continue;
      if (emptyMs >= this.#waits.empty) await this.#writer.remove(this.#mirrors, mirror, signal);
      else again = Math.min(again, this.#waits.empty - emptyMs);
    }
    return again;
  }

  /** Of members that are gone nobody evicts by a claim. */
  #known(claims: Claims): Claims {
    const gone = [...claims.keys()].filter((name) => name !== this.#o.member.name && !this.#o.knowsMember(name));
    return gone.length === 0 ? claims : new Map([...claims].filter(([name]) => !gone.includes(name)));
  }

  /** Nothing of the budget is left here: the member may evict as it likes. */
  async #end(key: string, budget: HostBudget | undefined, signal: AbortSignal): Promise<HandlerResult> {
    const { name } = this.#o.member;
    await this.#writer.removeAll(this.#mirrors, key, signal);
    this.#memories.delete(key);
    if (budget === undefined || !budget.claims.has(name)) return undefined;
    await this.#claim(budget, without(this.#known(budget.claims), name), signal);
    return undefined;
  }

  async #claim(budget: HostBudget, claims: Claims, signal: AbortSignal): Promise<void> {
    const { hostBudgets, metrics, member } = this.#o;
    metrics.writes.inc({ member: member.name, object: 'claim' });
    await hostBudgets.writeClaims(budget, claims, signal);
  }

  #limited(key: string, words: string): HandlerResult {
    if (!this.#noRoom.has(key)) this.#o.logger.warn({ key }, `a disruption budget is not mirrored: ${words}`);
    this.#noRoom.set(key, words);
    return { requeueAfterMs: LIMIT_MS };
  }

  #refused(words: string): HandlerResult {
    if (this.#refusal === undefined) this.#o.logger.warn(`disruption budgets are not mirrored: ${words}`);
    this.#refusal = words;
    this.#restsUntil = monotonic() + REFUSED_MS;
    return { requeueAfterMs: REFUSED_MS };
  }
}

function without(claims: Claims, member: string): Claims {
  return new Map([...claims].filter(([name]) => name !== member));
}

/** The namespace with most of them first: it has all that may be evicted. */
function byHealth({ namespaces }: CoveredPods): [string, CopiesInNamespace][] {
  return [...namespaces].toSorted(([a, one], [b, other]) => other.healthy - one.healthy || (a < b ? -1 : 1));
}

/** By its owner, or by the cluster-autoscaler. */
function isDrained({ spec }: Node): boolean {
  return spec?.unschedulable === true || spec?.taints?.some(({ key }) => key === AUTOSCALER_TAINT) === true;
}
