import type { Pod } from '../kube/core-v1.ts';
import { nextPlace } from '../placement/next-place.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { ComingGroup, ComingPod, ComingPods, StuckPod } from './coming-pods.ts';
import type { HostView } from './host-view.ts';
import { type CapacityOf, MANY, type MemberFit } from './member-fit.ts';
import { whyPodWouldLeave } from './node-demands.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import { slotsTaken } from './slots-taken.ts';
import { askAboutSuccessor } from './successor-question.ts';

/** What was found out about where pods may go counts for so long, in ms. */
const KNOWN_MS = 1_000;
/** So many pods are put to their places one by one; where there are more, there has to be plenty. */
const MOST_TRIED = 64;
/** A pod that needs a place has it soon, or not for long, in ms. */
const SOON_MS = 60_000;
/** Marks what is set aside for the time of the question. */
const ASIDE = 'coming/';

export interface RoomBesideOptions {
  view: HostView;
  questions: PlacementQuestions;
  coming: ComingPods;
  /** Also for `local`, the host's own nodes. */
  capacityOf: CapacityOf;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** `soon`: pods that need it have not waited for long, so that it is soon seen what they leave. */
export type RoomLeft = 'some' | 'none' | 'noneForSoon';

/**
 * Whether a cluster has room for one more pod beside those that need a place next (coming-pods.ts) and may go there: each takes what it asks for, where
 * it fits by itself. One that fits nowhere takes nothing, so it keeps nobody from room that it cannot have. One that schedulers have refused for
 * long takes its room for a minute from when it begins to fit: a node may have come for it, or others have gone.
 */
export class RoomBeside {
  readonly #o: RoomBesideOptions;
  /** Since when it seems to fit, in monotonic ms by cluster, by pods of the group. */
  readonly #fitsSince = new WeakMap<ReadonlyMap<string, ComingPod>, Map<string, number>>();
  /** Clusters by key of the group; of `since`, monotonic ms. */
  #places: { readonly since: number; readonly of: Map<string, ReadonlySet<string>> } = {
    since: -Infinity,
    of: new Map(),
  };

  constructor(options: RoomBesideOptions) {
    this.#o = options;
  }

  /** `sent`: pods that were told to make way a moment ago. */
  comingGroups(sent: readonly Pod[], stuck?: StuckPod): ComingGroup[] {
    return this.#o.coming.groups(sent, stuck);
  }

