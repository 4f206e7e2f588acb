import type { Cluster } from '../api/cluster.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Scoring } from '../api/scoring.ts';
import type { Pod } from '../kube/core-v1.ts';
import { reasonsInWords } from '../capacity/fit-answer.ts';
import type { FitAnswer } from '../capacity/fit-answer.ts';
import type { Rooms } from '../placement/candidates.ts';
import type { PlacementFacts } from '../placement/decision.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import { scoreCandidates, scoringOf } from '../placement/score.ts';
import { ofAllRevisions } from '../placement/workload.ts';
import type { Migrating } from '../placement/migrating.ts';
import type { OwnerChain, TypedObject, WorkloadIdentity } from '../placement/owner-chain.ts';
import type { Signals } from '../placement/signals.ts';
import type { HostNodes } from './host-nodes.ts';
import type { HostView } from './host-view.ts';
import { MANY, memberFit } from './member-fit.ts';
import type { CapacityOf, MemberFit, RoomQuestion } from './member-fit.ts';
import { choosesNodes, whyPodKeepsOff } from './node-demands.ts';
import type { Rules } from '../placement/policy-selection.ts';
import type { WorkloadState } from './workload-state.ts';

/** Why no member takes a pod about which no policy and no label speaks, and that does not ask for one itself. */
const NOT_TO_LEAVE = 'nothing says that the pod may leave the host';

/** The nodes that a scheduler asks about. */
export interface Split {
  readonly local: readonly string[];
  /** By member. */
  readonly virtual: ReadonlyMap<string, readonly string[]>;
  /** No scheduler has looked at them: they are all there are. */
  readonly unchecked?: boolean;
}

export function splitByMember(hostNodes: Pick<HostNodes, 'memberOf'>, nodeNames: Iterable<string>): Split {
  const local: string[] = [];
  const virtual = new Map<string, string[]>();
  for (const name of nodeNames) {
    const member = hostNodes.memberOf(name);
    if (member === undefined) local.push(name);
    else {
      const asked = virtual.get(member);
      if (asked === undefined) virtual.set(member, [name]);
      else asked.push(name);
    }
  }
  return { local, virtual };
}

/** Everything that a decision about one pod looks at, and the rooms behind it. */
export interface PlacementQuestion {
  readonly facts: PlacementFacts;
  /** By cluster, `local` included. */
  readonly members: ReadonlyMap<string, MemberFit>;
  readonly identity: WorkloadIdentity;
}

export interface PlacementQuestionsOptions {
  view: HostView;
  workloads: WorkloadState;
  /** Also for `local`, the host's own nodes. */
  capacityOf: CapacityOf;
  /** What programs outside say of clusters. */
  signals: () => Signals;
  scoring: Scoring;
  /** Where pods of a workload go that is being migrated. */
  wayOf?: (workload: TypedObject) => Migrating | undefined;
  /** Wall clock in ms. */
  clock: () => number;
}

/** Puts together what placement wants to know of a pod, from caches only. */
export class PlacementQuestions {
  readonly #o: PlacementQuestionsOptions;

  constructor(options: PlacementQuestionsOptions) {
    this.#o = options;
  }

