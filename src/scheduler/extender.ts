import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../api/wire.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Room } from '../placement/candidates.ts';
import type { Decision } from '../placement/choice.ts';
import { clusterInWords } from '../placement/cluster.ts';
import { nextPlace } from '../placement/next-place.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { refusalInWords } from '../placement/refusal.ts';
import type { Selection } from '../placement/policy-selection.ts';
import { failing, MAX_SCORE, passing } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult, HostPriority } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import { memberRoom } from './member-rooms.ts';
import type { CapacityOf, MemberRoom } from './member-rooms.ts';
import { asksForItself, choosesNodes } from './node-demands.ts';
import { Reservations } from './reservations.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import type { WorkloadBook } from './workload-book.ts';

/** A pod can be heard of before its owner; so long it is waited for, in ms. */
const OWNER_WAIT_MS = 500;

export interface ExtenderOptions {
  view: HostView;
  workloads: WorkloadBook;
  capacityOf: CapacityOf;
  metrics: SchedulerMetrics;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

interface Split {
  readonly local: readonly string[];
  /** By member. */
  readonly virtual: ReadonlyMap<string, readonly string[]>;
}

type Rules = NonNullable<Selection['chosen']>;

/**
 * Answers kube-scheduler from memory: which nodes may take a pod now. A pod with rules gets exactly one place, all of its
 * nodes, and that place is set aside at once; what the scheduler binds is what was decided.
 */
export class Extender {
  readonly #o: ExtenderOptions;
  readonly #reservations: Reservations;

  constructor(options: ExtenderOptions) {
    this.#o = options;
    this.#reservations = new Reservations(options.capacityOf, options.clock);
    options.view.onPod({
      changed: (pod) => this.#reservations.podSeen(pod),
      gone: (pod) => this.#reservations.release(pod.metadata.uid ?? ''),
    });
  }

  notReady(): string | undefined {
    return this.#o.view.hasSynced ? undefined : (this.#o.view.problem ?? 'the caches are not complete yet');
  }

  async filter({ pod, nodeNames }: ExtenderArgs): Promise<FilterResult> {
    const { view, metrics } = this.#o;
    await view.owners.whenKnown(pod, OWNER_WAIT_MS);
    const chain = view.owners.chainOf(pod);
    // Pods of a DaemonSet are made for their node.
    if (chain[1]?.kind === 'DaemonSet') return passing(nodeNames);
    const uid = pod.metadata.uid ?? '';
    view.seats.forget(uid);
    this.#reservations.release(uid);
    const split = this.#split(nodeNames);
    const selection = view.policies.select(chain, view.namespaceLabels(pod.metadata.namespace ?? ''));
    if (selection.problem !== undefined) this.#o.workloads.annotationProblem(chain, selection.problem);
    const { chosen } = selection;
    const result = chosen === undefined ? this.#withoutRules(pod, split) : this.#byRules(pod, chain, chosen, split);
    const { cluster, result: answer } = result;
    const outcome = cluster === undefined ? 'wait' : cluster === LOCAL ? 'local' : 'member';
    metrics.decisions.inc({ rules: chosen?.source.kind ?? 'None', outcome });
    return answer;
  }

  /**
   * Of several virtual nodes the roomier is better; the host's own nodes come before all of them. How they stand among
   * themselves is left to the scheduler.
   */
  prioritize({ pod, nodeNames }: ExtenderArgs): HostPriority[] {
    const slots = new Map<string, number>();
    for (const [member, asked] of this.#split(nodeNames).virtual) {
      for (const { name, slots: count } of this.#room(pod, member, asked).nodes) slots.set(name, count);
    }
    const most = Math.max(1, ...slots.values());
    return nodeNames.map((Host) => {
      if (this.#o.view.nodes.memberOf(Host) === undefined) return { Host, Score: MAX_SCORE };
      return { Host, Score: Math.floor(((MAX_SCORE - 1) * (slots.get(Host) ?? 0)) / most) };
    });
  }

  #split(nodeNames: readonly string[]): Split {
    const local: string[] = [];
    const virtual = new Map<string, string[]>();
    for (const name of nodeNames) {
      const member = this.#o.view.nodes.memberOf(name);
      if (member === undefined) local.push(name);
      else virtual.set(member, [...(virtual.get(member) ?? []), name]);
    }
    return { local, virtual };
  }

  #room(pod: Pod, member: string, asked: readonly string[], upTo?: number): MemberRoom {
    const { view, capacityOf } = this.#o;
    const all = view.nodes.virtualNodesOf(member);
    return memberRoom({ pod, member, asked, all, ...(upTo === undefined ? {} : { upTo }) }, view.nodes, capacityOf);
  }

