import { LOCAL } from '../api/cluster-tiers.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Decision, PlacementFacts } from '../placement/decision.ts';
import { clusterInWords } from '../api/cluster.ts';
import { placementFor } from '../placement/gang-order.ts';
import { nextPlace } from '../placement/next-place.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { refusalInWords } from '../placement/placement-refusal.ts';
import { Attempts } from './attempts.ts';
import { isMadeForItsNode } from './daemon-pod.ts';
import { failing, passing, waitingOn } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult, HostPriority } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import type { MemberFit } from './member-fit.ts';
import type { MigrationFit } from './migration-fit.ts';
import { nodePriorities } from './node-priorities.ts';
import type { RankedNode } from './node-priorities.ts';
import { Nominations } from './nominations.ts';
import type { Nominees } from './nominees.ts';
import { type PlacementQuestions, type Split, splitByMember } from './placement-questions.ts';
import type { HeldRooms } from './held-rooms.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import { type FilterVerb, SecondQuestion } from './second-question.ts';
import { unreadOwner, whenRulesKnown } from './unread-owner.ts';
import type { StateGiver } from './state-giver.ts';
import type { WaitingPods } from './waiting-pods.ts';
import type { Rules } from '../placement/policy-selection.ts';
import type { WorkloadState } from './workload-state.ts';

export interface ExtenderOptions {
  view: HostView;
  workloads: WorkloadState;
  questions: PlacementQuestions;
  /** Told of every pod that has to wait because of an answer from here. */
  waiting: Pick<WaitingPods, 'answered' | 'resyncIn'>;
  /** Told what is wrong with annotations that were passed over. */
  annotationProblem: (chain: OwnerChain, problem: string) => void;
  /** Told of a pod for which a policy was passed over because labels of its owner are not known, and why. */
  unread: (pod: Pod, problem: string) => void;
  heldRooms: HeldRooms;
  nominees: Nominees;
  migrationFit: Pick<MigrationFit, 'isAsking'>;
  /** What a pod gets before any node is chosen for it. */
  state: Pick<StateGiver, 'whyNotYet'>;
  metrics: SchedulerMetrics;
  /** In ms. */
  monotonic: () => number;
}

/** By then an owner that is there is in the caches, or the host has said that it is not, in ms. */
const OWNER_SOON_MS = 1_000;
/** What cannot be read is heard of when it can; this is for what nobody hears of, in ms. */
const OWNER_UNREAD_MS = 20_000;
/** Until the host is asked again for what the pod before this one left, in ms. */
const STATE_AGAIN_MS = 2_000;

