import type { Pod } from '../kube/core-v1.ts';
import type { Amounts } from '../kube/amounts.ts';
import type { FitAnswer } from './fit-answer.ts';
import type { FitRequest } from './fit-request.ts';
import type { Candidate, Victims } from './victims.ts';

/** What can be asked about the room behind one virtual node. Everything is answered from memory, without waiting. */
export interface VirtualNodeCapacity {
  readonly nodeName: string;
  /** Name of the MemberCluster. */
  readonly member: string;
  /** All nodes and pods of the member are known. Before that nothing fits. */
  readonly ready: boolean;
  /** Why it is not, for people, where that is known. */
  readonly problem?: string | undefined;
  /**
   * What the pod will ask for once it is in the member, overrides and the translation of its constraints included. The
   * same object for pods of one shape until something changes that it depends on. `refused`: it can never run there, for
   * people. `unknown`: that cannot be told yet (override policies or owners of the pod still have to be read).
   */
  request(hostPod: Pod): FitRequest | { readonly refused: string } | { readonly unknown: string };
  fits(request: FitRequest): FitAnswer;
  /** How many such pods fit together, at most `upTo`: nodes, quota, headroom and caps. */
  slots(request: FitRequest, upTo: number): number;
  /** How much of the pod's images the nodes have, 0 to 100; undefined: nobody knows. */
  images(hostPod: Pod): number | undefined;
  /** The most that a node which the pod may use has free, each resource by itself; undefined: it may use none. */
  largestFreeSlot(request: FitRequest): Amounts | undefined;
  /**
   * Which of the candidates, pods of the host that are bound here, have to be evicted so that the pod fits on one node of the
   * member: the fewest and lowest, as kube-scheduler would choose them there. Undefined: it fits without, or evictions do not help.
   */
  victims(request: FitRequest, candidates: readonly Candidate[]): Victims | undefined;
  /**
   * Sets room aside for a pod that was sent here and that the member does not show yet; again for the same pod replaces
   * it. It lasts until {@link release}, or until the member shows the pod on a node. Pods that are bound on the host need
   * none: they are reserved by themselves, also after a restart.
   *
   * @param insteadOf UIDs of pods of the host that are evicted for it. Where no node has the room yet it has what these leave, bit by
   * bit, and nobody else has it.
   */
  reserve(podUid: string, request: FitRequest, insteadOf?: readonly string[]): void;
  release(podUid: string): void;
  /**
   * What {@link reserve} set aside for a pod counts as free for as long as a question takes, and nobody who waits for room has it: until
   * {@link putBack}, or until it is reserved again. False: nothing is, or the pod is on its way already.
   */
  lift(podUid: string): boolean;
  putBack(podUid: string): void;
  /** Whether a pod of the host, by its UID, takes room in the member, or has some set aside. */
  holds(podUid: string): boolean;
  /**
   * Whether a pod that is bound here has a node of the member, whatever the host shows, which may be behind. A no is read from
   * the member itself. Undefined: that cannot be told now. Never rejects.
   */
  hasNode(podUid: string, signal: AbortSignal): Promise<boolean | undefined>;
}