  /** `fit`: room for the pod in question there, as if nobody else came. */
  left(cluster: string, fit: MemberFit, groups: readonly ComingGroup[]): RoomLeft {
    const slots = this.#slots(fit);
    if (slots === 0) return 'none';
    const here = groups.filter((group) => this.#mayGoTo(group, cluster));
    if (slots > this.#mostTaken(fit, here)) return 'some';
    const fitting = here.filter((group) => this.#fits(group, cluster));
    if (slots > this.#mostTaken(fit, fitting)) return 'some';
    const now = this.#o.monotonic();
    const recently = now - SOON_MS;
    const coming = fitting.flatMap((group) => {
      const isNew = (this.#fitsSince.get(group.pods)?.get(cluster) ?? now) > recently;
      return [...group.pods.values()].filter((one) => (isNew || one.until > now) && !this.#hasPlace(one, group, fit));
    });
    if (this.#hasRoomFor(coming, cluster, slots, fit)) return 'some';
    return coming.some(({ since, until }) => since > recently || until <= now) ? 'noneForSoon' : 'none';
  }

  /** Nothing but decisions about places is content to know that there are {@link MANY}. */
  #slots({ nodes }: MemberFit): number {
    let sum = 0;
    for (const { name, slots, request } of nodes)
      sum += slots < MANY ? slots : (this.#o.capacityOf(name)?.slots(request, Infinity) ?? slots);
    return sum;
  }

  #fits({ pods }: ComingGroup, cluster: string): boolean {
    const [first] = pods.values();
    const fits = first !== undefined && this.#o.questions.roomIn(first.pod, cluster).nodes.length > 0;
    const since = this.#fitsSince.get(pods) ?? new Map<string, number>();
    this.#fitsSince.set(pods, since);
    if (!fits) since.delete(cluster);
    else if (!since.has(cluster)) since.set(cluster, this.#o.monotonic());
    return fits;
  }

  /** However they may be put on the nodes; Infinity where that cannot be said. */
  #mostTaken({ nodes }: MemberFit, groups: readonly ComingGroup[]): number {
    let most = 0;
    for (const { pods } of groups) {
      const [first] = pods.values();
      if (first === undefined) continue;
      const each = nodes.map(({ name, request }) => {
        const own = this.#requestAt(name, first.pod);
        return own === undefined ? 0 : (slotsTaken(own, request) ?? Infinity);
      });
      most += pods.size * Math.max(...each);
    }
    return most;
  }

  #requestAt(node: string, pod: Pod): FitRequest | undefined {
    const request = this.#o.capacityOf(node)?.request(pod);
    return request !== undefined && 'key' in request ? request : undefined;
  }

  /** A scheduler was told a place, and works on that, or it is bound by now: its room is not free any more. */
  #hasPlace({ pod }: ComingPod, { from }: ComingGroup, { nodes }: MemberFit): boolean {
    if (from !== undefined) return false;
    const { uid = '' } = pod.metadata;
    const { view, capacityOf } = this.#o;
    return view.seats.assumedAt(uid) !== undefined || nodes.some(({ name }) => capacityOf(name)?.holds(uid) === true);
  }

  #hasRoomFor(coming: readonly ComingPod[], cluster: string, slots: number, { nodes }: MemberFit): boolean {
    const isSame = (pod: Pod): boolean =>
      nodes.every(({ name, request }) => this.#requestAt(name, pod)?.key === request.key);
    if (coming.every(({ pod }) => isSame(pod))) return slots > coming.length;
    if (coming.length > MOST_TRIED) return false;
    const { capacityOf, questions } = this.#o;
    const aside: (readonly [VirtualNodeCapacity, string])[] = [];
    try {
      for (const { pod } of coming) {
        const [best] = questions.roomIn(pod, cluster).nodes;
        const capacity = best === undefined ? undefined : capacityOf(best.name);
        if (best === undefined || capacity === undefined) continue;
        const key = `${ASIDE}${pod.metadata.uid ?? ''}`;
        aside.push([capacity, key]);
        capacity.reserve(key, best.request);
      }
      return nodes.some(({ name, request }) => capacityOf(name)?.fits(request).fits === true);
    } finally {
      for (const [capacity, key] of aside) capacity.release(key);
    }
  }

  #mayGoTo(group: ComingGroup, cluster: string): boolean {
    const now = this.#o.monotonic();
    if (now - this.#places.since >= KNOWN_MS) this.#places = { since: now, of: new Map() };
    const { of } = this.#places;
    const known = of.get(group.key);
    if (known !== undefined) return known.has(cluster);
    const [first] = group.pods;
    const places = first === undefined ? new Set<string>() : this.#placesOf(first[1].pod, first[0], group);
    of.set(group.key, places);
    return places.has(cluster);
  }

  /** Where rules let it go, and it needs room; where there are no rules, whether there is any or not. `uid`: see {@link ComingGroup}. */
  #placesOf(coming: Pod, uid: string, { from }: ComingGroup): ReadonlySet<string> {
    const { view, questions } = this.#o;
    const { chain, chosen: rules } = view.selectionOf(coming);
    const places = new Set<string>();
    if (rules === undefined) {
      for (const cluster of view.nodes.clusters())
        if (typeof questions.openByItself(coming, cluster) !== 'string') places.add(cluster.name);
    } else {
      const { allowed } =
        from === undefined
          ? nextPlace(questions.ask(coming, chain, rules, questions.everyOpenNode(coming), true).facts)
          : askAboutSuccessor(this.#o, { next: coming, formerUid: uid, chain, rules }, { wordless: true }).decision;
      for (const { cluster } of allowed) places.add(cluster);
    }
    if (from === undefined) return places;
    // Where it may go back to its node it has the room there that the other one leaves.
    const before = view.nodes.clusterOf(from);
    if (this.#mayGoBack(coming, before, from)) places.delete(before);
    return places;
  }

  #mayGoBack(pod: Pod, member: string, node: string): boolean {
    const { view, questions } = this.#o;
    if (!questions.openNodes(pod, member).includes(node)) return false;
    return whyPodWouldLeave(pod, view.nodes.wantedTaints(member, node)) === undefined;
  }
}
