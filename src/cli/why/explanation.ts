/** Who acts on a pod on its way, in the order in which it meets them. */
export type Actor =
  | 'deletion'
  | 'gates'
  | 'policy'
  | 'descheduler'
  | 'host scheduler'
  | 'Spillway'
  | 'member scheduler'
  | 'kubelet';

/**
 * `ok`: did its part. `waits`: goes on by itself, or when something changes. `failed`: does not go on without somebody. `next`: its turn has
 * not come. `unknown`: nobody can tell, or the viewer may not know.
 */
export type StepState = 'ok' | 'waits' | 'failed' | 'next' | 'unknown';

/** What can be done, and the page below docs/ that tells more. */
export interface Advice {
  help?: string | undefined;
  page?: string | undefined;
}

export interface Step extends Advice {
  by: Actor;
  state: StepState;
  /** For people: one sentence or two. */
  says: string;
}

/** A cluster that did not take the pod, or took it, and why. */
export interface PlaceWords extends Advice {
  /** Name of a member, or `local`. */
  cluster: string;
  says: string;
}

/** Why a pod is where it is, or is nowhere. */
export interface Explanation {
  /** `namespace/name` */
  pod: string;
  phase: string;
  /** The whole in one sentence. */
  answer: string;
  steps: Step[];
  /** Of clusters other than the pod's, or of all while it has none. */
  places: PlaceWords[];
  /** What can be done, the likeliest first. */
  help: string[];
  /** Pages below docs/. */
  pages: string[];
}
