import type { Pod } from '../../kube/core-v1.ts';

/** What is asked when a gang looks for a place. */
export interface GangQuestion {
  /** Only there. */
  readonly at: string | undefined;
  /** Not there. */
  readonly avoid: string | undefined;
  /** How long room is set aside, in ms. */
  readonly holdMs: number;
  /** See {@link GangAnswer}. */
  readonly tried?: ReadonlyMap<string, string>;
}

export type GangAnswer =
  | { readonly cluster: string }
  /** There is none now. */
  | { readonly why: string }
  /** There will be none for these pods as they are. */
  | { readonly problem: string }
  /** The look took long; it goes on, when others had their turn, by asking again with these clusters, which do not take it, and why. */
  | { readonly tried: ReadonlyMap<string, string> };

/** Where a gang may go, and room that is kept for it. Answered by whoever knows policies and capacity. */
export interface GangPlaces {
  /** The best place that takes all of the pods together, a member or `local`, with their room set aside; or why there is none. */
  place(pods: readonly Pod[], question: GangQuestion): Promise<GangAnswer>;
  /** Keeps the room of pods that have their place but no node yet, for so many ms. */
  hold(pods: readonly Pod[], cluster: string, holdMs: number): Promise<void>;
  release(pods: readonly Pod[]): void;
  /** Whether the member has a node for a pod that is bound to it, even if its status does not say so; undefined: nobody knows. */
  hasNode(pod: Pod, signal: AbortSignal): Promise<boolean | undefined>;
  /** The StatefulSet of a pod, if it makes its pods one after the other, each when the former is ready. */
  setInTurn(pod: Pod): { readonly name: string; readonly replicas: number } | undefined;
}
