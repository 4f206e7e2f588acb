import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../api/wire.ts';
import type { Decision, PlacementFacts } from '../placement/choice.ts';
import { clusterInWords } from '../placement/cluster.ts';
import { placementFor } from '../placement/gang-order.ts';
import { nextPlace } from '../placement/next-place.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { refusalInWords } from '../placement/refusal.ts';
import { Confirmation } from './confirmation.ts';
import { failing, passing } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult, HostPriority } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import { nodePriorities } from './node-priorities.ts';
import type { RankedNode } from './node-priorities.ts';
import { asksForItself } from './node-demands.ts';
import type { PlacementQuestions, Split } from './placement-questions.ts';
import { Reservations } from './reservations.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import type { WaitingPods } from './waiting-pods.ts';
import type { Rules, WorkloadBook } from './workload-book.ts';

export interface ExtenderOptions {
  view: HostView;
  workloads: WorkloadBook;
  questions: PlacementQuestions;
  /** Told of every pod that has to wait because of an answer from here. */
  waiting: Pick<WaitingPods, 'answered' | 'lookAgainAt'>;
  /** Told what is wrong with annotations that were passed over. */
  annotationProblem: (chain: OwnerChain, problem: string) => void;
  reservations: Reservations;
  metrics: SchedulerMetrics;
  /** Wall clock in ms. */
  clock: () => number;
}

/** What a decision came to: the cluster, or none while the pod has to wait. */
interface Answer {
  readonly cluster: string | undefined;
  readonly result: FilterResult;
}

/**
 * Answers kube-scheduler from memory: which nodes may take a pod now. A pod with rules gets exactly one place, all of its
 * nodes, and that place is set aside at once; what the scheduler binds is what was decided.
 */
export class Extender {
  readonly #o: ExtenderOptions;
  readonly #reservations: Reservations;
  readonly #confirmation: Confirmation;

  constructor(options: ExtenderOptions) {
    this.#o = options;
    this.#confirmation = new Confirmation(options);
    this.#reservations = options.reservations;
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
    await view.owners.whenKnown(pod);
    const chain = view.owners.chainOf(pod);
    // Pods of a DaemonSet are made for their node.
    if (chain[1]?.kind === 'DaemonSet') return passing(nodeNames);
    const uid = pod.metadata.uid ?? '';
    view.seats.forget(uid);
    this.#reservations.expire();
    this.#reservations.release(uid);
    const split = this.#split(nodeNames);
    const selection = view.policies.select(chain, view.namespaceLabels(pod.metadata.namespace ?? ''));
    if (selection.problem !== undefined) this.#o.annotationProblem(chain, selection.problem);
    const { chosen } = selection;
    const result = chosen === undefined ? this.#withoutRules(pod, split) : this.#byRules(pod, chain, chosen, split);
    const { cluster } = result;
    const outcome = cluster === undefined ? 'wait' : cluster === LOCAL ? 'local' : 'member';
    metrics.decisions.inc({ rules: chosen?.source.kind ?? 'None', outcome });
    this.#o.waiting.answered(pod, cluster !== undefined);
    this.#confirmation.note(pod, result.result);
    return result.result;
  }

  /** For a scheduler that goes on without an answer of {@link filter}: see confirmation.ts. */
  confirm(args: ExtenderArgs): FilterResult {
    const result = this.#confirmation.confirm(args);
    if (result.NodeNames.length === 0) this.#o.waiting.answered(args.pod, false);
    return result;
  }

  /** Of several virtual nodes those of the better member come first; see {@link nodePriorities}. */
  prioritize({ pod, nodeNames }: ExtenderArgs): HostPriority[] {
    const { questions, view } = this.#o;
    const split = this.#split(nodeNames);
    const chain = view.owners.chainOf(pod);
    const { chosen } = view.policies.select(chain, view.namespaceLabels(pod.metadata.namespace ?? ''));
    const ranked = new Map<string, RankedNode>();
    for (const { score, nodes } of questions.scores(pod, chain, chosen, split)) {
      for (const { name, slots } of nodes) ranked.set(name, { name, score, slots });
    }
    return nodePriorities(
      nodeNames.map((name) => {
        const fallback = view.nodes.memberOf(name) === undefined ? undefined : Number.NEGATIVE_INFINITY;
        return ranked.get(name) ?? { name, score: fallback, slots: 0 };
      }),
    );
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

  /** No policy and no label says that the pod may leave the host: it goes where it says itself, if it fits there. */
  #withoutRules(pod: Pod, { local, virtual }: Split): Answer {
    const { view, questions } = this.#o;
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
      const { room, nodes } = questions.room(pod, name, wanted, 1);
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

  #byRules(pod: Pod, chain: OwnerChain, rules: Rules, split: Split): Answer {
    const { view, workloads, questions } = this.#o;
    const { facts, members, identity } = questions.ask(pod, chain, rules, split);
    const decision = nextPlace({ ...facts, placement: placementFor(pod, facts.placement) });
    workloads.decided({ chain, identity, pod, rules, decision });
    const [place] = decision.allowed;
    if (place === undefined) {
      for (const at of timesOfChange(facts, pod)) this.#o.waiting.lookAgainAt(at);
      return { cluster: undefined, result: failing(this.#reasons(split, decision)) };
    }
    const { cluster } = place;
    const nodes = members.get(cluster)?.nodes ?? [];
    view.seats.assume(pod, cluster, Reservations.FOR_MS);
    const [best] = nodes;
    if (best !== undefined) this.#reservations.reserve(pod.metadata.uid ?? '', best.name, best.request);
    return { cluster, result: passing(cluster === LOCAL ? split.local : nodes.map(({ name }) => name)) };
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

/** When a pod that waits may be told something else only because time goes by, in ms. */
function timesOfChange({ placement, avoided, now }: PlacementFacts, pod: Pod): number[] {
  const came = Date.parse(pod.metadata.creationTimestamp ?? '');
  const times = avoided.map(({ until }) => until);
  for (const { tiers } of placement.groups) {
    let wait = 0;
    for (const { tryNextAfterMs } of tiers) {
      wait += tryNextAfterMs;
      times.push(came + wait);
    }
  }
  return times.filter((time) => time > now);
}
