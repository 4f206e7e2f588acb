import type { Logger } from 'pino';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isAlreadyExists, isConflict, isForbidden, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import { matchesLabels } from '../kube/label-selector.ts';
import { pause } from '../kube/timers.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { type HandlerResult, WorkQueue } from '../kube/workqueue.ts';
import { BudgetMemory } from './budget-memory.ts';
import type { BudgetMetrics } from './budget-metrics.ts';
import { allowanceOf, claimed, type Claims, isWaitedFor, nextClaims } from './claims.ts';
import { type CopiesInNamespace, coveredPods, type CoveredPods } from './covered-pods.ts';
import { wantedFloor } from './floor.ts';
import type { HostBudget } from './host-budget.ts';
import type { HostBudgets } from './host-budgets.ts';
import { MirrorStore } from './mirror-store.ts';
import { mirroredBudget, type MirroredBudget, otherName } from './mirrored-budget.ts';

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
/** For caches to show what was just written, in ms. */
const SOON = { requeueAfterMs: 250 };
/** Whether a member that ignores budgets still has some of ours is looked at so often, in ms. */
const POLL_MS = 1_000;
/** How many budgets of a member are worked on at the same time: nothing waits for it. */
const AT_ONCE = 4;
/** What the cluster-autoscaler puts on a node that it is about to remove. */
const AUTOSCALER_TAINT = 'ToBeDeletedByClusterAutoscaler';

