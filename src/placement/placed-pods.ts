import type { Failover } from '../api/failover.ts';
import type { WorkloadMigration } from '../api/workload-migration.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Taint, Toleration } from '../kube/taints.ts';
import type { Avoided, RefusedThere } from './avoided.ts';
import type { TypedObject } from './owner-chain.ts';
import type { BetterPlace, Displacement, PlaceUnknown } from './better-place.ts';
import type { MemberReachability } from './lost-members.ts';
import type { Migrating } from './migrating.ts';
import type { Moves } from './moves.ts';
import type { SupposedMove } from './supposed-moves.ts';

/** A member as the descheduler sees it. */
export interface PlacedMember extends MemberReachability {
  /** Why no new pods go there, in words: it takes none, or it is {@link silent}. */
  readonly unavailable: string | undefined;
  /** Why what was heard of it may be old, in words: its MemberCluster is not Ready. */
  readonly silent: string | undefined;
  /** False: nobody has asked it anything yet. */
  readonly isContacted: boolean;
  /** Its MemberCluster is being deleted. */
  readonly isLeaving: boolean;
  /** Of effect NoExecute, that pods tolerate or do not; by virtual node, as for all below those included that it does not want any more. */
  readonly nodeTaints: ReadonlyMap<string, readonly Taint[]>;
  /** Of effect NoExecute, that policies tolerate or do not. `policy`: the ClusterTaintPolicy that added it. */
  readonly clusterTaints: readonly (Taint & { policy?: string })[];
  /**
   * Virtual nodes on which nothing runs any more, by the word of an administrator, which counts once the member has been lost for
   * long enough; and the taints that say so.
   */
  readonly outOfService: ReadonlyMap<string, readonly Taint[]>;
  /** The taints that say that a virtual node is to be emptied, by its name, as they stand on the Node. */
  readonly drained: ReadonlyMap<string, readonly Taint[]>;
}

/** What says that a member does not run a pod that is bound to it. */
export interface PodRefusal {
  readonly cluster: string;
  readonly workload: TypedObject;
  readonly reason: string;
  readonly message: string;
  /** From when on it counts, wall clock in ms. */
  readonly at: number;
  /** The policy says that it is to make way: `onRefusal: TryNext`, or `failover.onUnschedulable`. */
  readonly triesNext: boolean;
  /** The member took it, and finds no node for it. */
  readonly isUnschedulable: boolean;
}

/** What the rules of a pod say about moving it. */
export interface MoveRules {
  /** The object that the pod belongs to. */
  readonly workload: TypedObject;
  /** Pods that it asks for; undefined when that is not known. */
  readonly replicas: number | undefined;
  readonly failover: Failover | undefined;
  readonly clusterTolerations: readonly Toleration[];
}

/** Where moves of a workload are written down, and those that are. */
export interface MoveRecord {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly resourceVersion: string | undefined;
  readonly moves: readonly Moves[];
}

/**
 * A ReplicaSet that makes another pod as soon as one of its own loses the label `pod-template-hash`, while that one runs on. Not one of
 * a Deployment with strategy Recreate, whose pods are not to run beside others.
 */
export interface SurgingSet {
  /** See owner-references.ts. */
  readonly key: string;
  readonly replicas: number;
}

export interface NoPlace {
  /** For people. */
  readonly why: string;
  /** There is room but for pods that come before it, and have not waited for long: it is soon seen what they leave. */
  readonly isTaken: boolean;
}

/** Pods, whole, that are to go one way, all of them. */
export interface GoingTogether {
  readonly pods: readonly Pod[];
  readonly way: Migrating;
}

/** Why a pod has no place beside others that are to go with it. */
export interface NoPlaceTogether {
  /** For people. */
  readonly why: string;
  /** False: what would say whether there is one is not known yet. */
  readonly isKnown: boolean;
}