/** Nodes that a question leaves out: they `comeLater` in one of their own, or were left out `byOthers`, who know better. */
type LeftOut = 'none' | 'perhaps' | 'byOthers' | 'comeLater';

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
  readonly #heldRooms: HeldRooms;
  readonly #secondQuestion: SecondQuestion;
  readonly #nominations: Nominations;
  readonly #attempts: Attempts;

  constructor(options: ExtenderOptions) {
    this.#o = options;
    this.#secondQuestion = new SecondQuestion(options);
    this.#heldRooms = options.heldRooms;
    this.#nominations = new Nominations(options.monotonic);
    this.#attempts = new Attempts(options.monotonic);
    options.view.onPod({
      changed: (pod) => this.#podSeen(pod),
      gone: ({ metadata: { uid = '' } }) => {
        this.#attempts.end(uid);
        this.#secondQuestion.forget(uid);
        this.#heldRooms.release(uid);
        options.nominees.gone(uid);
      },
    });
  }

  #podSeen(pod: Pod): void {
    const { uid = '', deletionTimestamp } = pod.metadata;
    if (pod.spec.nodeName !== undefined || deletionTimestamp !== undefined) {
      this.#attempts.end(uid);
      this.#secondQuestion.forget(uid);
    } else if (this.#attempts.hasFailed(pod)) {
      this.#attempts.end(uid);
      this.#takeBack(uid);
      this.#withItsGang(pod);
      this.#o.waiting.resyncIn(0);
    }
    this.#heldRooms.podSeen(pod);
    this.#o.nominees.podSeen(pod);
  }

  /** The place that a scheduler was told; what is held for the pod for other reasons stays. */
  #takeBack(uid: string): void {
    this.#secondQuestion.forget(uid);
    this.#o.view.seats.forget(uid);
    this.#heldRooms.release(uid, 'told');
  }

  /** A pod that was told no place counts where its gang has one. */
  #withItsGang(pod: Pod): void {
    const place = this.#heldRooms.heldFor('gang', pod.metadata.uid ?? '');
    const { seats, nodes } = this.#o.view;
    if (place !== undefined) seats.assume(pod, nodes.clusterOf(place.node), place.forMs);
  }

  notReady(): string | undefined {
    return this.#o.view.hasSynced ? undefined : (this.#o.view.problem ?? 'the caches are not complete yet');
  }

  /** `confirm`: see second-question.ts. */
  async filter(args: ExtenderArgs, verb: FilterVerb = 'filter'): Promise<FilterResult> {
    const told = this.#secondQuestion.answer(verb, args);
    const answer = told ?? (await this.#decided(args, verb));
    if (told === undefined) this.#secondQuestion.note(verb, args.pod, answer);
    else if (told.NodeNames.length === 0) this.#o.waiting.answered(args.pod, false);
    return answer;
  }

  async #decided({ pod, nodeNames }: ExtenderArgs, verb: FilterVerb): Promise<FilterResult> {
    const { view, metrics } = this.#o;
    const unknown = await whenRulesKnown(pod, view);
    const stateless = unknown === undefined ? await this.#o.state.whyNotYet(pod) : undefined;
    const chain = view.owners.chainOf(pod);
    if (isMadeForItsNode(pod, chain)) return passing(nodeNames);
    // Its end was heard of before the question: nothing would take back what is held for it now.
    if (view.hasLeft(pod)) return failing(Object.fromEntries(nodeNames.map((node) => [node, 'the pod was deleted'])));
    view.asked(pod);
    this.#heldRooms.expire();
    this.#takeBack(pod.metadata.uid ?? '');
    // Without members there is nothing to decide.
    if (unknown !== undefined && view.nodes.anyVirtualNode() !== undefined)
      return this.#wait(pod, nodeNames, unknown, view.owners.isKnown(pod) ? OWNER_UNREAD_MS : OWNER_SOON_MS);
    if (stateless !== undefined) {
      const words = `the state of the pod before it is to be handed on first (failover.statePreservation): ${stateless}`;
      return this.#wait(pod, nodeNames, words, STATE_AGAIN_MS);
    }
    const split = splitByMember(view.nodes, nodeNames);
    const selection = view.selectionOf(pod, chain);
    if (selection.problem !== undefined) this.#o.annotationProblem(chain, selection.problem);
    this.#tellUnread(pod, chain);
    const { chosen } = selection;
    const { nominees } = this.#o;
    const leftOut = chosen === undefined ? 'none' : this.#leftOut(pod, nodeNames, verb);
    const decide = (): Answer =>
      chosen === undefined
        ? this.#withoutRules(pod, split)
        : this.#byRules(pod, { chain, rules: chosen, split, leftOut });
    const found = nominees.whileAside(pod, decide);
    const fromGangs = found.cluster === undefined ? nominees.whileGangsAside(pod, decide) : undefined;
    const { cluster, result } = fromGangs ?? found;
    const restMs = cluster === undefined && fromGangs === undefined ? nominees.restOfGangs(pod) : undefined;
    if (restMs !== undefined) this.#o.waiting.resyncIn(restMs);
    if (cluster === undefined) nominees.hold(pod);
    if (cluster === undefined || chosen === undefined) this.#withItsGang(pod);
    const node = pod.status?.nominatedNodeName ?? '';
    const answer = cluster === undefined && nominees.waitsForRoom(pod) ? waitingOn(node, result) : result;
    const outcome = cluster === undefined ? 'wait' : cluster === LOCAL ? 'local' : 'member';
    metrics.decisions.inc({ rules: chosen?.source.kind ?? 'None', outcome });
    this.#o.waiting.answered(pod, cluster !== undefined);
    return answer;
  }

  #leftOut(pod: Pod, nodeNames: readonly string[], verb: FilterVerb): LeftOut {
    if (this.#nominations.leavesNodesOut(pod, nodeNames)) return 'comeLater';
    return this.#secondQuestion.mayBeNarrowed(verb, pod) ? 'perhaps' : 'none';
  }

  /** A policy may be meant for the pod, but chooses by labels that Spillway may not read. */
  #tellUnread(pod: Pod, chain: OwnerChain): void {
    const { view } = this.#o;
    const found = unreadOwner(chain, view);
    // What was read before is known, though it may be old.
    if (found === undefined || view.owners.isRead(chain.at(-1) ?? chain[0])) return;
    const { policy, owner, why } = found;
    this.#o.unread(
      pod,
      `${policy} is passed over, as it chooses by labels, and those of ${owner} are not known: ${why}`,
    );
  }

  /** Nothing is said about a pod by rules that are not found only because its owners are not known, nor before it has what it is to start with. */
  #wait(pod: Pod, nodeNames: readonly string[], words: string, againMs: number): FilterResult {
    const { metrics, waiting } = this.#o;
    this.#attempts.refused(pod);
    this.#withItsGang(pod);
    metrics.decisions.inc({ rules: 'None', outcome: 'wait' });
    waiting.answered(pod, false);
    waiting.resyncIn(againMs);
    return failing(Object.fromEntries(nodeNames.map((node) => [node, words])));
  }

  /** Of several virtual nodes those of the better member come first; see {@link nodePriorities}. */
  prioritize({ pod, nodeNames }: ExtenderArgs): HostPriority[] {
    const { questions, view } = this.#o;
    const split = splitByMember(view.nodes, nodeNames);
    const { chain, chosen } = view.selectionOf(pod);
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

  /** No policy and no label says that the pod may leave the host: it goes where it says itself, if it fits there. */
  #withoutRules(pod: Pod, { local, virtual }: Split): Answer {
    const { questions } = this.#o;
    const names = [...local];
    const reasons: Record<string, string> = {};
    let member: string | undefined;
    for (const [name, asked] of virtual) {
      const { open: wanted, closed } = questions.nodesByItself(pod, name, asked);
      for (const one of asked) {
        if (!wanted.includes(one)) reasons[one] = `${clusterInWords(name)}: ${closed}`;
      }
      if (wanted.length === 0) continue;
      const { room, nodes } = questions.room(pod, name, wanted, { upTo: 1 });
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
    { chain, rules, split, leftOut }: { chain: OwnerChain; rules: Rules; split: Split; leftOut: LeftOut },
  ): Answer {
    const { view, workloads, questions } = this.#o;
    const asIfAll = leftOut === 'none' || leftOut === 'byOthers';
    const asked = asIfAll ? split : questions.withOthers(pod, split);
    const { facts, members, identity } = questions.ask(pod, chain, rules, asked);
    const decision = nextPlace({ ...facts, placement: placementFor(pod, facts) });
    const nodesIn = (cluster: string): MemberFit['nodes'] =>
      (members.get(cluster)?.nodes ?? []).filter(
        ({ name }) => cluster === LOCAL || split.virtual.get(cluster)?.includes(name) === true,
      );
    const isAsked = (cluster: string): boolean => (cluster === LOCAL ? split.local : nodesIn(cluster)).length > 0;
    const place = decision.allowed.find(({ cluster }) => isAsked(cluster));
    if (place === undefined && leftOut === 'comeLater') {
      this.#nominations.refused(pod);
      return { cluster: undefined, result: failing(this.#reasons(split, decision)) };
    }
    if (place === undefined && leftOut === 'perhaps') {
      return this.#byRules(pod, { chain, rules, split, leftOut: 'byOthers' });
    }
    const made = { chain, identity, pod, rules, decision };
    // Next time the room may be there, or all nodes are asked about: this pod alone goes by what there is now.
    if (this.#o.migrationFit.isAsking || leftOut === 'byOthers') workloads.decidedForNow(made);
    else workloads.decided(made);
    if (place === undefined) {
      this.#attempts.refused(pod);
      for (const at of timesOfChange(facts)) this.#o.waiting.resyncIn(at - facts.now);
      return { cluster: undefined, result: failing(this.#reasons(split, decision)) };
    }
    const { cluster } = place;
    const nodes = nodesIn(cluster);
    const holdMs = this.#attempts.begin(pod);
    view.seats.assume(pod, cluster, holdMs);
    const [best] = nodes;
    if (best !== undefined) {
      const place = { node: best.name, request: best.request, priority: pod.spec.priority ?? 0 };
      this.#heldRooms.hold('told', pod.metadata.uid ?? '', place, holdMs);
    }
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
function timesOfChange({ placement, avoided, now, pod }: PlacementFacts): number[] {
  const came = now - pod.waitedMs;
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