  /** `wordless`: nobody reads why members have no room. */
  ask(pod: Pod, chain: OwnerChain, { placement }: Rules, split: Split, wordless = false): PlacementQuestion {
    const { view, workloads, clock } = this.#o;
    const identity = workloadOf(chain);
    const clusters = view.nodes.clusters();
    const members = new Map<string, MemberFit>([[LOCAL, this.#localRoom(pod, split)]]);
    for (const { name, unavailable } of clusters) {
      if (name === LOCAL || unavailable !== undefined) continue;
      members.set(name, this.room(pod, name, split.virtual.get(name) ?? [], { wordless }));
    }
    const now = clock();
    const facts: PlacementFacts = {
      placement,
      clusters,
      workload: {
        uid: identity.object.metadata.uid,
        replicas: identity.replicas,
        pods: view.seats.counts(view.seatGroupsOf(identity.object)),
      },
      pod: {
        revision: identity.revision,
        waitedMs: view.waits.waitedMs(pod, now),
      },
      rooms: roomsIn(members),
      avoided: workloads.avoided(identity.object),
      migrating: this.#o.wayOf?.(identity.object),
      remembered: workloads.plan(identity.object),
      signals: this.#o.signals(),
      scoring: this.#o.scoring,
      now,
    };
    return { facts, members, identity };
  }

  /** How good the members are whose virtual nodes are asked about, for pods with rules or without. */
  scores(
    pod: Pod,
    chain: OwnerChain,
    rules: Rules | undefined,
    { virtual }: Split,
  ): { readonly score: number; readonly nodes: MemberFit['nodes'] }[] {
    const { view } = this.#o;
    const inUse = ofAllRevisions(view.seats.counts(view.seatGroupsOf(workloadOf(chain).object)));
    const members = new Map<string, MemberFit>();
    for (const [member, asked] of virtual) members.set(member, this.room(pod, member, asked));
    const clusters = view.nodes.clusters();
    const candidates = clusters
      .filter(({ name }) => members.has(name))
      .map((cluster) => ({ name: cluster.name, cluster, inUse: (inUse.get(cluster.name) ?? 0) > 0 }));
    const scores = scoreCandidates(candidates, {
      scoring: scoringOf(this.#o.scoring, rules?.placement.scoring),
      rooms: roomsIn(members),
      signals: this.#o.signals(),
      homeRegion: clusters.find(({ name }) => name === LOCAL)?.region,
    });
    return [...members].map(([member, { nodes }]) => ({ score: scores.get(member) ?? 0, nodes }));
  }

  /** Every node that there is, as if it had passed the scheduler's own checks: for plans without a question. */
  everyNode(): Split {
    const { nodes } = this.#o.view;
    const virtual = new Map<string, readonly string[]>();
    for (const { name } of nodes.clusters()) if (name !== LOCAL) virtual.set(name, nodes.virtualNodesOf(name));
    return { local: [LOCAL], virtual, unchecked: true };
  }

  /**
   * With all other nodes, as far as they are known here: of a scheduler that asks about one node only, it is not known what it
   * thinks of the others, which is not that they have no room.
   */
  withOthers(pod: Pod, { local }: Split): Split {
    const all = this.everyOpenNode(pod);
    return { local: local.length > 0 ? local : all.local, virtual: all.virtual, unchecked: local.length === 0 };
  }

  /** Of all nodes those that would pass the scheduler's own checks, as far as these are known here. */
  everyOpenNode(pod: Pod): Split {
    const all = this.everyNode();
    const virtual = new Map([...all.virtual.keys()].map((member) => [member, this.openNodes(pod, member)] as const));
    return { ...all, local: this.#mayBeLocal(pod) ? all.local : [], virtual };
  }

  /** Room for the pod in one cluster, or `local`, on the nodes that would pass the scheduler's own checks; whatever rules say. */
  roomIn(pod: Pod, cluster: string): MemberFit {
    if (cluster !== LOCAL) return this.room(pod, cluster, this.openNodes(pod, cluster));
    return this.#localRoom(pod, { local: this.#mayBeLocal(pod) ? [LOCAL] : [], virtual: new Map(), unchecked: true });
  }

  /**
   * Of virtual nodes of a member those that a pod may be on about which no policy and no label speaks: it goes where it says itself.
   * `closed`: why not on the others, in words.
   */
  nodesByItself(pod: Pod, member: string, nodes: readonly string[]): { open: readonly string[]; closed: string } {
    const { view } = this.#o;
    const tainted = view.nodes.whyTainted(member, []);
    if (tainted !== undefined) return { open: [], closed: tainted };
    return { open: nodes.filter((node) => view.asksFor(pod, node)), closed: NOT_TO_LEAVE };
  }

  /** The same of all its open nodes; none for `local`. In words: why it may be on none. */
  openByItself(pod: Pod, { name, unavailable }: Pick<Cluster, 'name' | 'unavailable'>): readonly string[] | string {
    if (name === LOCAL) return [];
    if (unavailable !== undefined) return unavailable;
    const { open, closed } = this.nodesByItself(pod, name, this.openNodes(pod, name));
    return open.length === 0 ? closed : open;
  }

  #mayBeLocal(pod: Pod): boolean {
    return !choosesNodes(pod) || this.#o.view.nodes.someRealNodeIsChosenBy(pod);
  }

  /** The virtual nodes of a member that take pods, and that the pod itself does not keep off. */
  openNodes(pod: Pod, member: string): string[] {
    const { nodes } = this.#o.view;
    return nodes.virtualNodesOf(member).filter((name) => {
      const node = nodes.nodes.get(name);
      return node !== undefined && node.spec?.unschedulable !== true && whyPodKeepsOff(pod, node) === undefined;
    });
  }

  /** Room for the pod behind those virtual nodes of the member that the scheduler asks about. */
  room(
    pod: Pod,
    member: string,
    asked: readonly string[],
    more: Pick<RoomQuestion, 'upTo' | 'wordless'> = {},
  ): MemberFit {
    const { view, capacityOf } = this.#o;
    return memberFit({ pod, member, asked, ...more }, view.nodes, capacityOf);
  }

  /** What passed the checks of the scheduler has room for one pod at least, whatever is known of it here. */
  #localRoom(pod: Pod, { local, unchecked }: Split): MemberFit {
    const { capacityOf } = this.#o;
    if (local.length > 0) {
      const capacity = capacityOf(LOCAL);
      const request = capacity?.ready === true ? capacity.request(pod) : undefined;
      if (capacity === undefined || request === undefined || !('key' in request)) {
        return { room: { fits: undefined }, nodes: [] };
      }
      const slots = capacity.slots(request, MANY);
      if (slots > 0 || unchecked !== true) {
        const fits = Math.max(1, slots);
        return { room: { fits }, nodes: [{ name: LOCAL, slots: fits, request }] };
      }
      return { room: { fits: 0, ...whyIn(capacity.fits(request)) }, nodes: [] };
    }
    const why = 'no node passes the checks of the scheduler itself';
    const impossible = 'the node selector or node affinity of the pod leaves all of its nodes out';
    return { room: this.#mayBeLocal(pod) ? { fits: 0, why } : { fits: 0, impossible }, nodes: [] };
  }
}

function roomsIn(members: ReadonlyMap<string, MemberFit>): Rooms {
  return { get: (cluster) => members.get(cluster)?.room };
}

function whyIn(answer: FitAnswer): { why?: string } {
  return answer.fits ? {} : { why: reasonsInWords(answer.reasons) };
}
