import { LOCAL } from '../api/cluster-tiers.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Candidate, Victims } from '../capacity/victims.ts';
import type { Pod } from '../kube/core-v1.ts';
import { placementFor } from '../placement/gang-order.ts';
import { nextPlace } from '../placement/next-place.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { isMadeForItsNode } from './daemon-pod.ts';
import { evicting, type NodeVictims, type PreemptionArgs, type PreemptionResult } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import type { CapacityOf } from './member-fit.ts';
import { asksForItself } from './node-demands.ts';
import type { Nominees } from './nominees.ts';
import { type PlacementQuestions, type Split, splitByMember } from './placement-questions.ts';
import type { Rules } from '../placement/policy-selection.ts';

/** The PodDisruptionBudgets of the host. */
export interface BudgetsPort {
  readonly synced: boolean;
  /** Those that cover a pod, and how many evictions each grants now. */
  covering(pod: Pod): readonly { readonly key: string; readonly allowed: number }[];
}

export interface PreemptionOptions {
  readonly view: HostView;
  readonly questions: PlacementQuestions;
  readonly capacityOf: CapacityOf;
  readonly budgets: BudgetsPort;
  readonly nominees: Nominees;
}

type VictimsByNode = Map<string, NodeVictims>;

/**
 * Answers kube-scheduler which pods it may evict for one that finds no place (verb `preempt`). On nodes of the host those that it
 * has found itself, if the rules let the pod run there; behind a virtual node those whose leaving makes room on one node of the
 * member. Where evictions would not bring the pod to a place, its node is left out, and nothing is evicted there.
 */
export class Preemption {
  readonly #o: PreemptionOptions;

  constructor(options: PreemptionOptions) {
    this.#o = options;
  }

  async preempt({ pod, victims }: PreemptionArgs): Promise<PreemptionResult> {
    const { view, nominees } = this.#o;
    const missing = await view.owners.whenKnown(pod);
    const chain = view.owners.chainOf(pod);
    if (isMadeForItsNode(pod, chain) || view.nodes.anyVirtualNode() === undefined) return evicting(victims);
    // By which rules it lives is not known yet, or others make way already; it is asked again.
    if (missing !== undefined || nominees.waitsForVictims(pod)) return evicting(new Map());
    const split = splitByMember(view.nodes, victims.keys());
    const { chosen } = view.policies.select(chain, this.#labelsOf(pod));
    const found = nominees.whileLowerStandAside(pod, () => {
      const behind = this.#behindVirtualNodes(pod, split, victims);
      return chosen === undefined
        ? this.#withoutRules(pod, split, behind)
        : this.#byRules(pod, { chain, rules: chosen, split, behind });
    });
    const left = new Map(
      [...found].map(([node, own]) => [node, own ?? victims.get(node) ?? { uids: [], violations: 0 }]),
    );
    if (split.virtual.size > 0) nominees.asked(pod, new Map([...left].map(([node, { uids }]) => [node, uids])));
    return evicting(left);
  }

  /** Virtual nodes behind which evictions make room, with the victims. */
  #behindVirtualNodes(pod: Pod, { virtual }: Split, proposed: PreemptionArgs['victims']): VictimsByNode {
    const { budgets, capacityOf } = this.#o;
    const found: VictimsByNode = new Map();
    for (const node of [...virtual.values()].flat()) {
      const capacity = capacityOf(node);
      const request = capacity?.ready === true ? capacity.request(pod) : undefined;
      if (capacity === undefined || request === undefined || !('key' in request)) continue;
      const { uids, violations } = proposed.get(node) ?? { uids: [], violations: 0 };
      const allowed = new Map<string, number>();
      // As long as budgets are not known, only what the scheduler chose by them.
      const lower = this.#lowerOn(node, pod).filter(
        ({ metadata }) => budgets.synced || uids.includes(metadata.uid ?? ''),
      );
      const candidates = lower.map((one) => this.#candidate(one, allowed));
      const victims = capacity.victims(request, candidates, allowed);
      if (victims === undefined || victims.pods.length === 0) continue;
      found.set(node, asNodeVictims(budgets.synced ? victims : { ...victims, violations }));
    }
    return found;
  }

  #lowerOn(node: string, { spec: { priority = 0 } }: Pod): Pod[] {
    return this.#o.view
      .podsOn(node)
      .filter(
        (one) =>
          (one.spec.priority ?? 0) < priority && one.metadata.deletionTimestamp === undefined && !isFinished(one),
      );
  }

  #candidate(pod: Pod, allowed: Map<string, number>): Candidate {
    const covering = this.#o.budgets.synced ? this.#o.budgets.covering(pod) : [];
    for (const budget of covering) allowed.set(budget.key, budget.allowed);
    const { uid = '', creationTimestamp = '' } = pod.metadata;
    const since = Date.parse(creationTimestamp);
    return {
      uid,
      priority: pod.spec.priority ?? 0,
      since: Number.isNaN(since) ? 0 : since,
      budgets: covering.map(({ key }) => key),
    };
  }

  /** Where it asks for itself, as in a question about nodes. Undefined: what the scheduler proposed stays. */
  #withoutRules(pod: Pod, { local, virtual }: Split, behind: VictimsByNode): Map<string, NodeVictims | undefined> {
    const { nodes } = this.#o.view;
    const namespaceLabels = this.#labelsOf(pod);
    const found = new Map<string, NodeVictims | undefined>(local.map((node) => [node, undefined]));
    for (const [member, names] of virtual) {
      if (nodes.whyTainted(member, []) !== undefined) continue;
      for (const name of names) {
        const node = nodes.nodes.get(name);
        const victims = behind.get(name);
        if (victims !== undefined && node !== undefined && asksForItself(pod, node, namespaceLabels))
          found.set(name, victims);
      }
    }
    return found;
  }

  /** In the one cluster where the rules would have it if there were room; in none if that is a cluster where evictions do not help. */
  #byRules(
    pod: Pod,
    { chain, rules, split, behind }: { chain: OwnerChain; rules: Rules; split: Split; behind: VictimsByNode },
  ): Map<string, NodeVictims | undefined> {
    const { facts } = this.#o.questions.ask(pod, chain, rules, split);
    const helped = new Map<string, readonly string[]>();
    if (split.local.length > 0) helped.set(LOCAL, split.local);
    for (const [member, names] of split.virtual) {
      const nodes = names.filter((name) => behind.has(name));
      if (nodes.length > 0 && facts.rooms.get(member)?.impossible === undefined) helped.set(member, nodes);
    }
    const rooms = new Map(facts.rooms);
    for (const cluster of helped.keys()) rooms.set(cluster, { fits: Math.max(1, facts.rooms.get(cluster)?.fits ?? 0) });
    const made = { ...facts, rooms };
    const [place] = nextPlace({ ...made, placement: placementFor(pod, made) }).allowed;
    const nodes = place === undefined ? [] : (helped.get(place.cluster) ?? []);
    return new Map(nodes.map((node) => [node, behind.get(node)]));
  }

  #labelsOf(pod: Pod): Readonly<Record<string, string>> | undefined {
    return this.#o.view.namespaceLabels(pod.metadata.namespace ?? '');
  }
}

function asNodeVictims({ pods, violations }: Victims): NodeVictims {
  return { uids: pods.map(({ uid }) => uid), violations };
}