/** What is to be said of it on the MemberCluster. */
export interface BudgetsFinding {
  status: 'True' | 'False';
  reason: 'Mirrored' | 'Ignored' | 'BudgetRightMissing' | 'HostBudgetsUnknown';
  message: string;
}

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
  /** Budgets of the host whose name somebody else has in the member. */
  readonly #taken = new Set<string>();
  /** Budgets of the host that cover copies here. */
  readonly #concerned = new Set<string>();
  #mirrors: MirrorStore;
  #restsUntil = 0;
  #refusal: string | undefined;

  constructor(options: MemberBudgetsOptions) {
    this.#o = options;
    this.#waits = options.waits ?? WAITS;
    this.#mirrors = this.#newStore();
    const { member, queueMetrics, logger } = options;
    this.#queue = new WorkQueue({
      name: `budgets-${member.name}`,
      concurrency: AT_ONCE,
      handler: async (key, signal) => await this.#look(key, signal),
      backoff: { baseMs: 500, maxMs: 60_000 },
      logger,
      ...(queueMetrics === undefined ? {} : { metrics: queueMetrics }),
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

  /** Undefined while there is nothing to say. Cheap. */
  finding(): BudgetsFinding | undefined {
    const { mode, hostBudgets, member } = this.#o;
    if (mode() === 'Ignore') {
      const message = 'Evictions made in the member do not wait for PodDisruptionBudgets of the host.';
      return { status: 'False', reason: 'Ignored', message };
    }
    if (!hostBudgets.synced && hostBudgets.problem !== undefined) {
      const message = `PodDisruptionBudgets of the host are not known in the member, as they cannot be read: ${hostBudgets.problem}. Apply manifests/rbac.yaml in the host. It is tried again by itself.`;
      return { status: 'False', reason: 'HostBudgetsUnknown', message };
    }
    if (this.#concerned.size === 0) return undefined;
    const problem = this.#refusal ?? (this.#mirrors.synced ? undefined : this.#mirrors.problem);
    if (problem !== undefined) {
      const message =
        `Evictions made in the member do not wait for PodDisruptionBudgets of the host: cluster "${member.name}" refuses to keep them (${problem}). ` +
        'Its owner applies manifests/member/read.yaml anew, or set spec.disruptionBudgets: Ignore. It is tried again by itself.';
      return { status: 'False', reason: 'BudgetRightMissing', message };
    }
    const message = 'Evictions made in the member wait for PodDisruptionBudgets of the host.';
    return this.#mirrors.synced ? { status: 'True', reason: 'Mirrored', message } : undefined;
  }

  #newStore(): MirrorStore {
    const { member, hostId, logger, informerMetrics } = this.#o;
    return new MirrorStore({
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
    for (const key of new Set([...this.#o.hostBudgets.keys(), ...this.#mirrors.hostKeys()])) this.#lookSoon(key);
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
      if (budget === undefined || covered === undefined) return await this.#end(key, budget, signal);
      const again = await this.#keep(budget, covered, signal);
      this.#refusal = undefined;
      return again;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return SOON;
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
    const { selector } = budget;
    return coveredPods({
      hostPods: [...hostPods(budget.namespace)].filter(({ metadata }) => matchesLabels(selector, metadata.labels)),
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
      again = Math.min(again, await this.#mirror(budget, { namespace, copies, evictable: left, memory, now }, signal));
      left = 0;
    }
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

  /** Of members that are gone nobody evicts by a claim. */
  #known(claims: Claims): Claims {
    const gone = [...claims.keys()].filter((name) => name !== this.#o.member.name && !this.#o.knowsMember(name));
    return gone.length === 0 ? claims : new Map([...claims].filter(([name]) => !gone.includes(name)));
  }

  /** Returns after how long to look again, in ms. */
  async #mirror(
    budget: HostBudget,
    at: { namespace: string; copies: CopiesInNamespace; evictable: number; memory: BudgetMemory; now: number },
    signal: AbortSignal,
  ): Promise<number> {
    const { namespace, copies, evictable, memory, now } = at;
    const mirrors = this.#mirrors.of(budget.key);
    const [mirror, ...more] = mirrors.filter((one) => one.namespace === namespace);
    for (const one of more) await this.#write(async () => await this.#mirrors.remove(one, signal));
    const current = mirror === undefined || mirror.minAvailable < 0 ? undefined : mirror.minAvailable;
    const { uids, healthy } = copies;
    const floor = wantedFloor({ copies: uids.size, healthy, evictable, isMet: budget.isMet, current });
    const widerMs = memory.lasting(`wider in ${namespace}`, floor.when === 'later', now);
    const isDue = floor.when === 'later' && widerMs >= this.#waits.settle;
    const isIncomplete =
      mirror !== undefined &&
      (mirror.unhealthyPodEvictionPolicy !== budget.unhealthyPodEvictionPolicy ||
        [...uids].some((uid) => !mirror.uids.has(uid)));
    if (floor.when === 'now' || isDue || isIncomplete) {
      const before = current ?? 0;
      const kept = evictable > 0 ? before : Math.max(before, uids.size);
      const minAvailable = floor.when === 'now' || isDue ? floor.minAvailable : kept;
      await this.#put(budget, mirror, { namespace, uids, minAvailable }, signal);
      return floor.when === 'later' && !isDue ? this.#waits.settle - widerMs : Infinity;
    }
    return floor.when === 'later' ? this.#waits.settle - widerMs : Infinity;
  }

  async #put(
    budget: HostBudget,
    mirror: MirroredBudget | undefined,
    wanted: { namespace: string; uids: ReadonlySet<string>; minAvailable: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { hostId } = this.#o;
    const { name: member } = this.#o.member;
    const { namespace } = wanted;
    const place = `${namespace}/${budget.key}`;
    const other = otherName(budget, hostId, member);
    const name = mirror?.name ?? (this.#taken.has(place) ? other : budget.name);
    const made = mirroredBudget({ budget, hostId, member, name, ...wanted });
    await this.#write(async () => {
      if (mirror !== undefined) {
        await this.#mirrors.replace(mirror, made, signal);
        return;
      }
      try {
        await this.#mirrors.create(made, signal);
      } catch (error) {
        if (!isAlreadyExists(error) || name === other) throw error;
        if (await this.#mirrors.isOurs(budget.key, namespace, name, signal)) throw error;
        this.#taken.add(place);
        this.#tellTaken(budget, namespace, other);
        await this.#mirrors.create({ ...made, metadata: { ...made.metadata, name: other } }, signal);
      }
    });
  }

  #tellTaken({ namespace, name, uid }: HostBudget, memberNamespace: string, other: string): void {
    const { events, member } = this.#o;
    const object = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace, name, uid };
    const message =
      `Cluster "${member.name}" has a PodDisruptionBudget ${memberNamespace}/${name} of its own, which stays as it is. ` +
      `This one is called ${other} there. A pod that both cover cannot be evicted there at all.`;
    events.record(object, 'Warning', 'BudgetNameTaken', message);
  }

  /** Nothing of the budget is left here: the member may evict as it likes. */
  async #end(key: string, budget: HostBudget | undefined, signal: AbortSignal): Promise<HandlerResult> {
    const { name } = this.#o.member;
    for (const mirror of this.#mirrors.of(key))
      await this.#write(async () => await this.#mirrors.remove(mirror, signal));
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

  async #write(send: () => Promise<void>): Promise<void> {
    const { metrics, member } = this.#o;
    metrics.writes.inc({ member: member.name, object: 'mirror' });
    await send();
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
