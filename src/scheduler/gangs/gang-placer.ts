import { LOCAL } from '../../api/cluster-tiers.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { reasonsInWords } from '../../capacity/fit-answer.ts';
import { clusterInWords } from '../../api/cluster.ts';
import { gangOrder } from '../../placement/gang-order.ts';
import { Breath } from '../../kube/breath.ts';
import { monotonic as systemMonotonic } from '../../kube/clock.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import type { KeptOwner } from '../../placement/owner-chain.ts';
import type { GangAnswer, GangQuestion } from './gang-places.ts';
import { type GangKinds, GangRefusal, MOST_KINDS } from './gang-refusal.ts';
import type { HostView } from '../host-view.ts';
import type { CapacityOf } from '../member-fit.ts';
import type { PlacementQuestions } from '../placement-questions.ts';
import type { HeldRooms } from '../held-rooms.ts';
import { whenRulesKnown } from '../unread-owner.ts';

export interface GangPlacerOptions {
  view: HostView;
  questions: PlacementQuestions;
  /** For pods whose gang has its place: also about room that is kept from others until these have been tried there. */
  ownQuestions: PlacementQuestions;
  heldRooms: HeldRooms;
  /** Also for `local`, the host's own nodes. */
  capacityOf: CapacityOf;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic?: () => number;
}

/** After so long a look no other cluster is begun, and other gangs have their turn, in ms. */
const LOOK_MS = 500;

const TOO_MANY_KINDS = `its pods are of more than ${String(MOST_KINDS)} kinds: they differ in controller or revision, policy, node selector, tolerations or affinity`;

/** Clusters to try in turn, and why others are not. */
interface Options {
  readonly order: readonly string[];
  readonly whys: Map<string, string>;
}

/**
 * Places for gangs: the clusters that the rules of the oldest pod allow, in the order of the rules, until one takes all pods, and the
 * rules of each of them. Room is set aside pod by pod, so pods of different shapes are counted as they are; a gang may be large, so
 * others have their turn in between.
 */
export class GangPlacer {
  readonly #o: GangPlacerOptions;
  readonly #refusal: GangRefusal;

  constructor(options: GangPlacerOptions) {
    this.#o = options;
    this.#refusal = new GangRefusal(options);
  }

  /** Room for all of the pods in one place, kept for `holdMs`. */
  async place(
    pods: readonly Pod[],
    { at, avoid, holdMs, tried: before = new Map() }: GangQuestion,
  ): Promise<GangAnswer> {
    const { view, monotonic = systemMonotonic } = this.#o;
    const until = monotonic() + LOOK_MS;
    const [first] = pods;
    if (first === undefined || !view.hasSynced) return { why: 'the caches are not complete yet' };
    const unknown = await whenRulesKnown(first, view);
    if (unknown !== undefined) return { why: unknown };
    // What they hold from an earlier look is not in their way.
    this.release(pods);
    const breath = new Breath();
    const kinds = await this.#refusal.kindsOf(pods, () => breath.take());
    if (kinds === undefined) return { problem: TOO_MANY_KINDS };
    const { order, whys } = at === undefined ? this.#options(first, pods.length) : { order: [at], whys: new Map() };
    const tried = new Map(before);
    for (const cluster of order.filter((one) => !before.has(one))) {
      if (tried.size > before.size && monotonic() > until) return { tried };
      const why =
        cluster === avoid ? 'a place there was not filled in time' : await this.#take(cluster, pods, kinds, holdMs);
      if (why === undefined) return { cluster };
      tried.set(cluster, why);
    }
    const words = [...new Map([...whys, ...tried])]
      .map(([cluster, why]) => `${clusterInWords(cluster)}: ${String(why)}`)
      .join('; ');
    return { why: words === '' ? 'nothing says that it may leave the host' : words };
  }

