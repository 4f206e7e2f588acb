import { LOCAL } from '../api/cluster-tiers.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Candidate, Grant, Victims } from '../capacity/victims.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Room } from '../placement/candidates.ts';
import { placementFor } from '../placement/gang-order.ts';
import { firstPlace } from '../placement/next-place.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { isMadeForItsNode } from './daemon-pod.ts';
import { evicting, type NodeVictims, type PreemptionArgs, type PreemptionResult } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import type { CapacityOf } from './member-fit.ts';
import type { MigrationFit } from './migration-fit.ts';
import { whyPodWouldLeave } from './node-demands.ts';
import type { Nominees } from './nominees.ts';
import { type PlacementQuestions, type Split, splitByMember } from './placement-questions.ts';
import type { Rules } from '../placement/policy-selection.ts';
import type { StateGiver } from './state-giver.ts';
import { whenRulesKnown } from './unread-owner.ts';

/** The PodDisruptionBudgets of the host. */
export interface BudgetsPort {
  readonly synced: boolean;
  /** Those that cover a pod, and how many evictions each grants now. */
  covering(pod: Pod): readonly Grant[];
}

export interface PreemptionOptions {
  readonly view: HostView;
  readonly questions: PlacementQuestions;
  readonly capacityOf: CapacityOf;
  readonly budgets: BudgetsPort;
  readonly nominees: Nominees;
  readonly migrationFit: Pick<MigrationFit, 'isAsking'>;
  readonly state: Pick<StateGiver, 'isAwaitedFor'>;
}

/** Who has to leave behind a virtual node; undefined where that would not bring the pod to a place. Worked out when it is asked. */
type VictimsBehind = (node: string) => NodeVictims | undefined;