  /** No policy and no label says that the pod may leave the host: it goes where it says itself, if it fits there. */
  #withoutRules(pod: Pod, { local, virtual }: Split): { cluster: string | undefined; result: FilterResult } {
    const { view } = this.#o;
    const names = [...local];
    const reasons: Record<string, string> = {};
    let member: string | undefined;
    for (const [name, asked] of virtual) {
      const wanted = asked.filter((one) => {
        const node = view.nodes.nodes.get(one);
        return node !== undefined && asksForItself(pod, node, view.namespaceLabels(pod.metadata.namespace ?? ''));
      });
      for (const one of asked) {
        if (!wanted.includes(one))
          reasons[one] = `${clusterInWords(name)}: nothing says that the pod may leave the host`;
      }
      if (wanted.length === 0) continue;
      const { room, nodes } = this.#room(pod, name, wanted, 1);
      names.push(...nodes.map((one) => one.name));
      if (nodes.length > 0) member ??= name;
      const why = room.impossible ?? room.why ?? 'it has no room for the pod';
      for (const one of wanted) {
        if (!nodes.some((fitting) => fitting.name === one)) reasons[one] = `${clusterInWords(name)}: ${why}`;
      }
    }
    if (names.length === 0) return { cluster: undefined, result: failing(reasons) };
    return { cluster: local.length > 0 ? LOCAL : member, result: passing(names) };
  }

  #byRules(
    pod: Pod,
    chain: OwnerChain,
    rules: Rules,
    split: Split,
  ): { cluster: string | undefined; result: FilterResult } {
    const { view, workloads, clock } = this.#o;
    const identity = workloadOf(chain);
    const rooms = new Map<string, Room>([[LOCAL, this.#localRoom(pod, split.local)]]);
    const memberRooms = new Map<string, MemberRoom>();
    for (const { name, unavailable } of view.nodes.clusters()) {
      if (name === LOCAL || unavailable !== undefined) continue;
      const found = this.#room(pod, name, split.virtual.get(name) ?? []);
      memberRooms.set(name, found);
      rooms.set(name, found.room);
    }
    const now = clock();
    const decision = nextPlace({
      placement: rules.placement,
      clusters: view.nodes.clusters(),
      workload: {
        uid: identity.object.metadata.uid,
        replicas: identity.replicas,
        pods: view.seats.counts(view.seatGroupsOf(identity.object)),
      },
      pod: {
        revision: identity.revision,
        tolerations: pod.spec.tolerations ?? [],
        waitedMs: now - Date.parse(pod.metadata.creationTimestamp ?? timestamp(now)),
      },
      rooms,
      avoided: workloads.avoided(identity.object),
      remembered: workloads.plan(identity.object),
      signals: new Map(),
      now,
    });
    workloads.decided({ chain, identity, pod, rules, decision });
    const [place] = decision.allowed;
    if (place === undefined) return { cluster: undefined, result: failing(this.#reasons(split, decision)) };
    const { cluster } = place;
    const nodes = memberRooms.get(cluster)?.nodes ?? [];
    view.seats.assume(pod, cluster, Reservations.FOR_MS);
    const [best] = nodes;
    if (best !== undefined) this.#reservations.reserve(pod.metadata.uid ?? '', best.name, best.request);
    return { cluster, result: passing(cluster === LOCAL ? split.local : nodes.map(({ name }) => name)) };
  }

  /** The scheduler has looked at every node of the host itself: what passed has room. */
  #localRoom(pod: Pod, local: readonly string[]): Room {
    if (local.length > 0) return { fits: undefined };
    const why = 'no node passes the checks of the scheduler itself';
    if (!choosesNodes(pod)) return { fits: 0, why };
    return this.#o.view.nodes.someRealNodeIsChosenBy(pod)
      ? { fits: 0, why }
      : { fits: 0, impossible: 'the node selector or node affinity of the pod leaves all of its nodes out' };
  }

  #reasons({ local, virtual }: Split, { refusals }: Decision): Record<string, string> {
    const words = new Map(refusals.map((refusal) => [refusal.cluster, refusalInWords(refusal)]));
    const reasons: Record<string, string> = {};
    const tell = (cluster: string, nodes: readonly string[]): void => {
      const text = words.get(cluster) ?? `${clusterInWords(cluster)}: the policy does not choose it`;
      for (const node of nodes) reasons[node] = text;
    };
    tell(LOCAL, local);
    for (const [member, nodes] of virtual) tell(member, nodes);
    return reasons;
  }
}