/** Where pods of the host are, and where they could be: from caches only. */
export interface PlacedPods {
  /** Resolves when all is known, or it is known what is in the way of what is stored of workloads, see {@link problem}, or the signal aborts. */
  whenSynced(signal: AbortSignal): Promise<void>;
  /**
   * Why some of what the host says is not known, or cannot be followed now, so that it may be otherwise by now; undefined while all is well.
   * What is stored of workloads (moves, shares, clusters they avoid) is part of it.
   */
  readonly problem: string | undefined;
  members(): readonly PlacedMember[];
  /** One of them; undefined: there is none of that name. */
  member(name: string): PlacedMember | undefined;
  /** All that are bound to virtual nodes of a member, those included that it does not want any more. */
  inMember(member: string): readonly Pod[];
  /** All of the workload of that key (owner-references.ts), those of ReplicaSets that it owns included. */
  ofWorkload(key: string): readonly Pod[];
  /** Those that have the controller now. */
  ofController(key: string): readonly Pod[];
  /** The one that the pod belongs to. */
  surgingSetOf(pod: Pod): SurgingSet | undefined;
  workloadKeys(): Iterable<string>;
  workloadKeyOf(pod: Pod): string;
  /** The member of a node, or `local`. */
  clusterOf(nodeName: string): string;
  /** Whether the pod may say that a member refuses it. */
  showsRefusal(pod: Pod): boolean;
  refusalOf(pod: Pod): PodRefusal | undefined;
  /** The workload of that name, if its kind is followed and its pods go where policies say: no DaemonSet, and of a CronJob its Jobs. */
  workloadNamed(reference: {
    apiVersion: string;
    kind: string;
    namespace: string;
    name: string;
  }): TypedObject | undefined;
  /** Whether a policy, an annotation or the label of its namespace says where the pod may go. */
  hasRules(pod: Pod): boolean;
  /** Why it is not known which rules the pod is under, in words: an owner of it, or its labels by which a policy chooses, cannot be read, or {@link whyRulesNotYet}. */
  whyRulesUnknown(pod: Pod): string | undefined;
  /** The same where that passes by itself: an owner cannot be read now, or the policy that it was under was deleted, or edited so that it chooses others, a moment ago. */
  whyRulesNotYet(pod: Pod): string | undefined;
  /** The object of that key, if it is followed. */
  workloadByKey(key: string): TypedObject | undefined;
  /** What is stored about moves of this very workload; undefined while it has no WorkloadPlacement. */
  recordOf(workload: TypedObject): MoveRecord | undefined;
  avoided(workload: TypedObject): readonly Avoided[];
  /** The workload of the pod avoids a cluster, in this process, for as long as the rules of the pod say. */
  avoid(pod: Pod, refusal: RefusedThere): void;
  rulesOf(pod: Pod): MoveRules;
  /**
   * Why no other cluster takes the pod that comes instead of this one, beside all that need a place before it. `sent`: pods that were told to
   * make way a moment ago, which the caches may not show yet.
   */
  whyNotElsewhere(pod: Pod, from: string, sent: readonly Pod[], more?: ElsewhereQuestion): NoPlace | undefined;
  /**
   * Where a pod, whole, would go instead of the cluster it is in if it came now, and has real room, for a reason that counts (all do). `after`: other pods
   * of its workload are taken to have been moved before.
   */
  betterPlace(
    pod: Pod,
    from: string,
    counts?: (reason: Displacement) => boolean,
    after?: readonly SupposedMove[],
  ): BetterPlace | PlaceUnknown | undefined;
  /** What people want migrated, by namespace and name. */
  migration(key: string): WorkloadMigration | undefined;
  /** Why that cannot be followed now, so that one may be deleted or edited by now; undefined while all is well. {@link problem} is apart from that. */
  readonly migrationsProblem: string | undefined;
  migrationKeys(): readonly string[];
  /** The way that pods of the workload go now, if it is being migrated. */
  wayOf(workload: TypedObject): Migrating | undefined;
  /**
   * Why pods do not all fit together where their ways lead, by UID; those that fit are not there. What fits of the sets before
   * has its room. Takes its time, and rejects when the signal aborts.
   */
  whyNotTogether(sets: readonly GoingTogether[], signal: AbortSignal): Promise<ReadonlyMap<string, NoPlaceTogether>>;
  /** Calls the handler with the key of each migration that came, changed or went. */
  followMigrations(changed: (key: string) => void): () => void;
  /** Calls the handlers after pods or members changed. Returns what ends that. */
  follow(handlers: PlacedPodsHandlers): () => void;
  /** The same for members only. */
  followMembers(changed: () => void): () => void;
}

export interface ElsewhereQuestion {
  /** Open virtual nodes of the cluster that it is in do as well. */
  readonly mayStay?: boolean;
  /** Asked as if its workload avoided these, too; nothing of it is remembered. */
  readonly wouldAvoid?: readonly RefusedThere[];
  /**
   * Its controller lacks the pod that comes instead already, and cannot make it beside this one, nor any beside others that it released: of all that
   * it lacks so many come before that one, in the places of those that went.
   */
  readonly comeBefore?: number;
}

export interface PlacedPodsHandlers {
  podCame: (pod: Pod) => void;
  podChanged: (pod: Pod, before: Pod) => void;
  podGone: (pod: Pod) => void;
  /** A member came, went, or changed in anything. */
  membersChanged: () => void;
  /** What may concern every workload: policies, labels, clusters, virtual nodes. */
  rulesChanged: () => void;
}
