import { atGangPlace } from '../../api/gang-place.ts';
import { LOCAL } from '../../api/cluster-tiers.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { canonicalJson } from '../../kube/canonical-json.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import type { Rooms } from '../../placement/candidates.ts';
import { placementFor } from '../../placement/gang-order.ts';
import { nextPlace } from '../../placement/next-place.ts';
import { revisionOf } from '../../placement/owner-chain.ts';
import type { Rules } from '../../placement/policy-selection.ts';
import { withMore } from '../../placement/workload.ts';
import type { HostView } from '../host-view.ts';
import type { PlacementQuestions } from '../placement-questions.ts';
import { whenRulesKnown, whyRulesNotYet } from '../unread-owner.ts';

export interface GangRefusalOptions {
  readonly view: HostView;
  readonly questions: PlacementQuestions;
  /** Wall clock in ms. */
  readonly clock: () => number;
}

/** More kinds of pods than this are no gang that can be asked about in time: each kind is asked about in each cluster. */
export const MOST_KINDS = 64;

/** Pods that have to be together. */
export interface GangKinds {
  /** One of each kind that rules can tell from the others. */
  readonly pods: readonly Pod[];
  /** How many pods there are by what they count with. */
  readonly counts: ReadonlyMap<string, number>;
}

/** What rules, avoid marks and taints of members say to a place for a gang: what the extender will say of each of its pods there. */
export class GangRefusal {
  readonly #o: GangRefusalOptions;

  constructor(options: GangRefusalOptions) {
    this.#o = options;
  }

  /** Undefined: they are of more than {@link MOST_KINDS} kinds. */
  async kindsOf(pods: readonly Pod[], breathe: () => Promise<void>): Promise<GangKinds | undefined> {
    const counts = new Map<string, number>();
    const kinds = new Map<string, Pod>();
    for (const pod of pods) {
      const group = groupOf(pod);
      counts.set(group, (counts.get(group) ?? 0) + 1);
      kinds.set(this.kindOf(pod), pod);
      if (kinds.size > MOST_KINDS) return undefined;
      await breathe();
    }
    return { pods: [...kinds.values()], counts };
  }

  /** Why one of the pods would be refused there, whatever room there is; undefined: none of them would. */
  async whyNot(
    { pods, counts }: GangKinds,
    cluster: string,
    breathe: () => Promise<void>,
  ): Promise<string | undefined> {
    for (const pod of pods) {
      const unknown = await whenRulesKnown(pod, this.#o.view);
      if (unknown !== undefined) return unknown;
      const why = this.#whyNot(pod, (counts.get(groupOf(pod)) ?? 1) - 1, cluster);
      if (why !== undefined) return pods.length === 1 ? why : `pod ${pod.metadata.name}: ${why}`;
      await breathe();
    }
    return undefined;
  }

  /** The same of one pod whose gang has its place there, from what is known at this moment. */
  whyNotGiven(pod: Pod, cluster: string): string | undefined {
    return whyRulesNotYet(pod, this.#o.view) ?? this.#whyNot(pod, 0, cluster);
  }

  /** Equal for pods that rules cannot tell from each other: those without a controller count each by itself, so all in the same way. */
  kindOf(pod: Pod): string {
    const { nodeSelector, tolerations, affinity } = pod.spec;
    const group = controllerOf(pod) === undefined ? '' : groupOf(pod);
    return canonicalJson([group, this.#rulesOf(pod)?.source, nodeSelector, tolerations, affinity]);
  }

  #rulesOf(pod: Pod): Rules | undefined {
    return this.#o.view.selectionOf(pod).chosen;
  }

  /** `others` of its workload will be there before it. */
  #whyNot(pod: Pod, others: number, cluster: string): string | undefined {
    const { view, questions, clock } = this.#o;
    const rules = this.#rulesOf(pod);
    if (rules === undefined) return this.#whyNotWithoutRules(pod, cluster);
    const there = atGangPlace(pod, cluster, clock());
    const { facts } = questions.ask(there, view.owners.chainOf(there), rules, questions.everyOpenNode(there));
    const pods = withMore(facts.workload.pods, facts.pod.revision, cluster, others);
    const room = facts.rooms.get(cluster);
    // Each of them is asked about the room when it is set aside.
    const given = room?.impossible === undefined ? { ...room, fits: Math.max(1, room?.fits ?? 0) } : room;
    const rooms: Rooms = { get: (name) => (name === cluster ? given : facts.rooms.get(name)) };
    const made = { ...facts, rooms, workload: { ...facts.workload, pods } };
    const { allowed, refusals } = nextPlace({ ...made, placement: placementFor(there, made) });
    if (allowed.some((place) => place.cluster === cluster)) return undefined;
    return refusals.find((refusal) => refusal.cluster === cluster)?.message ?? 'the policy does not choose it';
  }

  #whyNotWithoutRules(pod: Pod, cluster: string): string | undefined {
    const { view } = this.#o;
    const { nodes } = view;
    if (cluster === LOCAL) return undefined;
    const tainted = nodes.whyTainted(cluster, []);
    if (tainted !== undefined) return tainted;
    const asks = nodes.virtualNodesOf(cluster).some((name) => view.asksFor(pod, name));
    return asks ? undefined : 'nothing says that the pod may leave the host';
  }
}

/** Pods that count together: of one controller and revision. A pod without controller counts by itself. */
function groupOf(pod: Pod): string {
  const controller = controllerOf(pod)?.uid;
  return controller === undefined ? (pod.metadata.uid ?? '') : `${controller} ${revisionOf(pod) ?? ''}`;
}