  /** Keeps the room of pods until they are bound, and sets it aside again for those that lost it, as with the process that held it. */
  async hold(pods: readonly Pod[], cluster: string, holdMs: number): Promise<void> {
    const { heldRooms, ownQuestions } = this.#o;
    const breath = new Breath();
    for (const pod of pods) {
      await breath.take();
      if (pod.spec.nodeName !== undefined) continue;
      const isKept = heldRooms.holdAlso('gang', pod.metadata.uid ?? '', holdMs);
      if (isKept || this.#reserve(pod, cluster, holdMs, ownQuestions) === undefined) this.#count(pod, cluster, holdMs);
    }
  }

  /** See {@link PlaceKeeper}. */
  keeps(pod: Pod, cluster: string, forMs: number): boolean {
    const { heldRooms, view } = this.#o;
    const { uid = '' } = pod.metadata;
    if (heldRooms.heldFor('gang', uid) === undefined) return false;
    // Where a scheduler was told its place, it counted for as long as that was to bind it.
    if (forMs > 0 && view.seats.assumedAt(uid) === undefined) this.#count(pod, cluster, forMs);
    return true;
  }

  /**
   * By what the pod says of its place, which whoever may write pods could say where no policy keeps them from it: so only where a
   * scheduler would be told that place. Room first: that costs least to find out. See {@link PlaceKeeper}.
   */
  holdAsGiven(pod: Pod, cluster: string, forMs: number, refused: Set<string>): boolean {
    const { heldRooms, ownQuestions } = this.#o;
    const { uid = '' } = pod.metadata;
    // Of pods without a controller one may be avoided where others of its kind are not.
    const kind = (): string => `${cluster} ${controllerOf(pod) === undefined ? uid : this.#refusal.kindOf(pod)}`;
    if (refused.size > 0 && refused.has(kind())) return false;
    if (this.#reserve(pod, cluster, forMs, ownQuestions) !== undefined) return false;
    let isLetIn = false;
    try {
      isLetIn = this.#refusal.whyNotGiven(pod, cluster) === undefined;
    } finally {
      if (!isLetIn) heldRooms.release(uid, 'gang');
    }
    if (isLetIn) this.#count(pod, cluster, forMs);
    else refused.add(kind());
    return isLetIn;
  }

  /** See {@link PlaceKeeper}. */
  unknownNodes(cluster: string): readonly string[] {
    const { view, capacityOf } = this.#o;
    const names = cluster === LOCAL ? [LOCAL] : view.nodes.virtualNodesOf(cluster);
    return names.filter((name) => capacityOf(name)?.ready !== true);
  }

  release(pods: readonly Pod[]): void {
    const { heldRooms, view } = this.#o;
    for (const { metadata } of pods) {
      const { uid = '' } = metadata;
      if (heldRooms.heldFor('gang', uid) === undefined) continue;
      heldRooms.release(uid, 'gang');
      view.seats.forget(uid);
    }
  }

  /** Asked of the member where the pod is bound; undefined: it does not answer, or nobody here knows it. */
  async hasNode({ metadata, spec }: Pod, signal: AbortSignal): Promise<boolean | undefined> {
    return await this.#o.capacityOf(spec.nodeName ?? '')?.hasNode(metadata.uid ?? '', signal);
  }

  /** The StatefulSet of a pod with `podManagementPolicy: OrderedReady`; undefined: another controller, or not known. */
  setInTurn(pod: Pod): { name: string; replicas: number } | undefined {
    const [, above] = this.#o.view.owners.chainOf(pod);
    if (above?.kind !== 'StatefulSet' || !above.apiVersion.startsWith('apps/')) return undefined;
    const { spec: { podManagementPolicy, replicas } = {} }: KeptOwner = above;
    if (podManagementPolicy !== 'OrderedReady' || typeof replicas !== 'number') return undefined;
    return { name: above.metadata.name, replicas };
  }

  /** Undefined when there is room for all of them, and rules let them in; else why not. Room first: that costs least to find out. */
  async #take(cluster: string, pods: readonly Pod[], kinds: GangKinds, holdMs: number): Promise<string | undefined> {
    const breath = new Breath();
    const breathe = async (): Promise<void> => await breath.take();
    const why =
      (await this.#setAside(cluster, pods, holdMs, breathe)) ?? (await this.#refusal.whyNot(kinds, cluster, breathe));
    if (why === undefined) for (const pod of pods) this.#count(pod, cluster, holdMs);
    else this.release(pods);
    return why;
  }

  async #setAside(
    cluster: string,
    pods: readonly Pod[],
    holdMs: number,
    breathe: () => Promise<void>,
  ): Promise<string | undefined> {
    for (const [index, pod] of pods.entries()) {
      await breathe();
      const why = this.#reserve(pod, cluster, holdMs);
      if (why !== undefined)
        return index === 0 ? why : `room for ${String(index)} of ${String(pods.length)} pods (${why})`;
    }
    return undefined;
  }

  #reserve(pod: Pod, cluster: string, holdMs: number, questions = this.#o.questions): string | undefined {
    const { view, heldRooms } = this.#o;
    if (view.hasLeft(pod)) return `its pod ${pod.metadata.name} was deleted`;
    if (cluster === LOCAL) return this.#reserveLocally(pod, holdMs);
    const { room, nodes } = questions.room(pod, cluster, questions.openNodes(pod, cluster), { upTo: 1 });
    const [best] = nodes;
    if (best === undefined) return room.impossible ?? room.why ?? 'it has no room for the pod';
    const { priority = 0 } = pod.spec;
    heldRooms.hold('gang', pod.metadata.uid ?? '', { node: best.name, request: best.request, priority }, holdMs);
    return undefined;
  }

  /** It counts where its gang has a place, as one that a scheduler was told its place does. */
  #count(pod: Pod, cluster: string, holdMs: number): void {
    this.#o.view.seats.assume(pod, cluster, holdMs);
  }

  #reserveLocally(pod: Pod, holdMs: number): string | undefined {
    const capacity = this.#o.capacityOf(LOCAL);
    const request = capacity?.request(pod);
    if (capacity === undefined || request === undefined || !('key' in request)) return 'its nodes are not known yet';
    const answer = capacity.fits(request);
    if (!answer.fits) return reasonsInWords(answer.reasons);
    const { priority = 0 } = pod.spec;
    this.#o.heldRooms.hold('gang', pod.metadata.uid ?? '', { node: LOCAL, request, priority }, holdMs);
    return undefined;
  }

  #options(first: Pod, count: number): Options {
    const { view, questions } = this.#o;
    const { chain, chosen: rules } = view.selectionOf(first);
    if (rules === undefined) return { order: this.#ownChoice(first), whys: new Map() };
    const { facts } = questions.ask(first, chain, rules, questions.everyOpenNode(first));
    const { order, refusals } = gangOrder(facts, count);
    return { order, whys: new Map(refusals.map(({ cluster, message }) => [cluster, message])) };
  }

  /** Without rules: the host, then where the pod asks to go itself. */
  #ownChoice(pod: Pod): string[] {
    const { view, questions } = this.#o;
    const members = view.nodes
      .clusters()
      .filter(({ name, unavailable }) => name !== LOCAL && unavailable === undefined)
      .map(({ name }) => name)
      .filter((name) => questions.openNodes(pod, name).some((one) => view.asksFor(pod, one)));
    return [LOCAL, ...members];
  }
}