/** Virtual nodes where evictions help that a scheduler is told to choose from, where no rules choose. */
const ENOUGH_VIRTUAL_NODES = 5;

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

  /** `hungUp`: the scheduler did not wait for the answer, so that it evicts nobody for it, and may ask again at once. */
  async preempt({ pod, victims }: PreemptionArgs, hungUp?: AbortSignal): Promise<PreemptionResult> {
    const { view, nominees, migrationFit, state } = this.#o;
    const unknown = await whenRulesKnown(pod, view);
    if (hungUp?.aborted === true) return evicting(new Map());
    const chain = view.owners.chainOf(pod);
    if (isMadeForItsNode(pod, chain) || view.nodes.anyVirtualNode() === undefined) return evicting(victims);
    // By which rules it lives is not known yet, or it waits for what it is to start with; it is asked again, unless it was deleted.
    if (view.hasLeft(pod) || unknown !== undefined || state.isAwaitedFor(pod)) return evicting(new Map());
    if (victims.size > 0 && nominees.wereJustNamed(pod, victims)) return evicting(victims);
    // Others make way already.
    if (nominees.waitsForVictims(pod)) return evicting(new Map());
    view.asked(pod);
    const split = splitByMember(view.nodes, victims.keys());
    const { chosen } = view.selectionOf(pod, chain);
    // Room that only a question about a migration holds is nobody's reason to be evicted: the pod is asked for again when it is free.
    if (migrationFit.isAsking && (chosen !== undefined || this.#asksForMembers(pod))) return evicting(new Map());
    const behind: VictimsBehind = (node) => this.#behind(node, pod, victims.get(node));
    const lookFor = (): Map<string, NodeVictims | undefined> =>
      chosen === undefined
        ? this.#withoutRules(pod, split, behind)
        : this.#byRules(pod, { chain, rules: chosen, split, behind });
    const found = nominees.whileAllAside(pod, lookFor);
    const left = new Map(
      [...found].map(([node, own]) => [node, own ?? victims.get(node) ?? { uids: [], violations: 0 }]),
    );
    if (split.virtual.size > 0) {
      const takeBack = nominees.asked(pod, uidsOf(left));
      hungUp?.addEventListener('abort', takeBack, { once: true });
    }
    return evicting(left);
  }

  #behind(node: string, pod: Pod, proposed: NodeVictims | undefined): NodeVictims | undefined {
    const { view, budgets, capacityOf } = this.#o;
    if (whyPodWouldLeave(pod, view.nodes.wantedTaints(view.nodes.clusterOf(node), node)) !== undefined)
      return undefined;
    const capacity = capacityOf(node);
    const request = capacity?.ready === true ? capacity.request(pod) : undefined;
    if (capacity === undefined || request === undefined || !('key' in request)) return undefined;
    const { uids, violations } = proposed ?? { uids: [], violations: 0 };
    // As long as budgets are not known, only what the scheduler chose by them.
    const lower = this.#lowerOn(node, pod).filter(
      ({ metadata }) => budgets.synced || uids.includes(metadata.uid ?? ''),
    );
    const candidates = lower.map((one) => new BoundCandidate(one, budgets));
    const victims = capacity.victims(request, candidates);
    if (victims === undefined || victims.pods.length === 0) return undefined;
    return asNodeVictims(budgets.synced ? victims : { ...victims, violations });
  }

  /** Those that are to make way for others already are left out. */
  #lowerOn(node: string, pod: Pod): Pod[] {
    const { view, nominees } = this.#o;
    const { priority = 0 } = pod.spec;
    const isNamed = nominees.namedForOthers(pod);
    return view
      .podsOn(node)
      .filter(({ metadata, spec }) => (spec.priority ?? 0) < priority && !isNamed(metadata.uid ?? ''))
      .filter((one) => one.metadata.deletionTimestamp === undefined && !isFinished(one));
  }

  /** Where it asks for itself, as in a question about nodes. Undefined: what the scheduler proposed stays. */
  #withoutRules(pod: Pod, { local, virtual }: Split, behind: VictimsBehind): Map<string, NodeVictims | undefined> {
    const found = new Map<string, NodeVictims | undefined>(local.map((node) => [node, undefined]));
    for (const [member, names] of virtual) {
      for (const name of this.#o.questions.nodesByItself(pod, member, names).open) {
        const victims = behind(name);
        if (victims !== undefined) found.set(name, victims);
        if (found.size >= local.length + ENOUGH_VIRTUAL_NODES) return found;
      }
    }
    return found;
  }

  /** Whether it may be behind any virtual node, without rules. */
  #asksForMembers(pod: Pod): boolean {
    const { virtual } = this.#o.questions.everyOpenNode(pod);
    return [...virtual.values()].some((names) => names.some((name) => this.#o.view.asksFor(pod, name)));
  }

  /**
   * In the one cluster where the rules would have it if there were room: of those where evictions help the first one, which is looked
   * for one after the other, as a question about a member is dear and schedulers wait for the answer.
   */
  #byRules(
    pod: Pod,
    { chain, rules, split, behind }: { chain: OwnerChain; rules: Rules; split: Split; behind: VictimsBehind },
  ): Map<string, NodeVictims | undefined> {
    const { facts } = this.#o.questions.ask(pod, chain, rules, split, true);
    const nodesOf = (cluster: string): readonly string[] | undefined =>
      cluster === LOCAL ? split.local : split.virtual.get(cluster);
    const inVain = new Set<string>();
    const roomIn = (cluster: string): Room | undefined => {
      const room = facts.rooms.get(cluster);
      const mayGet = room?.impossible === undefined && !inVain.has(cluster) && (nodesOf(cluster)?.length ?? 0) > 0;
      return mayGet ? withRoomForOne(room) : room;
    };
    const made = { ...facts, placement: placementFor(pod, facts), rooms: { get: roomIn } };
    for (;;) {
      const place = firstPlace(made);
      const nodes = place === undefined || inVain.has(place.cluster) ? undefined : nodesOf(place.cluster);
      if (place === undefined || nodes === undefined) return new Map();
      if (place.cluster === LOCAL) return new Map(nodes.map((node) => [node, undefined]));
      const found = nodes.flatMap((node) => {
        const victims = behind(node);
        return victims === undefined ? [] : [[node, victims] as const];
      });
      if (found.length > 0) return new Map(found);
      inVain.add(place.cluster);
    }
  }
}

const FOR_ONE: Room = { fits: 1 };

function withRoomForOne(room: Room | undefined): Room {
  return room?.fits === undefined || room.fits <= 1 ? FOR_ONE : { fits: room.fits };
}

/** A pod on a virtual node, read no further than somebody asks: thousands may be candidates, and few are compared. */
class BoundCandidate implements Candidate {
  readonly #pod: Pod;
  readonly #known: BudgetsPort;

  constructor(pod: Pod, known: BudgetsPort) {
    this.#pod = pod;
    this.#known = known;
  }

  get uid(): string {
    return this.#pod.metadata.uid ?? '';
  }

  get priority(): number {
    return this.#pod.spec.priority ?? 0;
  }

  get since(): number {
    const since = Date.parse(this.#pod.metadata.creationTimestamp ?? '');
    return Number.isNaN(since) ? 0 : since;
  }

  get budgets(): readonly Grant[] {
    return this.#known.synced ? this.#known.covering(this.#pod) : [];
  }
}

function uidsOf(victims: ReadonlyMap<string, NodeVictims>): Map<string, readonly string[]> {
  return new Map([...victims].map(([node, { uids }]) => [node, uids]));
}

function asNodeVictims({ pods, violations }: Victims): NodeVictims {
  return { uids: pods.map(({ uid }) => uid), violations };
}
