/**
 * What the page of `kubectl spillway ui` is told. Types alone, as they are shared with code that runs in browsers. Times are RFC 3339;
 * `null`: the viewer may not know.
 */
import type { Explanation } from '../why/explanation.ts';

/** A resource of a place: what pods ask for, of what there is. CPU in cores, memory in bytes. */
export interface Fill {
  asked: number;
  offered: number;
}

/** Pods of this cluster in one place. */
export interface PodCounts {
  running: number;
  /** Bound to it, and not running yet; those held back among them. */
  starting: number;
  /** Bound to it, and not created there: for a reason that is told. */
  held: number;
  /** Being deleted. */
  leaving: number;
}

/** The nodes of this cluster itself, or a member. */
export interface PlaceView {
  /** `local`, or the name of a member. */
  name: string;
  isLocal: boolean;
  state: 'ready' | 'cordoned' | 'notReady' | 'unknown';
  /** Why it is not ready; '' when it is. */
  why: string;
  /** Why pods of a lost member are not moved, and what moves them all the same; '' when they are. */
  movesPaused: string;
  version: string | null;
  region: string | null;
  provider: string | null;
  nodes: { ready: number; wanted: number } | null;
  cpu: Fill | null;
  memory: Fill | null;
  pods: PodCounts | null;
}

/** Something that is being moved, or was moved lately. */
export interface MoveView {
  /** `replacing`: runs on until another one is ready. `rebalancing`: a workload that somebody asked to be looked at. `migrating`: to leave a member, all of it. */
  state: 'leaving' | 'replacing' | 'rebalancing' | 'migrating' | 'moved';
  /** `namespace/name` of a pod, or `namespace/Kind/name` of a workload. */
  what: string;
  isPod: boolean;
  pods: number;
  /** The place that it leaves; '' where nothing is known of it. */
  from: string;
  says: string;
  since: string | null;
}

/** A guard, and what it holds now. */
export interface SafetyView {
  id: string;
  title: string;
  /** What it means, in one sentence. */
  meaning: string;
  count: number | null;
  tone: 'good' | 'notice' | 'alarm';
  items: SafetyItem[];
  /** Of `count`, those that `items` does not name. */
  unnamed: number;
}

export interface SafetyItem {
  what: string;
  says: string;
  /** `namespace/name` of a pod to ask about. */
  pod?: string;
}

/** What a MemberCluster's Events told. */
export interface NewsView {
  cluster: string;
  reason: string;
  says: string;
  isWarning: boolean;
  at: string | null;
}

/** Pods of a workload by place, and those without one. */
export interface Places {
  /** `local` or a member, in the order of names; only places with pods. */
  places: { cluster: string; pods: number }[];
  waiting: number;
}

export interface WorkloadView extends Places {
  /** `namespace/Kind/name` */
  key: string;
  namespace: string;
  kind: string;
  name: string;
  /** What decides where its pods go: kind and name. '' when nothing does, or nobody has said. */
  policy: string;
}

/** Everything but what is asked for one by one. */
export interface PageState {
  /** When all this was read. */
  at: string;
  /** Context of the kubeconfig; '' in a pod. */
  context: string;
  /** Only pods of this namespace; '': of all. */
  namespace: string;
  /** Rights that the viewer lacks, such as `list nodes`. */
  missing: string[];
  /** Why the newest look failed; then all this is as old as `at` says. */
  trouble: string;
  managers: { name: string; members: number; components: string[] }[] | null;
  places: PlaceView[];
  safety: SafetyView[];
  underWay: MoveView[];
  lately: MoveView[];
  news: NewsView[] | null;
  workloads: WorkloadView[] | null;
  /** Workloads beyond those that are listed. */
  moreWorkloads: number;
}

/** One moment at which the places of a workload were other ones than before. */
export interface Moment extends Places {
  at: string;
}

export interface PodView {
  /** `namespace/name` */
  pod: string;
  /** `local`, a member, or '' while it waits for a node. */
  place: string;
  node: string;
  phase: string;
  since: string | null;
}

/** One workload, close up. */
export interface WorkloadDetail {
  /** When it was read. */
  at: string;
  workload: WorkloadView;
  /** Pods that each cluster is to have in the end, where a division says so. */
  targets: { cluster: string; pods: number }[];
  history: Moment[];
  pods: PodView[];
  /** Pods beyond those that are listed. */
  morePods: number;
  /** What was last decided for one of its pods. */
  decision: { at: string; says: string } | null;
  avoided: { cluster: string; says: string; until: string }[];
  moves: MoveView[];
}

export interface WhyAnswer {
  explanation: Explanation;
  missing: string[];
}

/** In place of an answer. */
export interface Refusal {
  error: string;
  reason: string;
  fix: string;
}
